//! Finds names as people write them in prose: `OPS-1442`, `14:35`, `Dr. Okafor`, `+41 44 555 01 27`, `订单号88213`, `￥1,400元`.
//!
//! Terms ([`super::terms`]) are for comparing, names for writing down. Words are recognised by form: digits among letters,
//! punctuation within, capitals inside a sentence; adjacent ones are one name.

use std::ops::Range;

use super::bytes::{has_hump, is_escaped};
use super::stop_words::is_stop_word;
use super::terms::{is_han, scan};

/// The form of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Plain,
    /// Starts with a capital.
    Capital,
    /// A number of up to three digits.
    Number,
    /// A longer number, or one with punctuation.
    LongNumber,
    /// A name by itself.
    Name,
}

#[derive(Debug)]
struct NameWord {
    range: Range<usize>,
    look: Look,
    /// Starts a sentence, so a capital means nothing.
    opens: bool,
}

/// Most Chinese characters of a name before its letters or digits, 合同编号, and of one that begins inside a longer row of them: words
/// have mostly two.
const MAX_HAN: usize = 4;
const HAN_WORD: usize = 2;
/// What stands before a word in a sentence and belongs to none: verbs and words without a meaning of their own.
const BEFORE_WORD: &str = "的了着过在是有和与及或把给打到加按看问用要可以先再就也都还很将被让从对向跟至叫查找请寄收买卖换装填写选点进出去来走坐乘住租付花共约每等即如比由自起只又才能会该这那此其您你我他她它们下上";

/// The most usual family names, and what stands before a person in a sentence.
const FAMILIES: &str = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文";
const BEFORE_PERSON: &str = "由给找叫和跟问请与向是让对了：、";

/// Returns the ranges of names in `text`, in order. O(n).
pub fn names(text: &str) -> Vec<Range<usize>> {
    let words = words(text);
    let mut names = persons(text);
    let mut i = 0;
    while i < words.len() {
        let first = i;
        i += 1;
        let is_model = is_model(text, &words, first);
        let has_unit = has_unit(text, &words[first]);
        if words[first].look == Look::Plain
            || words[first].look == Look::Number
                && !has_unit
                && !is_model
                && !is_grouped(text, &words, first)
                && !is_day(text, &words, first)
        {
            continue;
        }
        i += usize::from(is_model);
        while i < words.len() && goes_on(text, &words, first, i) {
            i += 1;
        }
        let span = &words[first..i];
        let is_name = |word: &NameWord| matches!(word.look, Look::Name | Look::LongNumber);
        let capitals = span.iter().filter(|word| word.look == Look::Capital).count();
        let opens_only = span[0].opens && span[0].range.len() <= 3 && capitals < 3;
        let has_number = capitals > 0 && span.iter().any(|word| word.look == Look::Number) && !span[0].opens;
        if is_model
            || has_unit
            || span.iter().any(is_name)
            || (capitals > 1 && !opens_only)
            || has_number
            || span.len() > 2
        {
            let start = if span[0].look == Look::Capital && opens_only && span.len() > 1 { &span[1] } else { &span[0] };
            let is_number =
                !has_unit && span.len() == 1 && text[span[0].range.clone()].bytes().all(|byte| byte.is_ascii_digit());
            let start = match first.checked_sub(1).map(|before| &words[before]) {
                // A number includes the word before it: "port 48211".
                Some(before) if is_number && !before.opens && text[before.range.end..start.range.start] == *" " => {
                    before
                }
                _ => start,
            };
            let name = start.range.start..span[span.len() - 1].range.end;
            let name = whole(text, with_parts(text, with_han(text, name)));
            i += words[i..].iter().take_while(|word| word.range.start < name.end).count();
            names.push(name);
        }
    }
    names.sort_by_key(|name| (name.start, std::cmp::Reverse(name.end)));
    let mut end = 0;
    names.retain(|name| {
        let is_apart = name.start >= end;
        end = end.max(name.end);
        is_apart
    });
    names
}

/// Returns the ranges of words with a capital inside a sentence, apart from those in `names`: "Anna, Bob and Chen".
pub fn capitals_beside(text: &str, names: &[Range<usize>]) -> Vec<Range<usize>> {
    let is_apart = |range: &Range<usize>| names.iter().all(|name| range.end <= name.start || name.end <= range.start);
    let capitals = words(text).into_iter().filter(|word| word.look == Look::Capital && !word.opens);
    capitals.map(|word| word.range).filter(is_apart).collect()
}

/// Returns whether a word continues the name that starts at `first`.
fn goes_on(text: &str, words: &[NameWord], first: usize, i: usize) -> bool {
    let between = &text[words[i - 1].range.end..words[i].range.start];
    let has_country = text[words[first].range.clone()].starts_with('+');
    let is_near = match between {
        " " => true,
        ". " => words[first..i].iter().all(|word| TITLES.contains(&&text[word.range.clone()])),
        " (" => i == first + 1 && has_country,
        ") " => i == first + 1 + usize::from(has_country) && is_grouped(text, words, first),
        _ => false,
    };
    let (before, look) = (words[i - 1].look, words[i].look);
    let has_digits = |look: Look| matches!(look, Look::Number | Look::LongNumber);
    is_near
        && match look {
            Look::Plain => false,
            Look::Capital => !has_digits(before) || i == first + 1 && is_day(text, words, first),
            Look::Name => {
                before == Look::Capital
                    || is_group(&text[words[i].range.clone()]) && is_code(before, &text[words[i - 1].range.clone()])
            }
            Look::Number | Look::LongNumber => {
                // An account number comes in fours behind its country: "CH93 0076 2011".
                let is_four = i > first + 1 && words[i - 1].range.len() == 4;
                // A sentence begins before a telephone number: "Call +44 20 7946 0958."
                if words[first].opens && i == first + 1 && is_grouped(text, words, i) {
                    return false;
                }
                before == Look::Capital || before == Look::Name || is_four || is_grouped(text, words, first)
            }
        }
}

/// Returns whether a word goes on a code in groups: the 2EL of KW17 2EL, the 3M02 of an account number.
fn is_group(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'-')
}

/// Returns whether a word is a group of a code: digits and capitals.
fn is_code(look: Look, word: &str) -> bool {
    matches!(look, Look::Name | Look::LongNumber)
        && word.len() <= MAX_GROUP_BYTES
        && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Most bytes of a group of a code.
const MAX_GROUP_BYTES: usize = 7;

/// Returns whether a number is the first group of a longer one: `+41 44 555`, `(415) 555-0132`.
fn is_grouped(text: &str, words: &[NameWord], first: usize) -> bool {
    let range = &words[first].range;
    text[range.clone()].starts_with('+')
        || (text[..range.start].ends_with('(') && text[range.end..].starts_with(") "))
        || is_spaced(text, words, first)
}

/// Returns whether a number is the first group of a telephone number or that of a card: `0682 507 6777`, `1637 8210 3361 1843`.
fn is_spaced(text: &str, words: &[NameWord], first: usize) -> bool {
    let is_digits = |word: &&NameWord| text[word.range.clone()].bytes().all(|byte| byte.is_ascii_digit());
    let is_next = |one: &NameWord, other: &NameWord| text[one.range.end..other.range.start] == *" ";
    let before = first.checked_sub(1).map(|at| &words[at]).filter(is_digits);
    if before.is_some_and(|before| is_next(before, &words[first])) {
        return false;
    }
    let mut groups: Vec<&NameWord> = Vec::new();
    for word in words[first..].iter().take(MAX_GROUPS + 1).take_while(is_digits) {
        if groups.last().is_some_and(|last| !is_next(last, word)) {
            break;
        }
        groups.push(word);
    }
    let digits: usize = groups.iter().map(|word| word.range.len()).sum();
    let is_card = groups.len() == 4 && groups.iter().all(|word| word.range.len() == 4);
    let is_telephone = (2..=MAX_GROUPS).contains(&groups.len()) && TELEPHONE_DIGITS.contains(&digits);
    is_card || is_telephone && text[words[first].range.start..].starts_with('0') && words[first].range.len() > 1
}

/// Most groups of a telephone number, and its digits.
const MAX_GROUPS: usize = 6;
const TELEPHONE_DIGITS: std::ops::RangeInclusive<usize> = 8..=12;

/// Returns whether a number is the day of a date that goes on in words: `24 March 2033`.
fn is_day(text: &str, words: &[NameWord], first: usize) -> bool {
    let Some([day, month, year]) = words.get(first..first + 3) else { return false };
    let spaces = [day.range.end..month.range.start, month.range.end..year.range.start];
    (day.look, month.look, year.look) == (Look::Number, Look::Capital, Look::LongNumber)
        && day.range.len() <= 2
        && year.range.len() == 4
        && spaces.into_iter().all(|space| text[space] == *" ")
}

/// Returns whether a number behind Chinese characters has a name behind it: 小米 14 Ultra.
fn is_model(text: &str, words: &[NameWord], first: usize) -> bool {
    let Some([NameWord { range, look: Look::Number, .. }, NameWord { range: next, look: Look::Capital, .. }]) =
        words.get(first..first + 2)
    else {
        return false;
    };
    text[..range.start].trim_end_matches(' ').ends_with(is_han) && text[range.end..next.start] == *" "
}

/// Returns a name with the Chinese characters that belong to it.
fn with_han(text: &str, name: Range<usize>) -> Range<usize> {
    let before = text[..name.start].strip_suffix(' ').unwrap_or(&text[..name.start]);
    let is_sign = text[name.start..].starts_with(|c: char| !c.is_alphanumeric());
    let han = han_word(before);
    let start = if han > 0 && !is_sign { before.len() - han } else { name.start };
    let opens = text[..start].ends_with('(') && text[start..].starts_with(|c: char| c.is_ascii_digit());
    start - usize::from(opens && text[start..name.end].contains(')'))..name.end
}

/// Returns the bytes of the Chinese word that a text ends with, before a number with 第 as before others; 0 without one.
fn han_word(text: &str) -> usize {
    let bare = text.strip_suffix('第').unwrap_or(text);
    let row = || bare.chars().rev().take_while(|&c| is_han(c) && !BEFORE_WORD.contains(c));
    let characters = if row().nth(MAX_HAN).is_some() { HAN_WORD } else { MAX_HAN };
    text.len() - bare.len() + row().take(characters).map(char::len_utf8).sum::<usize>()
}

/// Returns a name with what it goes on with behind Chinese characters: `HT-2024-沪-0193`, 沪建规〔2023〕12号, （2023）京0105民初4471号.
fn with_parts(text: &str, name: Range<usize>) -> Range<usize> {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let mut end = name.end;
    while let Some(rest) = text[end..].strip_prefix('-') {
        let han: usize = rest.chars().take(MAX_HAN).take_while(|&c| is_han(c)).map(char::len_utf8).sum();
        let Some(next) = rest[han..].strip_prefix('-').filter(|_| han > 0) else { break };
        let left = next.trim_start_matches(|c: char| is_word(c) || c == '-').len();
        if left == next.len() {
            break;
        }
        end = text.len() - left;
    }
    let brackets = [('〔', '〕'), ('（', '）')];
    let bracket =
        brackets.iter().find(|(open, close)| text[..name.start].ends_with(*open) && text[end..].starts_with(*close));
    let Some((open, close)) = bracket else { return name.start..end };
    let behind = &text[end + close.len_utf8()..];
    let number = &behind[..behind.find(|c: char| !is_word(c) && !is_han(c)).unwrap_or(behind.len())];
    let Some(number) = number.find('号').map(|last| &number[..last + '号'.len_utf8()]) else {
        return name.start..end;
    };
    if number.len() > MAX_CODE_BYTES || !number.contains(is_word) {
        return name.start..end;
    }
    let start = name.start - open.len_utf8();
    let word = if *open == '〔' { han_word(&text[..start]) } else { 0 };
    start - word..end + close.len_utf8() + number.len()
}

/// Signs of currencies.
fn is_currency(c: char) -> bool {
    matches!(c, '$' | '£' | '¥' | '￥' | '\u{20a0}'..='\u{20cf}')
}

/// Units behind a number and a space, the longer ones first.
const UNITS: [&str; 41] = [
    "km/h", "m/s", "kWh", "MWh", "KiB", "MiB", "GiB", "TiB", "GHz", "MHz", "kHz", "EUR", "USD", "GBP", "CHF", "JPY",
    "CNY", "RMB", "INR", "BRL", "KRW", "BTC", "ETH", "°C", "°F", "µg", "kB", "KB", "MB", "GB", "TB", "kW", "MW", "Hz",
    "km", "cm", "mm", "kg", "mg", "ml", "Ft",
];
/// Chinese, Japanese and Korean units, which stand right behind a number; another number may follow: 2039年9月22日.
const HAN_UNITS: &str = "元万亿号路楼室栋年月日원弄条幢座巷街层届丁目番地";
/// Those of an address, behind which a number is its next part: 88号302, 3丁目4-5.
const OF_ADDRESS: &str = "号弄幢座楼栋目番地";

/// Returns whether a word is a number with its unit. Chinese units alone say little: 3年, 2号楼.
fn has_unit(text: &str, word: &NameWord) -> bool {
    let end = word.range.end;
    let unit = &text[end..value_end(text, end)];
    matches!(word.look, Look::Number | Look::LongNumber)
        && !unit.is_empty()
        && (!unit.chars().all(|c| HAN_UNITS.contains(c)) || text[..word.range.start].ends_with('第'))
}

/// Returns the end of a value with its unit, whose number ends at `end`; `end` without one.
fn value_end(text: &str, end: usize) -> usize {
    // A month and a day have two digits: behind 0193 begins another word.
    let is_date = |at: usize| text[..at].bytes().rev().take(3).take_while(u8::is_ascii_digit).count() <= 2;
    let is_unit = |rest: &str| {
        rest.starts_with(|c| HAN_UNITS.contains(c))
            && (!rest.starts_with(['月', '日']) || is_date(text.len() - rest.len()))
    };
    let mut rest = &text[end..];
    while is_unit(rest) {
        let behind = rest.strip_prefix(|c| HAN_UNITS.contains(c)).unwrap_or(rest);
        let next = behind.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_address = rest.starts_with(|c| OF_ADDRESS.contains(c));
        rest = match next {
            _ if next.len() == behind.len() => behind,
            _ if is_unit(next) => next,
            _ if is_address => {
                return text.len() - next.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-').len();
            }
            _ => return text.len() - behind.len(),
        };
    }
    if rest.len() < text.len() - end || !text[..end].ends_with(|c: char| c.is_ascii_digit()) {
        return text.len() - rest.len();
    }
    let bare = rest.strip_prefix([' ', '\u{a0}', '\u{202f}']).unwrap_or(rest);
    let is_sign = |c: char| is_currency(c) && c != '$' || matches!(c, '%' | '‰' | '°');
    let is_unit = |unit: &&&str| {
        bare.strip_prefix(**unit).is_some_and(|behind| !behind.starts_with(|c: char| c.is_alphanumeric()))
    };
    let unit = UNITS.iter().find(is_unit).map(|unit| unit.len());
    let unit = unit.or_else(|| bare.chars().next().filter(|&c| is_sign(c)).map(char::len_utf8));
    // A currency may stand before the next number.
    let behind = |unit: usize| bare[unit..].starts_with(|c: char| c.is_ascii_digit());
    unit.filter(|&unit| !behind(unit)).map_or(end, |unit| text.len() - bare.len() + unit)
}

/// Most bytes of the signs before a path, and of a query.
const MAX_LEAD_BYTES: usize = 24;
const MAX_QUERY_BYTES: usize = 80;

/// Returns a name with what belongs to it as it was written: the signs before a path or an option, the query of a URL, the unit of
/// a value. Without the slash before it a path is another one.
pub fn whole(text: &str, name: Range<usize>) -> Range<usize> {
    let before = &text[text.ceil_char_boundary(name.start.saturating_sub(MAX_LEAD_BYTES))..name.start];
    let outside = before.trim_end_matches(['.', '/', '~', '-']);
    let lead = &before[outside.len()..];
    let is_lead = matches!(lead, "/" | "//" | "~/" | "--" | ".")
        || (lead.ends_with('/') && lead.trim_start_matches("../").trim_start_matches("./").is_empty());
    // `</b>` is no path, nor is what follows a word: `a + b/c`.
    let is_apart = !outside
        .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '<' | '_' | '\\' | ':' | ')' | ']' | '}' | '%' | '$'));
    let start = if is_lead && is_apart { name.start - lead.len() } else { name.start };
    let is_option = text[start..].starts_with("--");
    let is_address = text[name.clone()].contains("://");
    let is_query = |c: char| is_part(c) && c != ',' || matches!(c, '?' | '&' | '=' | ';' | '!' | '*' | '[' | ']');
    let rest = &text[name.end..];
    let goes_on = (is_address && rest.trim_start_matches('/').starts_with(['?', '#', '=']))
        || (is_option && rest.starts_with('='));
    if !goes_on {
        return start..value_end(text, name.end);
    }
    let query = &rest[..rest.find(|c: char| !is_query(c)).unwrap_or(rest.len())];
    let query =
        query.trim_end_matches(['?', '&', '=', ';', '!', '*', '[', ']', '.', ':', '\'', '’', '-', '+', '~', '\\']);
    start..name.end + if query.len() <= MAX_QUERY_BYTES { query.len() } else { 0 }
}

/// Most bytes of a code in groups: a UUID has 36.
const MAX_CODE_BYTES: usize = 40;

/// Returns the code in groups, or the address of mail, that a name is a part of: a group of a UUID is no name by itself.
pub fn code(text: &str, name: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_between = |at: usize| at > 0 && is_word(at - 1) && is_word(at + 1);
    let joins = |at: usize, by: &[u8]| is_word(at) || by.contains(&bytes[at]) && is_between(at);
    let before = (0..name.start).rev().take(MAX_CODE_BYTES);
    let start = before.take_while(|&at| joins(at, b"-@") && !is_escaped(bytes, at)).last();
    // The end of a path or of a version is no code.
    let start = start.filter(|&start| !text[..start].ends_with(['.', '/', ':'])).unwrap_or(name.start);
    let mut is_host = false;
    let behind = (name.end..bytes.len()).take(MAX_CODE_BYTES).take_while(|&at| {
        let joins = joins(at, if is_host { b"-." } else { b"-@" });
        is_host |= bytes[at] == b'@';
        joins
    });
    let end = behind.last().map_or(name.end, |last| last + 1);
    if end - start <= MAX_CODE_BYTES { start..end } else { name }
}

/// Returns probable ranges of Chinese persons' names.
fn persons(text: &str) -> Vec<Range<usize>> {
    let mut persons = Vec::new();
    if text.is_ascii() {
        return persons;
    }
    let mut before = None;
    for (at, c) in text.char_indices() {
        if before.is_some_and(|before| BEFORE_PERSON.contains(before)) && FAMILIES.contains(c) {
            let given: usize = text[at..].chars().take(3).take_while(|&c| is_han(c)).map(char::len_utf8).sum();
            if given > 2 * c.len_utf8() {
                persons.push(at..at + given);
            }
        }
        before = Some(c);
    }
    persons
}

/// Titles before a person or a place: "Prof. Lacey". Another short word with a full stop ends a sentence: "Ask Ruth. Sparrows came."
const TITLES: [&str; 16] =
    ["Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Sr", "Fr", "Hr", "Mme", "Lt", "Sgt", "Col", "Gen", "Capt", "Rev"];

/// Returns whether a character is part of a word, or punctuation within names.
fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '#' | '+' | '~' | '·' | '\'' | '’' | ',' | '\\' | '%')
        || is_currency(c)
        || (!c.is_ascii() && c.is_alphanumeric() && !is_han(c))
}

/// Returns whether a comma is part of a number that begins at `start`: `98,220.40`, `84,50`, but not between the cells of
/// `P-838,46.00`.
fn is_in_number(text: &str, start: usize, comma: usize) -> bool {
    let whole = text[start..comma].trim_start_matches(|c: char| is_currency(c) || matches!(c, '-' | '+'));
    let behind = text[comma + 1..].bytes().take_while(u8::is_ascii_digit).count();
    let mut groups = whole.split(['.', ',', '\'']);
    let is_number = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    groups.next().is_some_and(is_number)
        && groups.all(|group| is_number(group) && matches!(group.len(), 2 | 3))
        && (1..=3).contains(&behind)
}

/// Returns the words of a text, without Chinese ones.
fn words(text: &str) -> Vec<NameWord> {
    let (mut words, mut at, mut opens) = (Vec::new(), 0, true);
    while let Some(start) = text[at..].find(is_part).map(|found| at + found) {
        let gap = &text[at..start];
        opens |= gap.contains(['\n', '。', '！', '？', '*', '"', '“']);
        let ends = |(at, c): (usize, char)| !is_part(c) || c == ',' && !is_in_number(text, start, at);
        let end = text[start..].char_indices().map(|(at, c)| (start + at, c)).find(|&found| ends(found));
        let end = end.map_or(text.len(), |(end, _)| end.max(start + 1));
        let escape = escape_in(&text[start..end]).map(|escape| start + escape);
        at = escape.map_or(end, |escape| escape + r"\n".len());
        let end = escape.unwrap_or(end);
        let bare = text[start..end].trim_end_matches(['-', '.', '/', ':', ',', '\'', '’', '\\', '+', '~']);
        let trimmed = bare.trim_start_matches(['-', '.', ':', ',', '\'', '’', '/']);
        if trimmed.chars().any(char::is_alphanumeric) {
            let from = start + bare.len() - trimmed.len();
            let names_nothing = || is_first_person(trimmed) || opens && (is_stop(trimmed) || is_opener(trimmed));
            let look = match look(trimmed) {
                Look::Capital if names_nothing() => Look::Plain,
                look => look,
            };
            words.push(NameWord { range: from..from + trimmed.len(), look, opens });
            opens = text[start + bare.len()..end].contains(['.', ':']) && !text[start..end].starts_with("Dr");
        }
        opens |= escape.is_some() || text[at..].starts_with(['!', '?']);
    }
    words
}

/// Returns whether a word is "I", "I'm" or the like.
fn is_first_person(word: &str) -> bool {
    word.strip_prefix('I').is_some_and(|rest| rest.is_empty() || rest.starts_with(['\'', '’']))
}

/// Returns whether a word names nothing, whatever its first letter.
fn is_stop(word: &str) -> bool {
    let mut term = None;
    scan(word, |found, _| term = Some(found.short()));
    term.is_some_and(is_stop_word)
}

/// What a sentence begins with before a name: "Past Crow Hill", "Gestern Ruth".
const OPENERS: [&str; 112] = [
    "past",
    "beyond",
    "near",
    "across",
    "around",
    "yesterday",
    "today",
    "tomorrow",
    "tonight",
    "perhaps",
    "maybe",
    "below",
    "above",
    "behind",
    "beside",
    "inside",
    "outside",
    "beneath",
    "along",
    "toward",
    "towards",
    "among",
    "between",
    "during",
    "despite",
    "later",
    "soon",
    "suddenly",
    "finally",
    "meanwhile",
    "somewhere",
    "once",
    "even",
    "still",
    "another",
    "each",
    "every",
    "either",
    "neither",
    "although",
    "though",
    "because",
    "since",
    "unless",
    "until",
    "while",
    "after",
    "before",
    "opposite",
    "only",
    "gestern",
    "heute",
    "morgen",
    "vielleicht",
    "hinter",
    "neben",
    "unter",
    "über",
    "zwischen",
    "gegen",
    "durch",
    "ohne",
    "trotz",
    "während",
    "seit",
    "bald",
    "später",
    "plötzlich",
    "endlich",
    "jenseits",
    "nahe",
    "ayer",
    "hoy",
    "mañana",
    "quizás",
    "detrás",
    "cerca",
    "junto",
    "sobre",
    "entre",
    "desde",
    "hasta",
    "luego",
    "después",
    "antes",
    "hier",
    "aujourd'hui",
    "demain",
    "derrière",
    "près",
    "depuis",
    "après",
    "avant",
    "ieri",
    "oggi",
    "domani",
    "within",
    "through",
    "throughout",
    "underneath",
    "upon",
    "like",
    "unlike",
    "abends",
    "morgens",
    "mittags",
    "nachts",
    "sogar",
    "auch",
    "nur",
    "schon",
    "noch",
];

/// Returns whether a word is one of [`OPENERS`].
fn is_opener(word: &str) -> bool {
    let small = word.to_lowercase();
    OPENERS.contains(&&*small)
}

/// Returns where a name goes on behind an escaped end of line or tab, as in `cache\nRun`, `a.go\nb.go`; a path of Windows has a
/// lower-case letter there behind a folder, or a drive before it.
fn escape_in(word: &str) -> Option<usize> {
    let may_be = |at: &usize| {
        let behind = word[at + 1..].strip_prefix(['n', 'r', 't']);
        let ends_file = || word[..*at].rsplit(['\\', '/']).next().is_some_and(|file| file.contains('.'));
        behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_lowercase()) || ends_file())
    };
    let has_drive = matches!(word.as_bytes(), [drive, b':', b'\\', ..] if drive.is_ascii_alphabetic());
    word.match_indices('\\').map(|(at, _)| at).find(may_be).filter(|_| !has_drive)
}

/// Returns a name up to an escaped end of line; `None` if what stands before that is none.
pub fn without_escape(name: &str) -> Option<&str> {
    let Some(end) = escape_in(name) else { return Some(name) };
    Some(name[..end].trim_end_matches(['.', '/', ':', '-', '\\']))
        .filter(|name| matches!(look(name), Look::Name | Look::LongNumber))
}

/// From this length on an integer is an identifier. Source: future-reference recall at 25 % of the recorded runs, .754 with 8, .748
/// with 10 (item numbers of nine digits).
const MIN_IDENTIFIER: usize = 8;

/// Returns whether a name is an integer or a decimal number, and no identifier.
pub fn is_bare_number(name: &str) -> bool {
    let is_part = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, behind) = name.split_once(['.', ',']).unwrap_or((name, ""));
    !whole.is_empty() && is_part(whole) && is_part(behind) && (whole.len() < MIN_IDENTIFIER || whole.len() < name.len())
}

fn look(word: &str) -> Look {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    let is_word = |c: char| c.is_alphanumeric();
    let signs = word.chars().filter(|c| !is_word(*c) && !matches!(c, '\'' | '’' | ',' | '-')).count();
    match () {
        () if word.len() > 200 => Look::Plain,
        () if letters == 0 && digits > 3 => Look::LongNumber,
        () if letters == 0 && digits > 0 && word.starts_with(|c| c == '#' || is_currency(c)) => Look::Name,
        () if letters == 0 && digits > 2 && word.contains([':', '.', '-', '/']) => Look::LongNumber,
        () if letters == 0 => Look::Number,
        () if digits > 0 && word.len() > 2 => Look::Name,
        () if signs > 0 && !word.ends_with("'s") => Look::Name,
        () if word.matches('-').count() > 1 => Look::Name,
        () if has_hump(word.as_bytes()) => Look::Name,
        () if word.starts_with(char::is_uppercase) => Look::Capital,
        () => Look::Plain,
    }
}

/// Returns whether a word is a time to the minute, and no more: each line of a log has one.
pub fn is_clock(word: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once(':').is_some_and(|(hours, minutes)| is_digits(hours) && is_digits(minutes) && minutes.len() == 2)
}

/// Returns whether a word is a measure, a time to the second or one with its date, or a piece of that: `51ms`, `4.2KB`, `00:15:43`,
/// `2026-03-02T00:06`, `02T00`, `043Z`. Each line of a log has another.
pub fn is_measure(word: &str) -> bool {
    const UNITS: [&str; 17] =
        ["ns", "us", "µs", "ms", "s", "sec", "min", "h", "b", "kb", "mb", "gb", "kib", "mib", "gib", "%", "x"];
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
    let has_unit = rest.len() < word.len() && UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(rest));
    let has_seconds = || {
        let [hours, minutes, seconds] = *word.splitn(3, ':').collect::<Vec<_>>() else { return false };
        let is_pair = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_pair(hours) && is_pair(minutes) && seconds.get(..2).is_some_and(is_pair)
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_dated = || {
        let parts = word.trim_end_matches('Z').split_once('T');
        parts.is_some_and(|(date, time)| {
            date.split('-').all(is_digits) && time.split([':', '.', '+', '-']).all(is_digits)
        })
    };
    let is_fraction = || word.strip_suffix('Z').is_some_and(|digits| digits.len() > 1 && is_digits(digits));
    has_unit || has_seconds() || is_dated() || is_fraction()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        names(text).into_iter().map(|name| &text[name]).collect()
    }

    #[test]
    fn a_part_of_a_code_is_none() {
        for (text, part, is) in [
            ("id: 7cea943d-a332-2c5e-7b3d-d131ce36fd2f,", "a332", "7cea943d-a332-2c5e-7b3d-d131ce36fd2f"),
            (r#"{"sku": "SKU-D13A48"}"#, "D13A48", "SKU-D13A48"),
            (r"a\nSKU-D13A48", "D13A48", "SKU-D13A48"),
            ("<user9354@mail.example.com>", "user9354", "user9354@mail.example.com"),
            ("<anna@x.user9354.org>", "user9354", "user9354"),
            ("see v1.7.3-rc2.", "rc2", "rc2"),
            ("/a/D13A48/b", "D13A48", "D13A48"),
            ("D13A48", "D13A48", "D13A48"),
            ("日D13A48-日", "D13A48", "D13A48"),
            (&"ab12-".repeat(40), "ab12", "ab12"),
        ] {
            let at = text.find(part).expect("it stands there");
            assert_eq!(&text[code(text, at..at + part.len())], is, "{text}");
        }
    }

    #[test]
    fn a_measure_is_none() {
        for word in [
            "51ms",
            "4.2KB",
            "00:15:43",
            "00:15:43.120Z",
            "98%",
            "2026-03-02T00:06",
            "2026-03-02T00:06:11.5Z",
            "02T00",
            "043Z",
        ] {
            assert!(is_measure(word), "{word}");
        }
        for word in [
            "14:35",
            "x86",
            "4711",
            "a1b2",
            "v1.7.3",
            "5g",
            "10:20:x",
            "s3",
            ":8080",
            "2026-03-02",
            "T1000",
            "MT5",
            "5Z",
            "A043Z",
        ] {
            assert!(!is_measure(word), "{word}");
        }
    }

    #[test]
    fn a_time_to_the_minute_is_a_clock() {
        assert!(["14:35", "4:02"].into_iter().all(is_clock));
        assert!(!["14:35:07", "2026-03-02", "10.0.0.7", "1:1", "a:10", "127:80"].into_iter().any(is_clock));
    }

    #[test]
    fn numbers_in_a_row_are_no_telephone_number() {
        for text in ["10 20 30 40 50", "0.5 0612 31", "rows 01 02 03"] {
            assert!(
                found(text).iter().all(|name| !name.contains(' ') || name.starts_with("rows")),
                "{text}: {:?}",
                found(text)
            );
        }
    }

    #[test]
    fn a_file_ends_before_an_escaped_line_break() {
        assert_eq!(
            found(r"align_base_bucket.go\ndrain_open.go\njoin_column.go"),
            ["align_base_bucket.go", "drain_open.go", "join_column.go"]
        );
        assert_eq!(found(r"src\net\read.cs"), [r"src\net\read.cs"]);
    }

    #[test]
    fn a_name_is_found_as_somebody_would_write_it_down() {
        for (text, name) in [
            ("It was OPS-1442 that was put on hold.", "OPS-1442"),
            ("the image has CVE-2026-18001 in it", "CVE-2026-18001"),
            ("Back to v1.7.3, please.", "v1.7.3"),
            ("在车上的，小米 14 Ultra掉了。", "小米 14 Ultra"),
            ("it goes to IBAN CH93 0076 2011 6238 5295 7 by Friday", "IBAN CH93 0076 2011 6238 5295 7"),
            ("It says UTC+2. The rest is plain.", "UTC+2"),
            ("It ends on 2026-11-04 at noon", "2026-11-04"),
            ("it leaves at 14:35 from there", "14:35"),
            ("Parcel #A-1190 was left", "Parcel #A-1190"),
            ("it came to €3,250.", "€3,250"),
            ("it listens on port 48211 behind", "port 48211"),
            ("call +41 44 555 01 27 after six", "+41 44 555 01 27"),
            ("he answers at (415) 555-0132 now", "(415) 555-0132"),
            ("call +1 (600) 555-8580 after six", "+1 (600) 555-8580"),
            ("she is at 0682 507 6777 until six", "0682 507 6777"),
            ("call 06 12 34 56 78 after six", "06 12 34 56 78"),
            ("pay with 1637 8210 3361 1843, please", "1637 8210 3361 1843"),
            ("write to lena.k@firma.ch only", "lena.k@firma.ch"),
            ("they live in redis.internal:6380 since", "redis.internal:6380"),
            ("moved to bucket cold-storage-eu in spring", "cold-storage-eu"),
            ("she flies with LH 454 at dusk", "LH 454"),
            ("the keys are with Marta Lindqvist today", "Marta Lindqvist"),
            ("a letter from Dr. Okafor came", "Dr. Okafor"),
            ("she wants the KX-100 Mini in blue", "KX-100 Mini"),
            ("ask @infra-oncall first", "@infra-oncall"),
            ("it is in /etc/nginx/nginx.conf, or was", "/etc/nginx/nginx.conf"),
            ("run `./run/app.py` again", "./run/app.py"),
            ("run ../run/app.py again", "../run/app.py"),
            ("kept in ~/lumen/app.py now", "~/lumen/app.py"),
            ("start it with --max-old-space=4096 only", "--max-old-space=4096"),
            ("see https://a.example.org/x?id=77&y=2#frag.", "https://a.example.org/x?id=77&y=2#frag"),
            ("see (https://a.example.org/x) there", "https://a.example.org/x"),
            ("not earlier than 24 March 2033 at all", "24 March 2033"),
            ("it came to 8665,34 €, then less", "8665,34 €"),
            ("and ₹1,23,456 for the rest", "₹1,23,456"),
            ("with 3.5 GB of it left", "3.5 GB"),
            ("at 40 km/h or so", "40 km/h"),
            ("heated to 21 °C at night", "21 °C"),
            ("ask Prof. Dr. Ilse Quast-Haas there", "Prof. Dr. Ilse Quast-Haas"),
            ("it was published (2003) in print", "2003"),
        ] {
            assert_eq!(found(text), [name], "{text}");
        }
        for (text, name) in [
            ("可以先打19354712641问一下再过去。", "19354712641"),
            ("加微信wanglei_8649要备注小区名字。", "微信wanglei_8649"),
            ("空调型号格力KFR-35GW用久了滴水。", "格力KFR-35GW"),
            ("月租谈到5900，押金另算。", "5900"),
            ("deliveries to KW17 2EL cost more", "KW17 2EL"),
            ("we took 3RT2 016-1BB41 for it", "3RT2 016-1BB41"),
            ("on FR14 2004 1010 0505 0001 3M02 606 since", "FR14 2004 1010 0505 0001 3M02 606"),
        ] {
            assert_eq!(found(text), [name], "{text}");
        }
        for (text, name) in [
            ("房东说押金是￥1400元，搬走时退还。", "￥1400元"),
            ("订单号88213的包裹", "订单号88213"),
            ("停在门口的车是沪A·7K391，挡住了", "沪A·7K391"),
            ("想要的平板是华为 MatePad Pro 13.2，白色", "华为 MatePad Pro 13.2"),
            ("合同由王建国保管", "王建国"),
            ("定于2039年9月22日举行", "2039年9月22日"),
            ("合同编号HT-2024-沪-0193月底前寄到了。", "合同编号HT-2024-沪-0193"),
            ("通知是沪建规〔2023〕12号，下月起执行。", "沪建规〔2023〕12号"),
            ("（2023）京0105民初4471号里写的是押金", "（2023）京0105民初4471号"),
            ("按民法典第577条押金应当退还。", "民法典第577条"),
            ("看的是静安路88弄3号602室，朝南。", "静安路88弄3号602室"),
            ("西荻北3丁目4-5の部屋", "西荻北3丁目4-5"),
        ] {
            assert!(found(text).iter().any(|found| found.contains(name)), "{text}: {:?}", found(text));
        }
    }

    #[test]
    fn a_word_that_names_nothing_is_no_part_of_one() {
        assert_eq!(found("What I said in June I meant. Where I'm from. Would Anna mind?"), [""; 0]);
        assert_eq!(found("What Anna Lind said"), ["Anna Lind"]);
        assert_eq!(found("Wann Anna Lind kommt"), ["Anna Lind"]);
        assert_eq!(found("Past Crow Hill they rest. Gestern Anna Lind."), ["Crow Hill", "Anna Lind"]);
    }

    #[test]
    fn a_name_ends_at_an_escaped_end_of_line() {
        assert_eq!(found(r"in agent-cb6\nRun it with\n\tGC_MB"), ["agent-cb6", "GC_MB"]);
        assert_eq!(without_escape(r"agent-cb6\n"), Some("agent-cb6"));
        assert_eq!([without_escape(r"cache\nRun"), without_escape(r"strongly.\nRun")], [None; 2]);
        for path in [r"C:\Users\N7\n", r"src\new_a.py", "a_b"] {
            assert_eq!(without_escape(path), Some(path));
        }
    }

    #[test]
    fn a_cell_ends_at_its_comma() {
        assert_eq!(
            found("P-838,46.00\nRE-12345,Kranz,84,50\n2026-03-05,1204.50"),
            ["P-838", "46.00", "RE-12345", "84,50", "2026-03-05", "1204.50"]
        );
    }

    #[test]
    fn an_integer_or_a_decimal_is_a_bare_number() {
        assert!(["4711", "60.45", "0.123456789", "1,5"].into_iter().all(is_bare_number));
        assert!(
            !["10.0.0.7", "2026-03-02", "port 4711", "v1.2", "3.5 GB", "1656367028", ""]
                .into_iter()
                .any(is_bare_number)
        );
    }

    #[test]
    fn prose_without_names_has_none() {
        for text in [
            "The morning crew went through the usual list. Our neighbour sorted 12 boxes, and then had lunch.",
            "Well-read people don't mind. \"Nobody\" came!",
            "It is one or the other, and </b> ends it; 3 percent, 20 mice.",
            "他等了3年，买了2号楼。",
            "楼下的邻居一起整理了一排旧书架，天气不错。",
            "",
        ] {
            assert_eq!(found(text), Vec::<&str>::new(), "{text}");
        }
    }
}
