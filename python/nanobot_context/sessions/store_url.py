"""Returns the URL of a store from a text or a Redis client, with options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from nanobot_context.arguments import check_instance, format_value, invalid, is_number, text_of


class RedisClient(Protocol):
    """A client of redis-py, of threads or of asyncio."""

    @property
    def connection_pool(self) -> Any:
        """What says where its server is, and how to log in."""


def store_url(store: str | RedisClient, options: Mapping[str, Any] | None) -> str:
    """Return the URL of `store` with `options` behind it.

    Raises:
        InvalidArgumentError: It is neither a text nor such a client, or has no host.
    """
    check_instance("store_options", options, Mapping, optional=True)
    found: dict[str, Any] = {}
    url = text_of("url", store) if isinstance(store, str) else _of_client(store, found)
    for name, value in (options or {}).items():
        if not (isinstance(value, str) or is_number(value)):
            raise invalid(f"store_options[{format_value(name)}]", "a text or a number", value)
        found[text_of("store_options", name)] = value
    if not found:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(found)}"


def _of_client(client: RedisClient, options: dict[str, Any]) -> str:
    pool = getattr(client, "connection_pool", None)
    known: Any = getattr(pool, "connection_kwargs", None)
    # Without a host redis-py's own connections go to this machine, with a path to a socket.
    is_known = isinstance(known, dict) and "path" not in known
    host = known.get("host", "localhost") if is_known else None
    if not isinstance(host, str):
        raise invalid("url", "a URL, or a client of redis-py with a host", client)
    is_encrypted = "SSL" in getattr(getattr(pool, "connection_class", None), "__name__", "")
    login = [quote(known.get(name) or "", safe="") for name in ("username", "password")]
    port, database = known.get("port") or 6379, known.get("db") or 0
    if known.get("socket_timeout"):
        options["timeout"] = known["socket_timeout"]
    if is_encrypted and known.get("ssl_ca_certs"):
        options["ca"] = known["ssl_ca_certs"]
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    at = f"{login[0]}:{login[1]}@" if any(login) else ""
    return f"redis{'s' if is_encrypted else ''}://{at}{place}/{database}"
