"""The compiled half of the package."""

from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Literal, Protocol, final

from nanobot_context.types import (
    CountSource,
    CutReason,
    GiveUpReason,
    LostKind,
    Message,
    OverflowKind,
    RepairAction,
)

__all__ = [
    "ESSENTIAL_TOKENS",
    "MAX_WHOLE",
    "MIN_OUTPUT_TOKENS",
    "NO_REASONING",
    "Compressor",
    "Cut",
    "FileLock",
    "Fitted",
    "Lost",
    "Overflow",
    "Receipt",
    "Recovery",
    "Repair",
    "SessionStoreHandle",
    "SummaryCall",
    "SummaryDraft",
    "SummaryPolicy",
    "SummaryRun",
    "Trigger",
    "__version__",
    "answer_reserve",
    "archive_directory",
    "archive_name",
    "cache_limit_bytes",
    "cache_sizes",
    "check_whole",
    "classify_error",
    "classify_message",
    "classify_usage",
    "clear_caches",
    "compress_messages",
    "compress_with_receipt",
    "count_tokens",
    "emergency_compress",
    "filter_key_belongs",
    "find_last_user_index",
    "find_safe_cut_point",
    "fit_messages",
    "fits",
    "format_structured",
    "format_value",
    "get_context_window",
    "get_output_limit",
    "keep_last_cut",
    "list_changes",
    "listed_window",
    "loaded_vocabularies",
    "lock_file",
    "mask_credentials",
    "merge_structured",
    "parse_structured",
    "prevailing_script",
    "reduce_messages",
    "reserve_tokens",
    "rolling_cut",
    "rules_left_out",
    "select_history",
    "set_cache_limit",
    "silently_cut",
    "spoken_language",
    "standing_rules",
    "static_buffer_cut",
    "summary_due",
    "summary_section",
    "superseded",
    "token_bound",
    "trim_tool_result",
    "window_for",
    "without_credentials",
    "wrap_summary",
]

__version__: Final[str]
MAX_WHOLE: Final[int]
ESSENTIAL_TOKENS: Final[int]
MIN_OUTPUT_TOKENS: Final[int]
NO_REASONING: Final[str]

# What is only read: lists of clients' typed dicts, too.
_Messages = Sequence[Mapping[str, Any]]
_Tools = Sequence[Mapping[str, Any]]

class _Settings(Protocol):
    @property
    def tool_result_soft_limit(self) -> float: ...
    @property
    def tool_result_hard_limit(self) -> float: ...
    @property
    def context_reserve_ratio(self) -> float: ...
    @property
    def reasoning_keep_chars(self) -> int: ...
    @property
    def max_user_message_chars(self) -> int: ...
    @property
    def max_assistant_message_chars(self) -> int: ...
    @property
    def emergency_ratio(self) -> float: ...
    @property
    def message_overhead_tokens(self) -> int: ...
    @property
    def pinned(self) -> Sequence[str]: ...

class _Archive(Protocol):
    @property
    def shown(self) -> str: ...
    def missing(self, sizes: dict[str, int | None], /) -> set[str]: ...
    def write(self, texts: dict[str, str], in_use: Collection[str], /) -> set[str]: ...

@final
class Cut:
    @property
    def index(self) -> int: ...
    @property
    def reason(self) -> CutReason: ...
    @property
    def tokens_before(self) -> int: ...
    @property
    def tokens_after(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Lost:
    @property
    def index(self) -> int: ...
    @property
    def kind(self) -> LostKind: ...
    @property
    def text(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Receipt:
    @property
    def tokens_before(self) -> int | None: ...
    @property
    def tokens_after(self) -> int | None: ...
    @property
    def source(self) -> CountSource | None: ...
    @property
    def cuts(self) -> list[Cut]: ...
    @property
    def lost(self) -> list[Lost]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class FileLock:
    def release(self) -> None: ...

@final
class Fitted:
    @property
    def messages(self) -> list[Message]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def receipt(self) -> Receipt: ...

@final
class Overflow:
    @property
    def kind(self) -> OverflowKind: ...
    @property
    def limit_tokens(self) -> int | None: ...
    @property
    def used_tokens(self) -> int | None: ...
    @property
    def output_tokens(self) -> int | None: ...
    @property
    def limit_bytes(self) -> int | None: ...
    @property
    def limit_messages(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Compressor:
    def __new__(
        cls,
        context_window: int,
        model: str | None = None,
        *,
        tools: _Tools | None = None,
        max_output_tokens: int | None = None,
        settings: _Settings | None = None,
        archive: _Archive | None = None,
    ) -> Compressor: ...
    @property
    def context_window(self) -> int: ...
    @property
    def model(self) -> str | None: ...
    @property
    def receipt(self) -> Receipt | None: ...
    def compress(
        self,
        messages: _Messages,
        *,
        context_window: int | None = None,
        max_output_tokens: int | None = None,
        message_overhead_tokens: int | None = None,
    ) -> list[Message]: ...
    def emergency(self, messages: _Messages) -> list[Message]: ...

def archive_directory(path: str) -> str: ...
def archive_name(text: str) -> str: ...
def count_tokens(
    messages: _Messages, model: str | None = None, *, tools: _Tools | None = None
) -> int: ...
def compress_messages(
    messages: _Messages,
    context_window: int,
    model: str | None = None,
    *,
    tools: _Tools | None = None,
    max_output_tokens: int | None = None,
    settings: _Settings | None = None,
    archive: _Archive | None = None,
) -> list[Message]: ...
def compress_with_receipt(
    messages: _Messages,
    context_window: int,
    model: str | None = None,
    *,
    tools: _Tools | None = None,
    max_output_tokens: int | None = None,
    settings: _Settings | None = None,
    archive: _Archive | None = None,
) -> tuple[list[Message], Receipt | None]: ...
def emergency_compress(
    messages: _Messages,
    context_window: int,
    model: str | None = None,
    *,
    tools: _Tools | None = None,
    max_output_tokens: int | None = None,
    settings: _Settings | None = None,
    archive: _Archive | None = None,
) -> list[Message]: ...
def fit_messages(
    messages: _Messages,
    max_tokens: int,
    model: str | None = None,
    *,
    above: int | None = None,
    tools: _Tools | None = None,
    settings: _Settings | None = None,
    archive: _Archive | None = None,
) -> Fitted: ...
def fits(
    messages: _Messages,
    max_tokens: int,
    model: str | None = None,
    *,
    tools: _Tools | None = None,
) -> bool: ...
def token_bound(
    messages: _Messages,
    model: str | None = None,
    *,
    tools: _Tools | None = None,
) -> int | None: ...
def loaded_vocabularies() -> list[str]: ...
def select_history(
    messages: _Messages, max_tokens: int, model: str | None = None
) -> list[Message]: ...
def find_safe_cut_point(messages: _Messages, keep_last: int) -> int: ...
def find_last_user_index(messages: _Messages) -> int: ...
def classify_message(
    message: Mapping[str, Any], call: Mapping[str, Any] | None = None
) -> Literal["high", "normal", "low"]: ...
def cache_limit_bytes() -> int: ...
def cache_sizes() -> dict[str, int]: ...
def clear_caches() -> int: ...
def set_cache_limit(megabytes: int) -> None: ...
def trim_tool_result(
    result: str,
    max_chars: int | None = None,
    *,
    head_lines: int | None = None,
    tail_lines: int | None = None,
) -> str: ...
def list_changes(messages: _Messages) -> list[tuple[int, str, str]]: ...
def superseded(
    messages: _Messages,
) -> list[tuple[int, Literal["again", "changed", "repeated", "rewritten"], int]]: ...
def standing_rules(texts: list[str]) -> list[list[str]]: ...
def rules_left_out(rules: Sequence[str], shown: Sequence[str], max_bytes: int) -> list[str]: ...
def prevailing_script(messages: _Messages) -> str: ...
def spoken_language(newest_first: Sequence[str]) -> Literal["zh", "ja", "ko"] | None: ...
def get_context_window(model: str | None, override: int | None = None) -> int: ...
def listed_window(model: str | None) -> int | None: ...
def get_output_limit(model: str | None) -> int: ...

@final
class Repair:
    @property
    def action(self) -> RepairAction: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int | None: ...
    @property
    def reason(self) -> GiveUpReason | None: ...

@final
class Recovery:
    def __new__(
        cls,
        prompt_tokens: int,
        output_tokens: int | None = None,
        *,
        fixed_tokens: int,
        listed_output_tokens: int,
        emergency_ratio: float = 0.6,
    ) -> Recovery: ...
    def weighs(self, size: int) -> None: ...
    def refused(self, overflow: Overflow) -> Repair: ...
    def compressed(self, prompt_tokens: int) -> Repair: ...
    def floor(self, needed_tokens: int) -> Repair: ...

def answer_reserve(left_tokens: int, asked_tokens: int) -> int: ...
def reserve_tokens(
    window_tokens: int, max_output_tokens: int | None, context_reserve_ratio: float
) -> int: ...
def window_for(
    prompt_tokens: int, max_output_tokens: int | None, context_reserve_ratio: float
) -> int: ...
def check_whole(
    argument: str, value: object, *, least: int = 0, optional: bool = False
) -> int | None: ...
def format_value(value: object) -> str: ...
def mask_credentials(text: str) -> str: ...
def without_credentials(url: str) -> str: ...
def classify_error(
    text: str,
    *,
    status: int | None = None,
    code: str | None = None,
    error_type: str | None = None,
    provider: str | None = None,
) -> Overflow | None: ...
def classify_usage(
    *,
    input_tokens: int | None,
    cache_tokens: int | None = None,
    output_tokens: int | None = None,
    finish_reason: str | None = None,
    window_tokens: int | None = None,
    counted_tokens: int | None = None,
) -> Overflow | None: ...
def silently_cut(*, read_tokens: int, sent_tokens: int) -> Overflow: ...
def reduce_messages(
    messages: _Messages,
    max_tokens: int,
    model: str | None = None,
    *,
    tools: _Tools | None = None,
    settings: _Settings | None = None,
    archive: _Archive | None = None,
) -> Fitted: ...

@final
class SummaryPolicy:
    def __new__(
        cls,
        *,
        enabled: bool = True,
        message_limit: int | None = None,
        max_context_tokens: int | None = None,
        keep_last: int | None = None,
        target_tokens: int | None = None,
        merge_target_tokens: int | None = None,
        temperature: float | None = None,
        bisect_enabled: bool = True,
        bisect_max_depth: int | None = None,
        bisect_min_messages: int | None = None,
        retry_on_overflow: bool = True,
        history_limit: int | None = None,
    ) -> SummaryPolicy: ...
    @staticmethod
    def from_env(
        environ: Mapping[str, str] | None = None, *, user: Mapping[str, Any] | None = None
    ) -> SummaryPolicy: ...
    @property
    def enabled(self) -> bool: ...
    @property
    def message_limit(self) -> int: ...
    @property
    def max_context_tokens(self) -> int: ...
    @property
    def keep_last(self) -> int: ...
    @property
    def target_tokens(self) -> int: ...
    @property
    def merge_target_tokens(self) -> int: ...
    @property
    def temperature(self) -> float: ...
    @property
    def bisect_enabled(self) -> bool: ...
    @property
    def bisect_max_depth(self) -> int: ...
    @property
    def bisect_min_messages(self) -> int: ...
    @property
    def retry_on_overflow(self) -> bool: ...
    @property
    def history_limit(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...

@final
class Trigger:
    @staticmethod
    def messages(*, gt: int | None = None, ge: int | None = None) -> Trigger: ...
    @staticmethod
    def tokens(*, gt: int | None = None, ge: int | None = None) -> Trigger: ...
    @staticmethod
    def idle(*, gt: float | None = None, ge: float | None = None) -> Trigger: ...
    @staticmethod
    def any(*checks: Trigger) -> Trigger: ...
    @staticmethod
    def all(*checks: Trigger) -> Trigger: ...
    def __invert__(self) -> Trigger: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    @property
    def watches_silence(self) -> bool: ...
    def fires(
        self, *, messages: int, tokens: int | None = None, idle_seconds: float = 0.0
    ) -> str | None: ...

@final
class SummaryCall:
    @property
    def messages(self) -> list[tuple[str, str]]: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def temperature(self) -> float: ...
    @property
    def depth(self) -> int: ...

@final
class SummaryDraft:
    @property
    def text(self) -> str: ...
    @property
    def data(self) -> str: ...
    @property
    def by_model(self) -> bool: ...
    @property
    def error(self) -> str | None: ...
    @property
    def prompt(self) -> str: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def chunks(self) -> int: ...
    @property
    def max_depth(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...

@final
class SummaryRun:
    def __new__(
        cls,
        messages: _Messages,
        *,
        previous: str | None = None,
        previous_data: str | None = None,
        model: str | None = None,
        policy: SummaryPolicy | None = None,
        format: str = "text",
        prompt: str | None = None,
        max_words: int | None = None,
        window_tokens: int | None = None,
        max_result_tokens: int | None = None,
    ) -> SummaryRun: ...
    def next_call(self) -> SummaryCall | None: ...
    def answered(self, text: str) -> None: ...
    def refused(self, limit_tokens: int | None = None) -> None: ...
    def by_rules(self) -> None: ...
    def failed(self, error: str) -> None: ...
    def finish(self) -> SummaryDraft: ...

def summary_due(
    messages: _Messages,
    covered: int | None = None,
    *,
    policy: SummaryPolicy | None = None,
    trigger: Trigger | None = None,
    cause: str = "proactive",
    idle_seconds: float = 0.0,
    model: str | None = None,
) -> tuple[int, str] | None: ...
def keep_last_cut(
    messages: list[Message], covered: int | None = None, *, keep: int
) -> int | None: ...
def lock_file(path: str | PathLike[str], timeout_seconds: float) -> FileLock | None: ...
def static_buffer_cut(
    messages: _Messages,
    covered: int | None = None,
    *,
    limit: int | None = None,
    keep: int | None = None,
) -> int | None: ...
def rolling_cut(
    messages: _Messages,
    covered: int | None = None,
    *,
    interval: int | None = None,
    keep_rounds: int | None = None,
) -> int | None: ...
def summary_section(text: str) -> str: ...
def wrap_summary(text: str) -> str: ...
def parse_structured(raw: str) -> str: ...
def merge_structured(
    older: str, newer: str, *, max_tokens: int | None = None, model: str | None = None
) -> str: ...
def format_structured(fields: str) -> str: ...

@final
class SessionStoreHandle:
    """Every method returns what it says, or with `asynchronous` an awaitable of it."""

    def __new__(
        cls,
        url: str,
        *,
        asynchronous: bool,
        event_limit: int,
        protect_unsummarized: bool,
        session_ttl_ms: int,
        user_state_ttl_ms: int,
        app_state_ttl_ms: int,
        refresh_on_read: bool,
        raw_routing: bool,
    ) -> SessionStoreHandle: ...
    def create(
        self,
        app: str,
        user: str,
        id: str,
        generation: str,
        state: Mapping[str, bytes | None],
        meta: str,
        overwrite: bool,
    ) -> Any: ...
    def get(
        self,
        app: str,
        user: str,
        id: str,
        after: int,
        since_ms: int | None,
        last: int | None,
        user_first: str,
    ) -> Any: ...
    def list(self, app: str, user: str, offset: int, limit: int | None) -> Any: ...
    def delete(self, app: str, user: str, id: str) -> Any: ...
    def append(
        self,
        app: str,
        user: str,
        id: str,
        generation: str | None,
        expected_seq: int | None,
        events: Sequence[Mapping[str, Any]],
    ) -> Any: ...
    def replace_tail(
        self,
        app: str,
        user: str,
        id: str,
        generation: str | None,
        after: int,
        expected_seq: int,
        events: Sequence[Mapping[str, Any]],
    ) -> Any: ...
    def state(self, app: str, user: str | None, id: str | None) -> Any: ...
    def update_state(
        self, app: str, user: str | None, id: str | None, delta: Mapping[str, bytes | None]
    ) -> Any: ...
    def set_meta(self, app: str, user: str, id: str, meta: str, expected: str | None) -> Any: ...
    def put_summary(self, app: str, user: str, id: str, summary: Mapping[str, Any]) -> Any: ...
    def summaries(
        self,
        app: str,
        user: str,
        id: str,
        filter_key: str | None,
        failed: bool,
        links: bool,
        last: int | None,
    ) -> Any: ...
    def sweep(self) -> Any: ...
    def describe(self) -> str: ...
    def close(self) -> None: ...

def filter_key_belongs(event: str, wanted: str) -> bool: ...
