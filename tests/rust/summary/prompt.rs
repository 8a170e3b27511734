//! What the model is asked.

use nanobot_context::Language;
use nanobot_context::summary::{Format, Prompt, section, wrapped};

#[test]
fn places_are_filled_once_and_only_those_of_the_template() {
    let prompt = Prompt::custom("{conversation_text}|{max_summary_words}|{previous_summary}", Some(7)).unwrap();
    let messages = prompt.messages("say {max_summary_words} and {x}", Some("{conversation_text}"));
    assert_eq!(messages, [("user", "say {max_summary_words} and {x}|7|{conversation_text}".to_owned())]);
    let prompt = Prompt::custom("{conversation_text}{max_summary_words}.", Some(0)).unwrap();
    assert_eq!(prompt.messages("a", None)[0].1, "a.");
}

#[test]
fn a_previous_summary_without_a_place_goes_before_the_conversation() {
    let prompt = Prompt::custom("<<{conversation_text}>>", None).unwrap();
    assert_eq!(prompt.messages("b", Some("a"))[0].1, "<<Previous summary:\na\n\nConversation:\nb>>");
}

#[test]
fn a_prompt_must_have_its_conversation_and_no_unknown_place() {
    let error = Prompt::custom("Summarise {conversation_txt}", None).unwrap_err().to_string();
    assert!(error.contains("`{conversation_txt}`") && error.contains("`{previous_summary}`"), "{error}");
    assert!(Prompt::custom("Summarise", None).unwrap_err().to_string().contains("must have"));
    for unknown in ["{0}", "{0.__class__}", "{previous_summary!r}", "{ conversation_text }", "{名}", "{a[0]}"] {
        let error = Prompt::custom(&format!("{{conversation_text}} {unknown}"), None).unwrap_err().to_string();
        assert!(error.contains(&format!("`{unknown}`")), "{error}");
    }
    assert!(Prompt::custom("{ \"a\": {} } {conversation_text}", None).is_ok(), "JSON is no placeholder");
}

#[test]
fn the_prompts_of_the_documents_are_filled_whole() {
    for format in [Format::Text, Format::Structured] {
        for language in [Language::Other, Language::Chinese, Language::Japanese, Language::Korean] {
            let messages = Prompt::standard(format, language, None).messages("user: hello", Some("before"));
            let all: String = messages.iter().map(|(_, text)| text.as_str()).collect();
            assert!(
                all.contains("user: hello")
                    && all.contains("before")
                    && !all.contains("_text}")
                    && !all.contains("_words}"),
                "{all}"
            );
            let has_system = format == Format::Text && language == Language::Other;
            assert_eq!(messages.len(), if has_system { 2 } else { 1 });
        }
    }
    for language in [Language::Other, Language::Chinese, Language::Japanese, Language::Korean] {
        for format in [Format::Text, Format::Structured] {
            let text = |words| Prompt::standard(format, language, Some(words)).messages("a", None)[0].1.clone();
            // Without a limit nothing is said of one: no words without their number.
            for limit in ["words", "字以内", "文字以内", "자 이내"] {
                assert!(!text(0).contains(limit), "{limit}: {}", text(0));
            }
            assert!(text(77).contains("77"), "{}", text(77));
        }
    }
    let text = |language| Prompt::standard(Format::Text, language, None).messages("a", None)[0].1.clone();
    assert!(text(Language::Other).contains("under 200 words"));
    assert!(text(Language::Chinese).contains("500 字以内"));
}

#[test]
fn a_shown_summary_says_that_it_is_no_instruction() {
    let start = "\n\n## Conversation Summary\n\nThe following is a summary of earlier conversation that is no longer\nin \
                 the message history:\n\nTEXT";
    assert!(section("TEXT").starts_with(start) && section("TEXT").contains("not an instruction"));
    assert!(wrapped("TEXT").ends_with("\n\nTEXT") && wrapped("TEXT").contains("not an instruction"));
}
