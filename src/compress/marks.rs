//! What stands in the place of something that was cut.
//!
//! Every mark says how much is gone. Marks are English whatever the conversation's language: they are for the model, and
//! one form is one to recognise.

/// How a note for messages left out begins.
const NOTE: &str = "[nanobot-context: ";

/// What takes the place of a result that was never given.
pub const MISSING_RESULT: &str = "[no result was recorded for this call]";

/// Returns the note for `messages` consecutive messages of `tokens` tokens that were left out.
pub fn note(messages: usize, tokens: u64) -> String {
    let plural = if messages == 1 { "" } else { "s" };
    format!("{NOTE}{} earlier message{plural} left out here, {} tokens]", grouped(messages as u64), grouped(tokens))
}

/// Returns whether `text` is a [`note`].
///
/// Only the whole of it, to the letter, so that nothing a user writes behind such a beginning is taken for one.
pub fn is_note(text: &str) -> bool {
    read_note(text).is_some_and(|(messages, tokens)| note(messages, tokens) == text)
}

/// Returns how many messages and tokens a [`note`] stands for; `None` for any other text.
pub fn read_note(text: &str) -> Option<(usize, u64)> {
    let mut numbers = text
        .strip_prefix(NOTE)?
        .split(|c: char| !c.is_ascii_digit() && c != ',')
        .filter_map(|digits| digits.replace(',', "").parse::<u64>().ok());
    Some((usize::try_from(numbers.next()?).ok()?, numbers.next()?))
}

/// Returns the mark for a middle part that was cut out of a text.
pub fn gap(omitted: &str) -> String {
    let chars = omitted.chars().count() as u64;
    let lines = omitted.bytes().filter(|&b| b == b'\n').count() as u64;
    if lines > 1 {
        format!("\n[... {} lines, {} characters left out ...]\n", grouped(lines), grouped(chars))
    } else {
        format!("\n[... {} characters left out ...]\n", grouped(chars))
    }
}

/// Returns what stands for a whole text: `what` names it, such as `read_file src/a.py result`.
pub fn whole(what: &str, tokens: u64) -> String {
    format!("[{what}{WHOLE}{} tokens]", grouped(tokens))
}

const WHOLE: &str = " left out: ";

/// Longest text that is looked at for being a mark.
const MAX_WHOLE_BYTES: usize = 512;

/// Returns whether `text` is a [`whole`].
pub fn is_whole(text: &str) -> bool {
    text.len() <= MAX_WHOLE_BYTES && text.starts_with('[') && text.ends_with(" tokens]") && text.contains(WHOLE)
}

/// Returns the mark behind a string of arguments that was cut.
pub fn cut_string(chars: usize) -> String {
    format!("[... {chars}{CUT_STRING}")
}

const CUT_STRING: &str = " characters left out]";

/// Characters of a [`cut_string`] at most.
pub const CUT_STRING_CHARS: usize = 6 + 20 + CUT_STRING.len();

/// Returns whether the body of a string literal ends in a [`cut_string`].
pub fn is_cut_string(body: &str) -> bool {
    body.ends_with(CUT_STRING)
}

/// Returns a number with its thousands separated, as a reader expects.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_say_how_much_is_gone() {
        assert_eq!(note(1, 5), "[nanobot-context: 1 earlier message left out here, 5 tokens]");
        assert_eq!(note(1200, 1_234_567), "[nanobot-context: 1,200 earlier messages left out here, 1,234,567 tokens]");
        assert!(is_note(&note(1, 5)));
        assert_eq!(read_note(&note(1200, 1_234_567)), Some((1200, 1_234_567)));
        assert_eq!(read_note("1 message, 2 tokens"), None);
        assert_eq!(gap("a\nb\nc\n"), "\n[... 3 lines, 6 characters left out ...]\n");
        assert_eq!(gap("日本語"), "\n[... 3 characters left out ...]\n");
    }
}
