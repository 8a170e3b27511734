//! Numbers with their units, and those that are no names: `3.5 GB`, `88号302`, `14:35`, `51ms`.

use super::words::{Look, NameWord};

/// Signs of currencies.
pub(super) fn is_currency(c: char) -> bool {
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
pub(super) fn has_unit(text: &str, word: &NameWord) -> bool {
    let end = word.range.end;
    let unit = &text[end..value_end(text, end)];
    matches!(word.look, Look::Number | Look::LongNumber)
        && !unit.is_empty()
        && (!unit.chars().all(|c| HAN_UNITS.contains(c)) || text[..word.range.start].ends_with('第'))
}

/// Returns the end of a value with its unit, whose number ends at `end`; `end` without one.
pub(super) fn value_end(text: &str, end: usize) -> usize {
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

/// From this length on an integer is an identifier. Source: future-reference recall at 25 % of the recorded runs, .754 with 8, .748
/// with 10 (item numbers of nine digits).
const MIN_IDENTIFIER: usize = 8;

/// Returns whether a name is an integer or a decimal number, and no identifier.
pub fn is_bare_number(name: &str) -> bool {
    let is_part = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, behind) = name.split_once(['.', ',']).unwrap_or((name, ""));
    !whole.is_empty() && is_part(whole) && is_part(behind) && (whole.len() < MIN_IDENTIFIER || whole.len() < name.len())
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
