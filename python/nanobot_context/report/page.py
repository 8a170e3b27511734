"""Assembles the page: template, styles, scripts and data in one file that runs nothing else.

The content security policy allows the page's own scripts and styles, by their hashes, and no
connection at all. The data is JSON in an element that is not a script, with every `<` escaped: no
text of a conversation is ever markup, and scripts put it on the page as text only.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

_SCRIPTS = ("basics.js", "chart.js", "messages.js", "details.js", "extras.js", "page.js")
_STYLE = "page.css"
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")

# What would end the element or the line, and what has no UTF-8 (a lone surrogate). In JSON all of
# it can stand inside of strings only.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def page(name: str, data: Mapping[str, Any], language: str) -> bytes:
    """Return the page that shows `data`, in UTF-8."""
    phrases = {} if language == "en" else json.loads(_source(f"{language}.json"))
    scripts, style = list(map(_source, _SCRIPTS)), _source(_STYLE)
    # Nothing that a title bar would act on.
    title = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)
    parts = {
        "language": language,
        "title": html.escape(title),
        "phrases": _json(phrases),
        "policy": _policy(scripts, style),
        "style": style,
        "data": _json(data),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    # In one pass, so that nothing is put into what was put in.
    text = _PLACEHOLDER.sub(lambda found: parts[found[1]], _source("page.html"))
    return text.encode()


def _source(file: str) -> str:
    return (files(__package__) / file).read_text(encoding="utf-8")


def _policy(scripts: list[str], style: str) -> str:
    hashes = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _json(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
