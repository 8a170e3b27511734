//! Separates typed lines of a message from pasted ones, by form.

use std::ops::Range;

use crate::text::bytes::{has_time, lines};
use crate::text::envelope;
use crate::text::excerpt::is_fence;
use crate::text::segments::{is_excerpt, is_hit, is_of_report};

/// Most lines of a compiler's report between two that show code: the command, the function.
const BETWEEN_EXCERPTS: usize = 4;

/// Iterates over the lines of `text` that look typed; the first without what a channel put around it. O(n).
pub fn typed(text: &str) -> impl Iterator<Item = Range<usize>> {
    let (start, context) = (envelope::start(text), envelope::runtime_context(text).unwrap_or_default());
    let mail = mail(text, start);
    let (mut at, mut is_fenced, mut reported) = (0, false, 0);
    let mut all = lines(text);
    std::iter::from_fn(move || {
        let line = all.next()?;
        let mut range = at..at + line.len();
        at = range.end;
        reported = reported.max(lines_reported(line, lines(&text[at..])));
        let is_reported = reported > 0;
        reported = reported.saturating_sub(1);
        if range.contains(&start) && start > range.start {
            range = start..start + without_tag(&text[start..range.end]).len();
        }
        let line = &text[range.clone()];
        let is_fence = is_fence(line);
        is_fenced ^= is_fence;
        let is_users = range.start >= start && !context.contains(&range.start) && !mail.contains(&range.start);
        Some((is_users && !is_fence && !is_fenced && !is_reported && !is_material(line)).then_some(range))
    })
    .flatten()
}

/// Longest name of a header.
const MAX_HEADER_BYTES: usize = 16;

/// Names of the headers of a mail, in lower case.
const HEADERS: [&str; 30] = [
    "from",
    "to",
    "cc",
    "subject",
    "date",
    "sent",
    "von",
    "an",
    "betreff",
    "datum",
    "gesendet",
    "de",
    "à",
    "objet",
    "envoyé",
    "para",
    "asunto",
    "fecha",
    "assunto",
    "da",
    "oggetto",
    "от",
    "кому",
    "тема",
    "发件人",
    "收件人",
    "主题",
    "差出人",
    "件名",
    "宛先",
];

/// Those that only a mail has; `From:`, `To:` and `Date:` are of a journey, too.
const SUBJECTS: [&str; 9] = ["subject", "betreff", "objet", "asunto", "assunto", "oggetto", "тема", "主题", "件名"];

/// What nanobot puts before the mail by which a user writes to it. Source: nanobot 0.1.3.post7 to 0.3.5, `EmailChannel`.
const RECEIVED: &str = "Email received.";

/// Returns the range of a mail that was pasted: from its headers to the last paragraph, which may be the user's. One at the start of
/// the text from `begin` on may be how the user writes.
fn mail(text: &str, begin: usize) -> Range<usize> {
    // Where headers behind each other start, how many there are, and whether they are those of a mail.
    let (mut at, mut start, mut headers, mut is_mail) = (0, 0, 0, false);
    for line in lines(text) {
        match header(line) {
            Some(name) => {
                start = if headers == 0 { at } else { start };
                headers += 1;
                is_mail |= line.contains('@') || SUBJECTS.contains(&&*name);
            }
            None if headers > 1 && is_mail => break,
            None => (headers, is_mail) = (0, false),
        }
        at += line.len();
    }
    let before = text.get(begin..start).unwrap_or_default().trim();
    if headers < 2 || !is_mail || before.is_empty() || before == RECEIVED {
        return 0..0;
    }
    start..text.trim_end().rfind("\n\n").map_or(text.len(), |last| last.max(at))
}

/// Returns the name of a mail's header, in lower case.
fn header(line: &str) -> Option<String> {
    let (name, value) = line.split_once([':', '：'])?;
    let name = name.trim();
    let is_short = name.len() <= MAX_HEADER_BYTES && !value.trim().is_empty();
    let name = is_short.then(|| name.to_lowercase())?;
    HEADERS.contains(&&*name).then_some(name)
}

/// Returns how many lines from `line` on a compiler reported: up to the next that shows code, if that is near.
fn lines_reported<'t>(line: &str, behind: impl Iterator<Item = &'t str>) -> usize {
    let near = behind.take(BETWEEN_EXCERPTS + 1).take_while(|line| !line.trim().is_empty());
    let last = near.enumerate().filter(|(_, line)| is_excerpt(line)).last();
    last.filter(|_| is_of_report(line)).map_or(0, |(at, _)| at + 2)
}

/// Returns a line without a closing tag of an earlier line.
fn without_tag(line: &str) -> &str {
    let bare = line.trim_end();
    match bare.rfind("</") {
        Some(tag) if bare.ends_with('>') => &line[..tag],
        _ => line,
    }
}

/// Returns whether a line was pasted: a quotation, a table, markup, code, a line of a log, a numbered line of a file.
fn is_material(line: &str) -> bool {
    let bare = line.trim();
    let Some(&first) = bare.as_bytes().first() else { return true };
    if matches!(first, b'>' | b'|' | b'<' | b'{' | b'}' | b'[' | b'$' | b'@' | b'+' | b'/')
        || line.starts_with(['\t'])
        || line.starts_with("    ")
    {
        return true;
    }
    if is_excerpt(line) || is_hit(bare).is_some() {
        return true;
    }
    // A member of an object in JSON, an element of an array.
    if first == b'"' && (bare.contains("\":") || bare.ends_with("\",")) {
        return true;
    }
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let behind = &bare[digits..];
    if digits > 0 && (behind.starts_with(['|', '\t', '→']) || behind.starts_with(['-', ':', '/']) && digits > 1) {
        return true;
    }
    if bare.ends_with(['{', '}', ';', '\\', '=', '(']) || bare.ends_with("=>") {
        return true;
    }
    let symbols = bare.bytes().filter(|byte| IS_SYMBOL[usize::from(*byte)]).count();
    symbols * 8 > bare.len() && bare.len() > 16 || has_time(&bare.as_bytes()[..bare.len().min(24)])
}

/// Whether a byte is more common in code, markup and paths than in prose.
static IS_SYMBOL: [bool; 256] = {
    let (mut table, symbols, mut i) = ([false; 256], b"{}[]<>=_/\\|$#@&*^~", 0);
    while i < symbols.len() {
        table[symbols[i] as usize] = true;
        i += 1;
    }
    table
};
