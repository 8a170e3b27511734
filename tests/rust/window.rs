//! Model names and their windows.

use nanobot_context::tokens::Tokens;
use nanobot_context::window::{
    DEFAULT_CONTEXT_WINDOW, DEFAULT_OUTPUT_LIMIT, context_window, get_context_window, get_output_limit, output_limit,
};

use std::collections::HashSet;
use std::time::{Duration, Instant};

const TABLE: &str = include_str!("../../src/window_table.tsv");
/// Longer names are not looked at.
const MAX_NAME_BYTES: usize = 256;

fn window_of(name: &str) -> Option<u64> {
    context_window(name).map(|tokens| tokens.0)
}

#[track_caller]
fn assert_windows(expected: &[(&str, Option<u64>)]) {
    for &(name, window) in expected {
        assert_eq!(context_window(name), window.map(Tokens), "`{name}`");
    }
}

#[test]
fn no_line_of_the_table_is_there_twice_and_none_is_beyond_belief() {
    let mut names = HashSet::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        assert!(names.insert(columns[0].to_lowercase()), "{line}");
        assert!(columns[0].len() < MAX_NAME_BYTES, "{line}");
        assert!((2_048..=16_000_000).contains(&columns[1].parse::<u64>().unwrap()), "{line}");
        assert!(columns[2].parse().is_ok_and(|output: u64| output > 0) || columns[2] == "-", "{line}");
    }
    assert!(names.len() > 1_000);
}

#[test]
fn the_table_names_its_date_source_licence_and_how_to_refresh_it() {
    let header: String = TABLE.lines().take_while(|line| line.starts_with('#')).collect();
    for word in ["# date: 20", "source: litellm 1.", "MIT License", "refresh_windows.py"] {
        assert!(header.contains(word), "`{word}`");
    }
    assert!(TABLE.len() < 200_000);
}

#[test]
fn every_name_of_the_table_finds_its_own_entry_however_it_is_spelled() {
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let window = columns[1].parse().ok();
        assert_windows(&[(columns[0], window), (&columns[0].to_uppercase(), window)]);
        assert_eq!(output_limit(columns[0]), columns[2].parse().ok().map(Tokens), "`{}`", columns[0]);
    }
}

#[test]
fn a_gateways_prefix_and_the_letters_case_do_not_matter() {
    assert_windows(&[
        ("claude-opus-4-5", Some(200_000)),
        ("anthropic/claude-opus-4-5", Some(200_000)),
        ("Anthropic/Claude-Opus-4.5", Some(200_000)),
        ("  claude-opus-4-5\n", Some(200_000)),
        ("openrouter/anthropic/claude-opus-4.5", Some(200_000)),
        ("litellm_proxy/anthropic/claude-opus-4-5", Some(200_000)),
        ("a/b/c/d/claude-opus-4-5", Some(200_000)),
        ("hosted_vllm/openai/gpt-oss-120b", window_of("gpt-oss-120b")),
        ("models/gemini-2.5-pro", Some(1_048_576)),
        ("deepseek/deepseek-chat", Some(131_072)),
    ]);
}

#[test]
fn bedrocks_regions_vendors_and_versions_do_not_matter() {
    assert_windows(&[
        ("bedrock/us.anthropic.claude-opus-4-5-20251101-v1:0", Some(200_000)),
        ("global.anthropic.claude-opus-4-5-20251101-v1:0", Some(200_000)),
        ("bedrock/eu-west-1/anthropic.claude-3-5-sonnet-20241022-v2:0", Some(200_000)),
        (
            "bedrock/arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-5-20251101-v1:0",
            Some(200_000),
        ),
    ]);
}

#[test]
fn editions_are_the_model_they_are_editions_of() {
    assert_windows(&[
        ("claude-opus-4-5:free", Some(200_000)),
        ("claude-opus-4-5:thinking", Some(200_000)),
        ("claude-opus-4-5@20251101", Some(200_000)),
        ("claude-opus-4-5@latest", Some(200_000)),
        ("claude-opus-4-5-latest", Some(200_000)),
        ("claude-opus-4-5-20300131:beta", Some(200_000)),
        ("gpt-4.1-2029-01-31", Some(1_047_576)),
        ("gemini-2.5-pro-preview-06-05", Some(1_048_576)),
        ("gemini-2.5-pro-001", Some(1_048_576)),
        ("gpt-4-0613", Some(8_192)),
        ("claude-3-opus", Some(200_000)),
        ("gpt-oss:20b", window_of("gpt-oss-20b")),
        ("gpt-oss:120b:cloud", window_of("gpt-oss-120b")),
    ]);
}

#[test]
fn fine_tunes_and_deployments_have_the_window_of_their_base() {
    assert_windows(&[
        ("gpt-4o-mini-my-finetune", Some(128_000)),
        ("ft:gpt-4o:org::id", Some(128_000)),
        ("openai/ft:gpt-4.1-mini-2025-04-14:mini:nano:8b", Some(1_047_576)),
        ("azure/claude-opus-4-5-team_blue", Some(200_000)),
        ("claude-sonnet-4-5-thinking:free", Some(200_000)),
    ]);
}

#[test]
fn the_exact_name_of_a_gateway_wins_over_the_vendor() {
    assert_windows(&[
        ("github_copilot/claude-opus-5", Some(200_000)),
        ("claude-opus-5", Some(1_000_000)),
        ("azure_ai/mistral-small", Some(32_000)),
    ]);
}

#[test]
fn the_vendor_speaks_for_a_name_without_gateway() {
    // gmi has 409,600 and Vercel 1,000,000 for the next one; Anthropic accepts 200,000.
    assert_windows(&[
        ("openrouter/anthropic/claude-sonnet-4.5", Some(200_000)),
        ("deepseek-chat", Some(131_072)),
        ("minimax/MiniMax-M2.1", Some(204_800)),
    ]);
}

#[test]
fn the_window_of_openai_models_is_what_a_prompt_may_hold() {
    assert_windows(&[("gpt-5", Some(272_000)), ("gpt-5.1-codex", Some(272_000)), ("gpt-5.4", Some(922_000))]);
}

#[test]
fn a_name_that_could_be_another_model_is_not_known() {
    assert_windows(&[
        ("claude-opus-4-9", None),
        ("claude-opus-99", None),
        ("gpt-4.9", None),
        ("gemini-2.5-pro-nano", None),
        ("gpt-4.1-32k", None),
        ("gemini-2.5-pro-distill-llama-8b", None),
        ("kimi-k3-vl", None),
        ("gpt-4.1mini", None),
        ("gemini-pro", None),
        ("grok-latest", None),
        ("auto", None),
        ("openrouter/auto", None),
        ("my-gpt-4.1", None),
        ("free", None),
        ("llama", None),
        ("gpt", None),
        ("claude", None),
    ]);
}

#[test]
fn no_proper_prefix_of_a_name_finds_a_window_above_the_default_by_accident() {
    // A prefix that ends inside a word or a number names nothing: `gpt-4.` and `gemini-2` are not models.
    for name in ["gemini-2.5-pro", "gpt-4.1", "claude-opus-4-6", "kimi-k3", "grok-4.5"] {
        for end in 0..name.len() {
            let window = get_context_window(&name[..end], None);
            assert!(window <= Tokens(200_000), "`{}`: {window}", &name[..end]);
        }
    }
}

#[test]
fn garbage_is_quick_and_not_known() {
    let huge = ["x".repeat(1 << 20), "/".repeat(1 << 20), "-".repeat(1 << 20), " ".repeat(1 << 20)];
    let awkward = [
        "",
        " ",
        "/",
        "////",
        "a/",
        "\0",
        "gpt-4o\0x",
        ":",
        "::::",
        "@",
        "-",
        "--",
        "...",
        "ft:",
        "ft::::",
        ":free",
        "/:0",
        "-20250929",
        "@20250929",
        "-v1:0",
        "\u{130}",
        "模型",
        "gpt-4o\u{301}",
        "\u{1f600}/\u{1f600}",
        "\t",
    ];
    let long: Vec<String> = ["/", "-", ":", "@", "a/", "a.", "-preview", ":free", "1-", ".1", "é"]
        .iter()
        .map(|piece| piece.repeat(MAX_NAME_BYTES / piece.len()))
        .collect();
    assert_eq!(context_window("warm up"), None);
    let start = Instant::now();
    for name in awkward.into_iter().chain(huge.iter().chain(&long).map(String::as_str)) {
        assert_eq!(context_window(name), None, "`{}`", name.chars().take(20).collect::<String>());
        assert_eq!(output_limit(name), None);
    }
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
}

#[test]
fn no_name_made_of_pieces_of_names_panics() {
    let pieces = ["gpt-4o", "claude", "/", "-", ":", "@", ".", "2025", "06", "-05", "v1", "é", "ft:", "free", "\0"];
    for a in pieces {
        for b in pieces {
            for c in pieces {
                for d in pieces {
                    let _ = context_window(&[a, b, c, d].concat());
                }
            }
        }
    }
}

#[test]
fn an_override_is_honoured_zero_included() {
    assert_eq!(get_context_window("claude-opus-4-5", Some(Tokens::ZERO)), Tokens::ZERO);
    assert_eq!(get_context_window("claude-opus-4-5", Some(Tokens::MAX)), Tokens::MAX);
    assert_eq!(get_context_window("claude-opus-4-5", None), Tokens(200_000));
    assert_eq!(get_context_window("my-own-model", None), DEFAULT_CONTEXT_WINDOW);
    assert_eq!(DEFAULT_CONTEXT_WINDOW, Tokens(128_000));
}

#[test]
fn an_output_limit_that_is_not_published_is_the_default() {
    assert_eq!(get_output_limit("claude-opus-4-5"), Tokens(64_000));
    assert_eq!(get_output_limit("openai/gpt-4o"), Tokens(16_384));
    assert_eq!(get_output_limit("my-own-model"), DEFAULT_OUTPUT_LIMIT);
    assert_eq!(output_limit("seed-1.6"), None);
    assert_eq!(get_output_limit("seed-1.6"), DEFAULT_OUTPUT_LIMIT);
}
