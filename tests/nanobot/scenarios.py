"""All scenarios by name."""

from __future__ import annotations

from faulty import PAST, faulty, refused_then_faulty
from first_call import first_words
from forgetting import FORGETTING
from large import (
    announcement,
    chinese_reads,
    consolidation,
    idle_session,
    long_chat,
    many_reads,
    one_huge_result,
    parallel_reads,
    subagent,
    told,
)
from live import tells
from own_window import long_session, own_window
from priced import priced
from readback import read_back
from reasoned import REASONED
from recalled import recalled
from refusals import MISCOUNTED, WRONG
from refused import (
    capped_answer,
    falls_back,
    other_errors,
    refused_whatever_comes,
    silently_cut,
    small_talk,
    subagent_refused,
    switched_off,
    too_large_to_repair,
    uncountable,
    with_digits,
    wrong_window,
)
from ruled import ruled, sixty
from scenario import WHOLE, Scenario
from summarised import TALKS

SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for one in (
        many_reads("A", 20, 6_000),
        many_reads("A2", 20, 4_000, result_chars=WHOLE),
        many_reads("A-whole", 20, 6_000, result_chars=WHOLE),
        many_reads("A-deepseek", 20, 4_000, form="deepseek", result_chars=WHOLE),
        many_reads("A-table", 24, 6_000, window=128_000, known=None, result_chars=WHOLE),
        many_reads(
            "A-gateway",
            20,
            4_000,
            model="anthropic/claude-sonnet-4-5",
            gateway="openrouter",
            result_chars=WHOLE,
        ),
        many_reads("miscounted", 20, 4_000, factor=1.4, result_chars=WHOLE),
        *(
            many_reads(
                f"miscounted-{form}",
                20,
                4_000,
                window=32_000,
                known=None,
                factor=1.5,
                form=form,
                model=f"openai/house-miscounted-{form}",
                result_chars=WHOLE,
            )
            for form in MISCOUNTED
        ),
        *told(),
        own_window(),
        long_session(),
        priced(),
        long_chat("B", 60, 600, window=32_000),
        long_chat(
            "B-table",
            20,
            600,
            window=16_385,
            known=None,
            model="openai/gpt-3.5-turbo",
            encoding="cl100k_base",
        ),
        subagent(),
        announcement(),
        one_huge_result(),
        chinese_reads(),
        parallel_reads(),
        consolidation(),
        ruled(),
        recalled(),
        sixty(),
        idle_session(),
        read_back(),
        *(wrong_window(form) for form in WRONG),
        wrong_window("openai", name="digits", say_prompt=with_digits),
        many_reads("custom", 10, 4_000, window=32_000, provider="custom", result_chars=WHOLE),
        wrong_window("openai", name="wrong-custom", provider="custom", model="house-custom"),
        # Models that think: since 0.3.5 nanobot goes on from the thoughts that they sent.
        many_reads(
            "azure",
            10,
            4_000,
            window=32_000,
            provider="azure_openai",
            model="gpt-5",
            result_chars=WHOLE,
        ),
        many_reads(
            "thinking",
            14,
            1_000,
            window=32_000,
            provider="responses",
            model="gpt-5",
            result_chars=WHOLE,
        ),
        wrong_window("azure", provider="azure_openai", model="house-o3"),
        wrong_window("responses", streamed=True, provider="azure_openai", model="house-o4"),
        too_large_to_repair(),
        refused_whatever_comes(),
        capped_answer(),
        uncountable(),
        silently_cut(),
        falls_back(),
        subagent_refused(),
        other_errors(),
        faulty("faults", "plain", "streamed", past=[]),
        faulty("faults-pressed", "streamed", past=PAST, known=None, model="openai/gpt-3.5-turbo"),
        refused_then_faulty("500"),
        switched_off(),
        small_talk(),
        first_words(),
        *FORGETTING,
        *REASONED,
        tells(),
        *TALKS,
    )
}
