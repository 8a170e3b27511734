//! Tells what the model found or decided from what it announces: "Let me look at a.py."

use std::collections::HashSet;
use std::sync::LazyLock;

use super::bytes::lines;
use super::sentences::sentences;

/// The words of `conclusions.tsv`.
#[derive(Default)]
struct Lexicon {
    announcing: Vec<&'static str>,
    fillers: Vec<&'static str>,
    deciding: HashSet<&'static str>,
    wide_deciding: Vec<&'static str>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon::default();
    for (kind, words) in include_str!("conclusions.tsv").lines().filter_map(|row| row.split_once('\t')) {
        let words = words.split(", ");
        match kind {
            "announce" => lexicon.announcing.extend(words),
            "filler" => lexicon.fillers.extend(words),
            "decide" => lexicon.deciding.extend(words),
            _ => lexicon.wide_deciding.extend(words),
        }
    }
    lexicon
});

/// Fewest bytes of a sentence that says anything: "Good catch!" does not.
const MIN_BYTES: usize = 12;

/// Returns whether a sentence of `text`, which stands beside calls, is more than their announcement. O(n).
pub fn concludes(text: &str) -> bool {
    conclusions(text).next().is_some()
}

/// Returns the sentences of `text`, which stands beside calls, that are more than their announcement; behind one of these, few words
/// may turn it: "I assumed UTC. It's CET." O(n).
pub fn conclusions(text: &str) -> impl Iterator<Item = &str> {
    let said = sentences(text).map(|at| text[at].trim()).filter(|said| !said.is_empty() && !announces(said));
    said.skip_while(|said| said.len() < MIN_BYTES)
}

/// Returns the words of a text before a call that is written in it: in a fence, as a tag, or behind its name.
pub fn before_call(text: &str) -> &str {
    let opens = |line: &&str| CALLS.iter().any(|open| line.trim_start().starts_with(open));
    let end = lines(text).take_while(|line| !opens(line)).map(str::len).sum();
    &text[..end]
}

/// How such a call opens: SWE-agent and mini-swe-agent, Cline and chat templates, `ReAct`.
const CALLS: [&str; 4] = ["```", "<", "Action:", "ACTION:"];

pub(super) fn announces(said: &str) -> bool {
    if said.ends_with([':', '：']) {
        return true;
    }
    let lower = said[..said.floor_char_boundary(48)].to_lowercase().replace('’', "'");
    let mut rest = lower.as_str();
    loop {
        let is_end = |rest: &str| !rest.starts_with(char::is_alphanumeric) || !rest.is_ascii();
        if LEXICON.announcing.iter().any(|start| rest.strip_prefix(*start).is_some_and(is_end)) {
            return !decides(said);
        }
        let Some(behind) = LEXICON.fillers.iter().find_map(|word| rest.strip_prefix(*word)) else { return false };
        rest = behind.trim_start_matches(|c: char| !c.is_alphanumeric());
    }
}

/// Returns whether a sentence decides something rather than announces a call.
fn decides(said: &str) -> bool {
    let lower = said.to_lowercase();
    // "Let me use grep."
    let looks = ["let me", "让我"].iter().any(|start| lower.contains(start));
    !looks
        && (lower.split(|c: char| !c.is_alphanumeric()).any(|word| LEXICON.deciding.contains(word))
            || LEXICON.wide_deciding.iter().any(|word| lower.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_words_behind_a_conclusion_belong_to_it() {
        let said: Vec<&str> = conclusions("Hm. I assumed UTC in the report. It's CET. Let me check.").collect();
        assert_eq!(said, ["I assumed UTC in the report.", "It's CET."]);
    }

    #[test]
    fn an_announcement_of_a_call_concludes_nothing() {
        for text in [
            "Let me look at src/m7.py.",
            "Now let me check the remaining call sites:",
            "Good. Now, let's run the tests.",
            "Perfect! I’ll update the caller in `a.rs`.",
            "Now lint:",
            "让我看看这个文件。",
            "",
        ] {
            assert!(!concludes(text), "{text}");
        }
        for text in [
            "The root cause is a missing index on orders.customer_id.",
            "I decided to keep the old endpoint. Let me look at the app.",
            "Steps 1 to 3 are done; step 4 is still open.",
            "Good. All 225 crypto tests pass.",
            "原因是缺少索引。让我修一下。",
            "I'll set max_retries to 7.",
            "Let's keep the old endpoint.",
            "Ich werde die Beträge in Cent speichern.",
            "我将使用 pnpm 而不是 npm。",
        ] {
            assert!(concludes(text), "{text}");
        }
    }
}
