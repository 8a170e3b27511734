//! What stands in the place of something that was cut.
//!
//! Every mark says how much is gone. Marks are English whatever the conversation's language: they are for the model, and
//! one form is one to recognise.

/// What takes the place of a result that was never given.
pub const MISSING_RESULT: &str = "[no result was recorded for this call]";

/// Returns the note for `messages` messages that were left out: nine tokens with its framing, or a few more where they are
/// scattered among those that follow.
pub fn note(messages: usize, is_scattered: bool) -> String {
    let plural = if messages == 1 { "" } else { "s" };
    let where_else = if is_scattered { SCATTERED } else { "" };
    format!("[{} message{plural} left out{where_else}]", grouped(messages as u64))
}

/// Messages between two gaps that share a note, at most.
pub const NEAR_GAPS: usize = 8;

const SCATTERED: &str = " here and between the next ones";

/// Returns whether `text` is a [`note`].
///
/// Only the whole of it, to the letter, so that nothing a user writes behind such a beginning is taken for one.
pub fn is_note(text: &str) -> bool {
    read_note(text).is_some()
}

/// Returns how many messages a [`note`] stands for, and whether they are scattered; `None` for any other text.
pub fn read_note(text: &str) -> Option<(usize, bool)> {
    let digits = text.strip_prefix('[')?.split(' ').next()?;
    let messages = digits.replace(',', "").parse().ok()?;
    [false, true].into_iter().find(|&is_scattered| note(messages, is_scattered) == text).map(|is| (messages, is))
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

/// What a gap inside a text has lost.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Gone {
    /// Whole lines; below two the characters are what a mark names.
    pub lines: u64,
    /// Characters, where every part of the gap says how many it had; 0 otherwise.
    pub chars: u64,
    /// All of them repeat lines that stand before.
    pub similar: bool,
}

impl Gone {
    /// Returns this gap and the one behind it as one.
    pub fn and(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            chars: if self.chars == 0 || other.chars == 0 { 0 } else { self.chars + other.chars },
            similar: self.similar && other.similar,
        }
    }

    fn measure(self) -> String {
        let plural = |n: u64| if n == 1 { "" } else { "s" };
        match (self.lines, self.chars) {
            (0, chars) => format!("{} character{}", grouped(chars), plural(chars)),
            (lines, 0) => format!("{} line{}", grouped(lines), plural(lines)),
            (lines, chars) => {
                format!("{} line{}, {} character{}", grouped(lines), plural(lines), grouped(chars), plural(chars))
            }
        }
    }
}

const GAP_OPEN: &str = "[... ";
const GAP_CLOSE: &str = " ...]";
/// What stands behind the measure of a mark that explains itself.
pub const LEFT_OUT: &str = " left out";
/// What stands before the path of the original.
pub const ALL_OF_IT: &str = "; all of it: ";

/// Returns whether marks can name `path` and be read again.
pub fn can_name(path: &str) -> bool {
    ![GAP_CLOSE, ALL_OF_IT, LEFT_OUT].iter().any(|part| path.contains(part))
}

/// Returns whether a mark can show `text`, which may come from anywhere: it must neither end the mark nor begin a line.
pub fn can_show(text: &str) -> bool {
    can_name(text) && !text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// Returns the mark for the first gap of a text, which explains itself; `origin` is where the whole text can be read.
pub fn first_gap(gone: Gone, origin: Option<&str>) -> String {
    let (before, origin) = origin.map_or(("", ""), |origin| (ALL_OF_IT, origin));
    [GAP_OPEN, &gone.measure(), LEFT_OUT, before, origin, GAP_CLOSE].concat()
}

/// Returns the mark for a later gap: six tokens or so.
pub fn later_gap(gone: Gone) -> String {
    match gone.lines {
        0 => [GAP_OPEN, &gone.measure(), GAP_CLOSE].concat(),
        lines if gone.similar && lines > 1 => [GAP_OPEN, &grouped(lines), " similar lines", GAP_CLOSE].concat(),
        _ => [GAP_OPEN, &Gone { chars: 0, ..gone }.measure(), GAP_CLOSE].concat(),
    }
}

/// Longest gap mark that is looked for in a text: its words and a path.
pub const MAX_GAP_BYTES: usize = 512;

/// Returns what the mark of a gap stands for, and the origin that it names; `None` where `text` is something else.
///
/// Spaces and line ends around the mark are ignored. Looks at no more than five bytes of a text that is no mark.
pub fn read_gap(text: &str) -> Option<(Gone, Option<&str>)> {
    let spaces = text.bytes().take_while(|byte| matches!(byte, b' ' | b'\n')).count();
    let text = &text[spaces..];
    if !text.starts_with(GAP_OPEN) || text.len() > MAX_GAP_BYTES {
        return None;
    }
    let inner = text.trim_end().strip_prefix(GAP_OPEN)?.strip_suffix(GAP_CLOSE)?;
    let (measure, origin) =
        inner.split_once(ALL_OF_IT).map_or((inner, None), |(measure, origin)| (measure, Some(origin)));
    let mut gone = Gone { similar: measure.contains(" similar"), ..Gone::default() };
    for part in measure.strip_suffix(LEFT_OUT).unwrap_or(measure).split(", ") {
        let (number, unit) = part.split_once(' ')?;
        let number = ungrouped(number)?;
        match unit {
            "line" | "lines" | "similar lines" => gone.lines = number,
            "character" | "characters" => gone.chars = number,
            _ => return None,
        }
    }
    Some((gone, origin))
}

/// Returns where the next gap mark within a line begins and ends.
pub fn find_gap(line: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    let opens = |from: usize| {
        let mut brackets = line[from..].match_indices('[').map(|(at, _)| from + at);
        brackets.find(|&at| line[at..].starts_with(GAP_OPEN))
    };
    while let Some(start) = opens(from) {
        let mut window = line.len().min(start + MAX_GAP_BYTES);
        while !line.is_char_boundary(window) {
            window -= 1;
        }
        let end = line[start..window].find(GAP_CLOSE).map(|at| start + at + GAP_CLOSE.len());
        if let Some(end) = end.filter(|&end| read_gap(&line[start..end]).is_some()) {
            return Some((start, end));
        }
        from = start + GAP_OPEN.len();
    }
    None
}

/// The key of the member that stands for members left out.
pub const GAP_KEY: &str = "…";

/// Returns what stands for `gone` of the `total` rows, items or keys (`what`) of a JSON container.
///
/// The body of a string literal; an array has it between ellipses, an object behind [`GAP_KEY`]. The origin is [`escaped`].
pub fn json_gap(gone: u64, total: u64, what: &str, origin: Option<&str>) -> String {
    let (before, origin) = origin.map_or(("", ""), |origin| (ALL_OF_IT, origin));
    format!("{} of {} {what}{LEFT_OUT}{before}{origin}", grouped(gone), grouped(total))
}

/// Returns an origin as it stands in the body of a JSON string.
pub fn escaped(origin: &str) -> String {
    let no_control = origin.chars().map(|c| if c.is_control() { ' ' } else { c });
    no_control.flat_map(|c| matches!(c, '"' | '\\').then_some('\\').into_iter().chain([c])).collect()
}

/// Returns how many of how many elements the source of a JSON element or member says to be left out.
pub fn read_json_gap(source: &str) -> Option<(u64, u64)> {
    let body = json_gap_body(source)?;
    // The key of a member may have a number: see `free_key`.
    let value = body.split_once('"').filter(|(key, _)| key.bytes().all(|byte| byte.is_ascii_digit()));
    let body = value.map_or(body, |(_, value)| value).trim_start_matches(|c: char| !c.is_ascii_digit());
    let (gone, rest) = body.split_once(" of ")?;
    let (total, rest) = rest.split_once(' ')?;
    rest.contains(LEFT_OUT).then_some((ungrouped(gone)?, ungrouped(total)?))
}

/// Returns what follows the ellipsis that opens a JSON string, raw or escaped.
pub fn json_gap_body(source: &str) -> Option<&str> {
    let body = source.strip_prefix('"')?;
    body.strip_prefix(GAP_KEY).or_else(|| body.strip_prefix("\\u2026"))
}

/// Returns what stands for a whole text: `what` names it, such as `read_file src/a.py result`, and `origin` is where it
/// can be read.
pub fn whole(what: &str, tokens: u64, origin: Option<&str>) -> String {
    let (before, origin) = origin.map_or(("", ""), |origin| (ALL_OF_IT, origin));
    format!("[{what}{WHOLE}{}{TOKENS}{before}{origin}]", grouped(tokens))
}

const WHOLE: &str = " left out: ";
/// What ends the measure of a [`whole`].
pub const TOKENS: &str = " tokens";

/// Longest text that is looked at for being a mark: its words, the path of a call and that of the original.
const MAX_WHOLE_BYTES: usize = 1024;

/// Returns whether `text` is a [`whole`].
pub fn is_whole(text: &str) -> bool {
    let measure = |text: &str| {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        let measure = inner.split_once(ALL_OF_IT).map_or(inner, |(before, _)| before);
        let (_, number) = measure.strip_suffix(TOKENS)?.rsplit_once(WHOLE)?;
        Some(!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b','))
    };
    text.len() <= MAX_WHOLE_BYTES && measure(text) == Some(true)
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

/// Returns a number of a mark; `None` where it is larger than any of ours, so that sums of what a text claims cannot wrap.
fn ungrouped(digits: &str) -> Option<u64> {
    digits.replace(',', "").parse::<u32>().ok().map(u64::from)
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
    fn a_number_that_no_mark_has_is_not_read() {
        for number in ["18446744073709551615", "18,446,744,073,709,551,615", "4294967296"] {
            assert_eq!(read_gap(&format!("[... {number} lines, {number} characters left out ...]")), None);
            assert_eq!(read_json_gap(&format!(r#""… {number} of {number} rows left out …""#)), None);
        }
        assert!(read_gap("[... 4294967295 lines left out ...]").is_some());
    }

    #[test]
    fn marks_say_how_much_is_gone() {
        assert_eq!(note(1, false), "[1 message left out]");
        assert_eq!(note(1200, true), "[1,200 messages left out here and between the next ones]");
        assert!(is_note(&note(1, false)) && is_note(&note(2, true)));
        assert_eq!(read_note(&note(1200, false)), Some((1200, false)));
        assert_eq!(read_note(&note(1200, true)), Some((1200, true)));
        assert_eq!(read_note("[1 messages left out]"), None);
        assert_eq!(read_note("[1 message left out] and so on"), None);
        assert_eq!(gap("a\nb\nc\n"), "\n[... 3 lines, 6 characters left out ...]\n");
        let gone = Gone { lines: 120, chars: 5400, similar: false };
        assert_eq!(first_gap(gone, None), "[... 120 lines, 5,400 characters left out ...]");
        assert_eq!(first_gap(gone, Some("a.txt")), "[... 120 lines, 5,400 characters left out; all of it: a.txt ...]");
        assert_eq!(later_gap(gone), "[... 120 lines ...]");
        assert_eq!(later_gap(Gone { similar: true, ..gone }), "[... 120 similar lines ...]");
        assert_eq!(later_gap(Gone { lines: 0, ..gone }), "[... 5,400 characters ...]");
        assert_eq!(read_gap(&first_gap(gone, Some("a.txt"))), Some((gone, Some("a.txt"))));
        assert_eq!(read_gap(&later_gap(gone)), Some((Gone { chars: 0, ..gone }, None)));
        assert_eq!(read_gap("[... and so on ...]"), None);
        assert_eq!(find_gap("ab [... 7 characters ...] c"), Some((3, 25)));
        assert_eq!(
            json_gap(46, 60, "rows", Some(&escaped(r#"C:\"a""#))),
            r#"46 of 60 rows left out; all of it: C:\\\"a\""#
        );
        assert_eq!(read_json_gap(r#""… 1,046 of 1,060 rows left out …""#), Some((1046, 1060)));
        assert_eq!(read_json_gap(r#""\u2026": "3 of 12 keys left out""#), Some((3, 12)));
        assert_eq!(read_json_gap(r#""…2": "3 of 12 keys left out""#), Some((3, 12)));
        assert_eq!(read_json_gap(r#""…2": "3 of them""#), None);
        assert_eq!(whole("exec result", 5400, None), "[exec result left out: 5,400 tokens]");
        let named = whole("read_file a.py result", 9, Some(".nanobot-context/results/0123456789abcdef.txt"));
        let expected =
            "[read_file a.py result left out: 9 tokens; all of it: .nanobot-context/results/0123456789abcdef.txt]";
        assert_eq!(named, expected);
        assert!(is_whole(&whole("exec result", 5400, None)) && is_whole(&named));
        assert!(!is_whole("[exec result left out: many tokens]") && !is_whole(&format!("{named} and more")));
        assert!(can_name("~/a b/results") && !can_name("a ...]/results"));
        assert!(can_show("app/[id]/page.tsx") && can_show("工作 1.txt"));
        for hidden in ["a\nb", "a\u{2028}b", "a\u{1b}[2J", "a ...]", "a left out: 1 tokens]", "a; all of it: b"] {
            assert!(!can_show(hidden), "{hidden:?}");
        }
        assert_eq!(gap("日本語"), "\n[... 3 characters left out ...]\n");
    }
}
