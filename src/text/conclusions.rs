//! Tells what the model found or decided from what it announces: "Let me look at a.py."

use super::sentences::sentences;

/// Starts of sentences that announce a call, in lower case, and words that may stand before them.
const ANNOUNCING: [&str; 62] = [
    "let me",
    "let's",
    "let us",
    "i'll",
    "i will",
    "i'm going to",
    "i am going to",
    "i'm now",
    "i'm checking",
    "i need to",
    "i should",
    "i want to",
    "i can",
    "we need to",
    "we'll",
    "we will",
    "now i",
    "now let",
    "now update",
    "now add",
    "now fix",
    "now run",
    "now check",
    "now the",
    "now for",
    "next",
    "then",
    "first",
    "checking",
    "looking",
    "reading",
    "running",
    "opening",
    "searching",
    "please hold on",
    "ich werde",
    "ich schaue",
    "ich prüfe",
    "als nächstes",
    "zuerst",
    "schauen wir",
    "je vais",
    "voyons",
    "d'abord",
    "ensuite",
    "voy a",
    "vamos a",
    "veamos",
    "primero",
    "vou ",
    "vamos ",
    "сейчас",
    "теперь",
    "давайте",
    "让我",
    "我来",
    "我先",
    "我将",
    "接下来",
    "首先",
    "まず",
    "次に",
];
const FILLERS: [&str; 12] =
    ["good", "great", "perfect", "ok", "okay", "now", "also", "sure", "so", "and", "好的", "现在"];

/// Fewest bytes of a sentence that says anything: "Good catch!" does not.
const MIN_BYTES: usize = 12;

/// Returns whether a sentence of `text`, which stands beside calls, is more than their announcement. O(n).
pub fn concludes(text: &str) -> bool {
    conclusions(text).next().is_some()
}

/// Returns the sentences of `text`, which stands beside calls, that are more than their announcement. O(n).
pub fn conclusions(text: &str) -> impl Iterator<Item = &str> {
    sentences(text).map(|at| text[at].trim()).filter(|said| said.len() >= MIN_BYTES && !announces(said))
}

pub(super) fn announces(said: &str) -> bool {
    if said.ends_with([':', '：']) {
        return true;
    }
    let lower = said[..said.floor_char_boundary(48)].to_lowercase().replace('’', "'");
    let mut rest = lower.as_str();
    loop {
        let is_end = |rest: &str| !rest.starts_with(char::is_alphanumeric) || !rest.is_ascii();
        if ANNOUNCING.iter().any(|start| rest.strip_prefix(start).is_some_and(is_end)) {
            return true;
        }
        let Some(behind) = FILLERS.iter().find_map(|word| rest.strip_prefix(word)) else { return false };
        rest = behind.trim_start_matches(|c: char| !c.is_alphanumeric());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(concludes(text), "{text}");
        }
    }
}
