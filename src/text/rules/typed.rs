//! Separates typed lines of a message from pasted ones, by form.

use std::ops::Range;

use super::others::of_others;
use crate::text::bytes::{has_digit, lines, time};
use crate::text::envelope::{self, member};
use crate::text::excerpt::is_fence;
use crate::text::segments::{SUBJECTS, is_excerpt, is_hit, is_of_report};

/// Most lines of a compiler's report between two that show code: the command, the function.
const BETWEEN_EXCERPTS: usize = 4;

/// Iterates over the lines of `text` that look typed; the first without what a channel put around it. O(n).
pub fn typed(text: &str) -> impl Iterator<Item = Range<usize>> {
    let (start, blocks) = (envelope::start(text), envelope::host_blocks(text));
    let mail = mail(text, start);
    let mut others = of_others(text).into_iter().peekable();
    let mut rows = rows(text).peekable();
    let is_alone = is_alone(&text[start..]);
    let (mut at, mut is_fenced, mut reported, mut is_own) = (0, false, 0, false);
    lines(text).filter_map(move |line| {
        let mut range = at..at + line.len();
        // Behind what others of a group said stands what is said to the bot.
        let own = std::mem::replace(&mut is_own, line.trim() == TO_THE_BOT).then(|| member(line)).flatten();
        range.start += own.map_or(0, |member| line.len() - line.trim_start().len() + member.len());
        at = range.end;
        reported = reported.max(lines_reported(line, lines(&text[at..])));
        let is_reported = reported > 0;
        reported = reported.saturating_sub(1);
        if range.contains(&start) && start > range.start {
            range = start..start + without_tag(&text[start..range.end]).len();
        }
        if let Some(words) = envelope::spoken(&text[range.clone()]) {
            range = range.start + words.start..range.start + words.end;
        }
        let line = &text[range.clone()];
        let is_fence = is_fence(line);
        is_fenced ^= is_fence;
        while rows.next_if(|rows| rows.end <= range.start).is_some() {}
        while others.next_if(|others| others.end <= range.start).is_some() {}
        // Behind the colon of a line, where that hands something over.
        let from = others.peek().map_or(usize::MAX, |others| others.start);
        let is_of_others = from <= range.start;
        range.end = range.end.min(from.max(range.start));
        let is_row = rows.peek().is_some_and(|rows| rows.contains(&range.start));
        let is_users = range.start >= start
            && !is_of_others
            && !blocks.iter().any(|block| block.contains(&range.start))
            && !mail.contains(&range.start)
            && !is_row;
        (is_users && !is_fence && !is_fenced && !is_reported && (is_alone || !is_material(line))).then_some(range)
    })
}

/// What stands between the lines of a group and the message to the bot. Source: nanobot 0.2 to 0.3.5, `SignalChannel`.
const TO_THE_BOT: &str = "---";

/// Most bytes of a line that stands alone.
const MAX_ALONE_BYTES: usize = 200;

/// Returns whether a text is one line in words, as nobody pastes: "2014-04-05 was the day we married.", "$5 is my limit."
fn is_alone(text: &str) -> bool {
    const MIN_WORDS: usize = 3;
    let bare = text.trim();
    let is_word = |word: &&str| {
        word.len() > 1
            && word.trim_end_matches(['.', ',', '!']).bytes().all(|byte| byte.is_ascii_alphabetic() || byte >= 0x80)
    };
    bare.len() <= MAX_ALONE_BYTES
        && !bare.contains('\n')
        && !bare.starts_with(['<', '{', '/', '@'])
        && bare.split(' ').filter(is_word).count() >= MIN_WORDS
}

/// Longest name of a header.
const MAX_HEADER_BYTES: usize = 16;

/// Names of headers, in lower case, that mails do not have alone: `From:`, `To:` and `Date:` are of a journey, too.
const HEADERS: [&str; 21] = [
    "from",
    "to",
    "cc",
    "date",
    "sent",
    "von",
    "an",
    "datum",
    "gesendet",
    "de",
    "à",
    "envoyé",
    "para",
    "fecha",
    "da",
    "от",
    "кому",
    "发件人",
    "收件人",
    "差出人",
    "宛先",
];

/// What nanobot puts before the mail by which a user writes to it. Source: nanobot 0.1.3.post7 to 0.3.5, `EmailChannel`.
const RECEIVED: &str = "Email received.";

/// Returns the range of a mail that was pasted: from its headers to the last paragraph, which may be the user's. One at the start of
/// the text from `begin` on may be how the user writes.
fn mail(text: &str, begin: usize) -> Range<usize> {
    // Where headers behind each other start, how many there are, and whether they are those of a mail.
    let (mut at, mut start, mut headers, mut is_mail) = (0, 0, 0, false);
    for line in lines(text) {
        match header(line) {
            Some(is_subject) => {
                start = if headers == 0 { at } else { start };
                headers += 1;
                is_mail |= is_subject || line.contains('@');
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
    let last = text.trim_end().rfind("\n\n").filter(|last| !text[at.min(*last)..*last].trim().is_empty());
    start..last.unwrap_or(text.len())
}

/// Returns whether a line that may be the header of a mail is its subject.
fn header(line: &str) -> Option<bool> {
    let (name, value) = line.split_once([':', '：'])?;
    let name = name.trim();
    if name.len() > MAX_HEADER_BYTES || value.trim().is_empty() {
        return None;
    }
    let name = name.to_lowercase();
    let is_subject = SUBJECTS.contains(&&*name);
    (is_subject || HEADERS.contains(&&*name)).then_some(is_subject)
}

/// Fewest lines of rows, fewest cells of each, and how many of these have digits. Beside a few pasted lines without a fence 7 of 320
/// sentences of the user stayed at a quarter of the tokens, with these 143.
const MIN_ROWS: usize = 2;
const MIN_CELLS: usize = 5;
const MIN_NUMBERS: usize = 2;

/// Iterates over lines behind each other that have as many cells with numbers, as nobody types: a listing, CSV, a log. O(n).
fn rows(text: &str) -> impl Iterator<Item = Range<usize>> {
    let (mut at, mut lines) = (0, lines(text).peekable());
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            let (start, cells) = (at, cells(line));
            at += line.len();
            let mut many = 1;
            while let Some(line) = lines.next_if(|line| cells.is_some() && self::cells(line) == cells) {
                at += line.len();
                many += 1;
            }
            if many >= MIN_ROWS {
                return Some(start..at);
            }
        }
    })
}

/// Returns how many cells a row has; `None` where a line is none.
fn cells(line: &str) -> Option<usize> {
    let (mut cells, mut numbers) = (0, 0);
    for cell in line.split([' ', ',', ';', '\t', '|']).filter(|cell| !cell.trim().is_empty()) {
        cells += 1;
        numbers += usize::from(has_digit(cell));
    }
    (cells >= MIN_CELLS && numbers >= MIN_NUMBERS).then_some(cells)
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
    let begins_with_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_amount = first == b'$' && begins_with_digit(&bare[1..]);
    if matches!(first, b'>' | b'|' | b'<' | b'{' | b'}' | b'[' | b'$' | b'@' | b'+' | b'/') && !is_amount
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
    // "10-15 people come", "30/11 is my last day" are no numbers of lines.
    let is_more = behind.starts_with(['-', '/']) && begins_with_digit(&behind[1..]);
    if digits > 0
        && (behind.starts_with(['|', '\t', '→']) || behind.starts_with(['-', ':', '/']) && digits > 1 && !is_more)
    {
        return true;
    }
    let bare = wide_words(bare).unwrap_or(bare);
    if bare.ends_with(['{', '}', ';', '\\', '=', '(']) || bare.ends_with("=>") {
        return true;
    }
    // Words in bold are words: "**Bob**: Never call me."
    let bold = 2 * bare.matches("**").count();
    let symbols = bare.bytes().filter(|byte| IS_SYMBOL[usize::from(*byte)]).count() - bold;
    symbols * 8 > bare.len() && bare.len() > 16 || is_stamped(bare)
}

/// Returns the sentences in a script without spaces at the start of a line, whatever stands behind them: 以后不要在周五部署。 {"id": 5}
fn wide_words(line: &str) -> Option<&str> {
    let (end, stop) = line.char_indices().rfind(|(_, c)| matches!(c, '。' | '！' | '？'))?;
    Some(&line[..end + stop.len_utf8()]).filter(|said| !said.contains(['"', '\'', '(', '{', '=', ';', '<', '`']))
}

/// Most bytes of a line up to the end of its stamp.
const MAX_STAMP_BYTES: usize = 24;

/// Returns whether a line begins with a time or a date, or with a name and one set apart, as in a log or an exported chat. One in a
/// sentence stamps nothing: "The train got in at 9:08."
fn is_stamped(line: &str) -> bool {
    let near = &line.as_bytes()[..line.len().min(MAX_STAMP_BYTES)];
    let Some(time) = time(near) else { return false };
    let (before, behind) = (&line[..time.start], &line[time.end..]);
    if near[time].contains(&b':') && behind.starts_with(':') {
        return true;
    }
    let mut names = before.split(|c: char| !c.is_alphabetic()).filter(|name| !name.is_empty()).peekable();
    if names.peek().is_none() {
        return !behind.starts_with(char::is_alphabetic) || behind.starts_with('T');
    }
    let behind = behind.trim_start();
    let is_apart = behind.is_empty() || behind.starts_with([':', ')', ']', '>', '|', '-', '–', '—']);
    is_apart && !before.ends_with(char::is_alphabetic) && !names.any(|name| name.starts_with(char::is_lowercase))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_before_code_in_their_line_are_typed() {
        for line in ["以后不要在周五部署。 {\"id\": 5}", "所有金额都用欧元。 a=1;", "これからは敬語で。{x}"]
        {
            assert!(!is_material(line), "{line}");
        }
        for line in ["print(\"你好。\");", "let x = '好。';", "{\"a\": \"以后不要。\"}"] {
            assert!(is_material(line), "{line}");
        }
    }
}
