"""Other families' vocabularies count as their own tokenizers do.

What is compared is the text: the difference between a message with it and a message without, so
that framing does not matter. Natural text only: Qwen normalises text first (NFC), which a count of
the text as it is does not follow. GLM, Kimi and MiniMax have no package with their vocabulary.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

import nanobot_context

from . import counted_texts as texts

MODELS = {
    "count_deepseek": ["deepseek-chat", "deepseek/deepseek-reasoner"],
    "count_qwen": ["qwen-max", "openrouter/qwen/qwen-2.5-72b-instruct"],
    "count_mistral": ["mistral/mistral-small-latest", "open-mistral-nemo"],
}


def content_tokens(text: str, model: str) -> int:
    def count(content: str) -> int:
        return nanobot_context.count_tokens([{"role": "user", "content": content}], model)

    return count(text) - count("")


def natural(count: int) -> Iterator[str]:
    yield from texts.source_slices(count)
    rng = random.Random(4)
    sentences = [
        "请把这个文件里的错误修好，然后告诉我原因。",
        "会议改到星期三下午三点，地点不变。",
        "この関数は引数を二つ取ります。",
        "設定を変更した後、再起動してください。",
        "The build took 12.5 s; 1,204 tests passed and 3 were skipped.",
        "Ошибка возникает только при первом запуске.",
        "서버가 응답하지 않습니다. 다시 시도하세요.",
        '{"id": 4711, "path": "/srv/data/a.json", "ok": true}',
        "2026-02-12T08:15:30Z ERROR worker-7 timeout after 30000 ms",
    ]
    for _ in range(count):
        yield " ".join(rng.choices(sentences, k=rng.randint(1, 12)))


@pytest.mark.parametrize(
    ("reference", "model"), [(r, m) for r, models in MODELS.items() for m in models]
)
def test_text_counts_as_in_the_familys_own_tokenizer(
    request: pytest.FixtureRequest, reference: str, model: str
) -> None:
    count: Callable[[str], int] = request.getfixturevalue(reference)
    for text in natural(400):
        ours, theirs = content_tokens(text, model), count(text)
        assert ours == theirs, f"{model} counts {ours}, its tokenizer {theirs}: {text[:200]!r}"
