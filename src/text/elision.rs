//! Marks: what replaces removed text.
//!
//! Every mark says how much is gone, in Chinese or English, as the conversation. Marks in either language are recognised in
//! any conversation, for its language may change.

use memchr::memmem;

use crate::tokens::Tokens;

use super::language::Language;

/// The style of the marks in a text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks<'o> {
    pub language: Language,
    /// The file with the whole text.
    pub archive_path: Option<&'o str>,
}

#[cfg(test)]
impl<'o> Marks<'o> {
    /// Returns English ones that name `archive_path`.
    pub fn at(archive_path: &'o str) -> Self {
        Self { archive_path: Some(archive_path), ..Self::default() }
    }
}

/// The languages that marks are written in.
const LANGUAGES: [Language; 2] = [Language::Other, Language::Chinese];

const fn is_chinese(language: Language) -> bool {
    matches!(language, Language::Chinese)
}

/// Returns the words of a language.
const fn words(language: Language, english: &'static str, chinese: &'static str) -> &'static str {
    if is_chinese(language) { chinese } else { english }
}

/// Replaces a missing result.
pub const MISSING_RESULT: &str = "[no result was recorded for this call]";

/// Returns the note for `messages` messages that were left out: nine tokens with framing, and a few more if they are
/// scattered.
pub fn note(messages: usize, is_scattered: bool, language: Language) -> String {
    let plural = if messages == 1 { "" } else { "s" };
    let where_else = if is_scattered { words(language, SCATTERED, "，此处及下文") } else { "" };
    let messages = grouped(messages as u64);
    if is_chinese(language) {
        format!("[{OMITTED}{messages} 条消息{where_else}]")
    } else {
        format!("[{messages} message{plural} left out{where_else}]")
    }
}

/// Starts the measure of a Chinese mark, as in documents 001 and 004.
const OMITTED: &str = "已省略 ";

/// Most messages between two gaps that share a note.
pub const NEAR_GAPS: usize = 16;

const SCATTERED: &str = " here and below";

/// Returns the number of messages of a [`note`], and whether they are scattered; `None` for any other text.
///
/// Matches a whole note only: a user's text behind such a beginning is not one.
pub fn read_note(text: &str) -> Option<(usize, bool)> {
    let digits = text.strip_prefix('[')?.trim_start_matches(OMITTED).split(' ').next()?;
    let messages = digits.replace(',', "").parse().ok()?;
    let is_of = |is_scattered| LANGUAGES.iter().any(|&language| note(messages, is_scattered, language) == text);
    [false, true].into_iter().find(|&is_scattered| is_of(is_scattered)).map(|is| (messages, is))
}

/// Returns whether a text may have a [`note`] or a ledger; cheap to deny for most texts.
pub fn may_have_note(text: &str) -> bool {
    [LEFT_OUT, OMITTED].iter().any(|words| memmem::find(text.as_bytes(), words.trim().as_bytes()).is_some())
}

/// Returns the mark for a removed middle part.
pub fn gap(omitted: &str, language: Language) -> String {
    gap_of(omitted, omitted.bytes().filter(|&b| b == b'\n').count() as u64, language)
}

/// Returns the mark for `omitted`, a removed middle part that holds `lines` lines.
pub fn gap_of(omitted: &str, lines: u64, language: Language) -> String {
    let chars = omitted.chars().count() as u64;
    if is_chinese(language) {
        let gone = Gone { lines: if lines > 1 { lines } else { 0 }, chars, similar: false };
        ["\n", &first_gap(gone, Marks { language, archive_path: None }), "\n"].concat()
    } else if lines > 1 {
        format!("\n[... {} lines, {} characters left out ...]\n", grouped(lines), grouped(chars))
    } else {
        format!("\n[... {} characters left out ...]\n", grouped(chars))
    }
}

/// The size of a gap in a text.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Gone {
    /// Whole lines; below two the mark has the characters.
    pub lines: u64,
    /// Characters, if known for every part of the gap; 0 otherwise.
    pub chars: u64,
    /// Whether all lines repeat earlier ones.
    pub similar: bool,
}

impl Gone {
    /// Joins this gap with the next one.
    pub fn and(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            chars: if self.chars == 0 || other.chars == 0 { 0 } else { self.chars + other.chars },
            similar: self.similar && other.similar,
        }
    }

    fn measure(self, language: Language) -> String {
        if is_chinese(language) {
            let lines = (self.lines > 0).then(|| [&grouped(self.lines), " 行"].concat());
            let chars = (self.lines == 0 || self.chars > 0).then(|| [&grouped(self.chars), " 个字符"].concat());
            return lines.into_iter().chain(chars).collect::<Vec<_>>().join("，");
        }
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

/// Around the measure of a mark that explains itself, and of a later one.
const FIRST: [&str; 2] = ["[... ", " ...]"];
const LATER: [&str; 2] = ["[…", "]"];
/// Follows the measure of a mark that explains itself.
const LEFT_OUT: &str = " left out";
/// Precedes the path of the original.
const ALL_OF_IT: [&str; 2] = ["; all of it: ", "；全文见："];

const fn all_of_it(language: Language) -> &'static str {
    words(language, ALL_OF_IT[0], ALL_OF_IT[1])
}

/// Splits the inside of a mark into its measure and its archive path.
fn split_archive_path(inner: &str) -> (&str, Option<&str>) {
    let found = ALL_OF_IT.iter().find_map(|before| inner.split_once(before));
    found.map_or((inner, None), |(measure, archive_path)| (measure, Some(archive_path)))
}

/// Returns whether a mark can name `path` and be recognised.
pub fn can_name(path: &str) -> bool {
    ![FIRST[1], ALL_OF_IT[0], ALL_OF_IT[1], LEFT_OUT].iter().any(|part| path.contains(part))
}

/// Iterates over the positions behind `directory` in the paths of marks.
pub fn named_in<'t>(text: &'t str, directory: &str) -> impl Iterator<Item = &'t str> {
    const ENDS: [&str; 6] = [LEFT_OUT, TOKENS, " 行", " 个字符", " 项", " 个键"];
    let is_mark = |before: &str| ENDS.iter().any(|end| before.ends_with(end));
    let find = move |opens: &str| {
        let opens = [opens, directory, "/"].concat();
        let ends = text.match_indices(&opens).filter(|&(at, _)| is_mark(&text[..at]));
        ends.map(|(at, opens)| &text[at + opens.len()..]).collect::<Vec<_>>()
    };
    ALL_OF_IT.into_iter().flat_map(find)
}

/// Returns whether a mark can show `text`: it must not end the mark or start a line.
pub fn can_show(text: &str) -> bool {
    can_name(text) && !text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// Returns the mark for the first gap of a text, which explains itself and names the archive path.
pub fn first_gap(gone: Gone, Marks { language, archive_path }: Marks<'_>) -> String {
    let (before, archive_path) = archive_path.map_or(("", ""), |archive_path| (all_of_it(language), archive_path));
    let (opens, ends) = if is_chinese(language) { (OMITTED, "") } else { ("", LEFT_OUT) };
    [FIRST[0], opens, &gone.measure(language), ends, before, archive_path, FIRST[1]].concat()
}

/// Returns the mark for a later gap: four tokens, where ASCII dots and spaces take seven.
pub fn later_gap(gone: Gone, language: Language) -> String {
    let measure = match gone.lines {
        0 => gone.measure(language),
        lines if gone.similar && lines > 1 => {
            [&grouped(lines), words(language, " similar lines", " 行相似内容")].concat()
        }
        _ => Gone { chars: 0, ..gone }.measure(language),
    };
    [LATER[0], &measure, LATER[1]].concat()
}

/// Longest gap mark: its words and a path.
pub const MAX_GAP_BYTES: usize = 512;

/// Returns the gap and the archive path of a mark; `None` if `text` is not a mark.
///
/// Ignores spaces and line ends around it, also one spelled out in a JSON string. Reads at most five bytes of other texts.
pub fn read_gap(text: &str) -> Option<(Gone, Option<&str>)> {
    let spaces = text.bytes().take_while(|byte| matches!(byte, b' ' | b'\n')).count();
    let text = &text[spaces..];
    let [open, close] = form_of(text).filter(|_| text.len() <= MAX_GAP_BYTES)?;
    let mark = text.trim_end();
    let inner = mark.strip_suffix("\\n").unwrap_or(mark).strip_prefix(open)?.strip_suffix(close)?;
    let (measure, archive_path) = split_archive_path(inner);
    let measure = measure.strip_suffix(LEFT_OUT).or(measure.strip_prefix(OMITTED)).unwrap_or(measure);
    let mut gone = Gone::default();
    for part in measure.split(", ").flat_map(|part| part.split('，')) {
        let (number, unit) = part.split_once(' ')?;
        let number = ungrouped(number)?;
        gone.similar |= matches!(unit, "similar lines" | "行相似内容");
        match unit {
            "line" | "lines" | "similar lines" | "行" | "行相似内容" => gone.lines = number,
            "character" | "characters" | "个字符" => gone.chars = number,
            _ => return None,
        }
    }
    Some((gone, archive_path))
}

/// Returns what stands around the measure of the mark that `text` may begin with.
fn form_of(text: &str) -> Option<[&'static str; 2]> {
    [FIRST, LATER].into_iter().find(|[open, _]| text.starts_with(open))
}

/// Returns the start of the first mark that explains itself, complete or not.
pub fn opens_gap(text: &str) -> Option<usize> {
    let opens = |behind: &str| behind.starts_with(OMITTED) || behind.starts_with(|c: char| c.is_ascii_digit());
    text.match_indices(FIRST[0]).map(|(at, _)| at).find(|at| opens(&text[at + FIRST[0].len()..]))
}

/// Returns the range of the next gap mark within a line.
pub fn find_gap(line: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    let opens = |from: usize| {
        let mut brackets = line[from..].match_indices('[').map(|(at, _)| from + at);
        brackets.find_map(|at| Some((at, form_of(&line[at..])?)))
    };
    while let Some((start, [open, close])) = opens(from) {
        let mut window = line.len().min(start + MAX_GAP_BYTES);
        while !line.is_char_boundary(window) {
            window -= 1;
        }
        let end = line[start..window].find(close).map(|at| start + at + close.len());
        if let Some(end) = end.filter(|&end| read_gap(&line[start..end]).is_some()) {
            return Some((start, end));
        }
        from = start + open.len();
    }
    None
}

/// The key of the member that replaces removed members.
pub const GAP_KEY: &str = "…";

/// The elements of a JSON container, as a mark calls them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Elements {
    Rows,
    Items,
    Keys,
}

/// Returns the mark for `gone` of `total` elements of a JSON container.
///
/// It is the body of a string literal: between ellipses in an array, behind [`GAP_KEY`] in an object. The archive path is
/// [`escaped`].
pub fn json_gap(gone: u64, total: u64, what: Elements, Marks { language, archive_path }: Marks<'_>) -> String {
    let (before, archive_path) = archive_path.map_or(("", ""), |archive_path| (all_of_it(language), archive_path));
    let (gone, total) = (grouped(gone), grouped(total));
    let what = match what {
        Elements::Rows => words(language, "rows", "行"),
        Elements::Items => words(language, "items", "项"),
        Elements::Keys => words(language, "keys", "个键"),
    };
    if is_chinese(language) {
        format!("共 {total} {what}，{OMITTED}{gone} {what}{before}{archive_path}")
    } else {
        format!("{gone} of {total} {what}{LEFT_OUT}{before}{archive_path}")
    }
}

/// Returns an archive path escaped for a JSON string.
pub fn escaped(archive_path: &str) -> String {
    let no_control = archive_path.chars().map(|c| if c.is_control() { ' ' } else { c });
    no_control.flat_map(|c| matches!(c, '"' | '\\').then_some('\\').into_iter().chain([c])).collect()
}

/// Returns the removed and total elements that the source of a JSON mark states.
pub fn read_json_gap(source: &str) -> Option<(u64, u64)> {
    let body = json_gap_body(source)?;
    // The key of a member may have a number: see `free_key`.
    let value = body.split_once('"').filter(|(key, _)| key.bytes().all(|byte| byte.is_ascii_digit()));
    let body = value.map_or(body, |(_, value)| value).trim_start_matches(|c: char| !c.is_ascii_digit());
    if let Some((total, gone)) = body.split_once(OMITTED) {
        let number = |text: &str| ungrouped(text.split_once(' ')?.0);
        return Some((number(gone)?, number(total)?));
    }
    let (gone, rest) = body.split_once(" of ")?;
    let (total, rest) = rest.split_once(' ')?;
    rest.contains(LEFT_OUT).then_some((ungrouped(gone)?, ungrouped(total)?))
}

/// Returns the text behind the ellipsis at the start of a JSON string, raw or escaped.
pub fn json_gap_body(source: &str) -> Option<&str> {
    let body = source.strip_prefix('"')?;
    body.strip_prefix(GAP_KEY).or_else(|| body.strip_prefix("\\u2026"))
}

/// Returns the mark for a whole text: `what` names it, such as `read_file src/a.py result`; the file with it is named.
pub fn whole(what: &str, tokens: Tokens, Marks { language, archive_path }: Marks<'_>) -> String {
    let (before, archive_path) = archive_path.map_or(("", ""), |archive_path| (all_of_it(language), archive_path));
    format!("[{what}{}{}{TOKENS}{before}{archive_path}]", words(language, WHOLE[0], WHOLE[1]), grouped(tokens.0))
}

const WHOLE: [&str; 2] = [" left out: ", "已省略："];
/// Ends the measure of a [`whole`].
const TOKENS: &str = " tokens";

/// Returns the name of a tool's result in a [`whole`].
pub fn result_of(tool: &str, path: Option<&str>, language: Language) -> String {
    let (before, path) = path.map_or(("", ""), |path| (" ", path));
    [tool, before, path, words(language, " result", " 的结果")].concat()
}

/// Longest mark: its words, the path of a call and that of the original.
const MAX_WHOLE_BYTES: usize = 1024;

/// Returns whether `text` is a [`whole`].
pub fn is_whole(text: &str) -> bool {
    let measure = |text: &str| {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        let measure = split_archive_path(inner).0.strip_suffix(TOKENS)?;
        let (_, number) = WHOLE.iter().find_map(|words| measure.rsplit_once(words))?;
        Some(!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b','))
    };
    text.len() <= MAX_WHOLE_BYTES && measure(text) == Some(true)
}

/// Returns the mark at the end of a shortened argument.
pub fn cut_string(chars: usize) -> String {
    format!("[... {chars}{CUT_STRING}")
}

const CUT_STRING: &str = " characters left out]";

/// Returns whether the body of a string literal ends or begins in a [`cut_string`].
pub fn is_cut_string(body: &str) -> bool {
    body.ends_with(CUT_STRING) || behind_cut_string(body).len() < body.len()
}

/// Returns the body of a string literal without the [`cut_string`] that it begins with.
pub fn behind_cut_string(body: &str) -> &str {
    let digits = body.strip_prefix("[... ").unwrap_or_default();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(CUT_STRING).filter(|_| rest.len() < digits.len()).unwrap_or(body)
}

/// Parses the number of a mark; `None` above any of ours, so that sums cannot wrap.
fn ungrouped(digits: &str) -> Option<u64> {
    digits.replace(',', "").parse::<u32>().ok().map(u64::from)
}

/// Formats a number with thousands separators.
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

    fn is_noted(text: &str) -> bool {
        read_note(text).is_some()
    }

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
        assert_eq!(note(1, false, Language::Other), "[1 message left out]");
        assert_eq!(note(1200, true, Language::Other), "[1,200 messages left out here and below]");
        assert!(is_noted(&note(1, false, Language::Other)) && is_noted(&note(2, true, Language::Other)));
        assert_eq!(read_note(&note(1200, false, Language::Other)), Some((1200, false)));
        assert_eq!(read_note(&note(1200, true, Language::Other)), Some((1200, true)));
        assert_eq!(read_note("[1 messages left out]"), None);
        assert_eq!(read_note("[1 message left out] and so on"), None);
        assert_eq!(gap("a\nb\nc\n", Language::Other), "\n[... 3 lines, 6 characters left out ...]\n");
        let gone = Gone { lines: 120, chars: 5400, similar: false };
        assert_eq!(first_gap(gone, Marks::default()), "[... 120 lines, 5,400 characters left out ...]");
        assert_eq!(
            first_gap(gone, Marks::at("a.txt")),
            "[... 120 lines, 5,400 characters left out; all of it: a.txt ...]"
        );
        assert_eq!(later_gap(gone, Language::Other), "[…120 lines]");
        assert_eq!(later_gap(Gone { similar: true, ..gone }, Language::Other), "[…120 similar lines]");
        assert_eq!(later_gap(Gone { lines: 0, ..gone }, Language::Other), "[…5,400 characters]");
        assert_eq!(read_gap(&first_gap(gone, Marks::at("a.txt"))), Some((gone, Some("a.txt"))));
        assert_eq!(read_gap(&later_gap(gone, Language::Other)), Some((Gone { chars: 0, ..gone }, None)));
        assert_eq!(read_gap("[... and so on ...]"), None);
        assert_eq!(find_gap("ab […7 characters] c"), Some((3, 20)));
        assert_eq!(find_gap("[…] [... 7 characters left out ...] c"), Some((6, 37)));
        assert_eq!(
            json_gap(46, 60, Elements::Rows, Marks::at(&escaped(r#"C:\"a""#))),
            r#"46 of 60 rows left out; all of it: C:\\\"a\""#
        );
        assert_eq!(read_json_gap(r#""… 1,046 of 1,060 rows left out …""#), Some((1046, 1060)));
        assert_eq!(read_json_gap(r#""\u2026": "3 of 12 keys left out""#), Some((3, 12)));
        assert_eq!(read_json_gap(r#""…2": "3 of 12 keys left out""#), Some((3, 12)));
        assert_eq!(read_json_gap(r#""…2": "3 of them""#), None);
        assert_eq!(whole("exec result", Tokens(5400), Marks::default()), "[exec result left out: 5,400 tokens]");
        let named =
            whole("read_file a.py result", Tokens(9), Marks::at(".nanobot-context/results/0123456789abcdef.txt"));
        let expected =
            "[read_file a.py result left out: 9 tokens; all of it: .nanobot-context/results/0123456789abcdef.txt]";
        assert_eq!(named, expected);
        assert!(is_whole(&whole("exec result", Tokens(5400), Marks::default())) && is_whole(&named));
        assert!(!is_whole("[exec result left out: many tokens]") && !is_whole(&format!("{named} and more")));
        assert!(can_name("~/a b/results") && !can_name("a ...]/results"));
        assert!(can_show("app/[id]/page.tsx") && can_show("工作 1.txt"));
        for hidden in ["a\nb", "a\u{2028}b", "a\u{1b}[2J", "a ...]", "a left out: 1 tokens]", "a; all of it: b"] {
            assert!(!can_show(hidden), "{hidden:?}");
        }
        assert_eq!(gap("日本語", Language::Other), "\n[... 3 characters left out ...]\n");
    }

    #[test]
    fn marks_in_chinese_say_the_same_and_are_read_again() {
        let language = Language::Chinese;
        let (marks, at) = (Marks { language, archive_path: None }, Marks { language, archive_path: Some("a.txt") });
        assert_eq!(note(1200, false, language), "[已省略 1,200 条消息]");
        assert_eq!(note(2, true, language), "[已省略 2 条消息，此处及下文]");
        for is_scattered in [false, true] {
            assert_eq!(read_note(&note(1200, is_scattered, language)), Some((1200, is_scattered)));
        }
        assert_eq!(read_note("[已省略 2 条消息] 还有"), None);
        assert_eq!(gap("a\nb\nc\n", language), "\n[... 已省略 3 行，6 个字符 ...]\n");
        assert_eq!(gap("日本語", language), "\n[... 已省略 3 个字符 ...]\n");
        let gone = Gone { lines: 120, chars: 5400, similar: false };
        assert_eq!(first_gap(gone, at), "[... 已省略 120 行，5,400 个字符；全文见：a.txt ...]");
        assert_eq!(read_gap(&first_gap(gone, at)), Some((gone, Some("a.txt"))));
        assert_eq!(read_gap(&first_gap(gone, marks)), Some((gone, None)));
        let similar = Gone { similar: true, chars: 0, ..gone };
        for gone in [similar, Gone { chars: 0, ..gone }, Gone { lines: 0, ..gone }] {
            assert_eq!(read_gap(&later_gap(gone, language)), Some((gone, None)));
        }
        assert_eq!(json_gap(1046, 1060, Elements::Rows, at), "共 1,060 行，已省略 1,046 行；全文见：a.txt");
        assert_eq!(read_json_gap(r#""… 共 1,060 行，已省略 1,046 行 …""#), Some((1046, 1060)));
        assert_eq!(read_json_gap(r#""…2": "共 12 个键，已省略 3 个键""#), Some((3, 12)));
        let named = whole(&result_of("read_file", Some("a.py"), language), Tokens(9), at);
        assert_eq!(named, "[read_file a.py 的结果已省略：9 tokens；全文见：a.txt]");
        assert!(is_whole(&named) && !is_whole(&format!("{named} 还有")) && !is_whole("[结果已省略：很多 tokens]"));
        assert!(!can_name("a；全文见：b"));
    }
}
