//! Finds dates and times that people write in several ways: `3 October`, `October 3rd`, `3.10.`, `10月3日` are `10-03`, as is
//! `2026-10-03`, of a calendar's `20261003T090000`, too; `2:30 pm` is `14:30`.
//!
//! Terms ([`super::terms`]) of a text besides its words, so that either way of writing finds the other. The time of a log's line, to
//! the second, is none.

use std::collections::HashMap;
use std::fmt::Write;
use std::iter;
use std::ops::Range;
use std::sync::LazyLock;

use jiff::civil::Date;

/// Names of the months, by language: a question may have another than the text.
const MONTHS: [&str; 12] = [
    "january jan januar jänner janvier enero gennaio janeiro januari stycznia января січня ocak",
    "february feb februar février fevrier febrero febbraio fevereiro februari lutego февраля лютого şubat",
    "march mar märz mars marzo março maart marca марта березня mart",
    "april apr avril abril aprile kwietnia апреля квітня nisan",
    "may mai mayo maggio maio mei maja мая травня mayıs",
    "june jun juni juin junio giugno junho czerwca июня червня haziran",
    "july jul juli juillet julio luglio julho lipca июля липня temmuz",
    "august aug août aout agosto augustus sierpnia августа серпня ağustos",
    "september sep sept septembre septiembre settembre setembro września сентября вересня eylül",
    "october oct oktober okt octobre octubre ottobre outubro października октября жовтня ekim",
    "november nov novembre noviembre novembro listopada ноября листопада kasım",
    "december dec dezember dez décembre decembre diciembre dicembre dezembro grudnia декабря грудня aralık",
];

/// Most bytes of a date with its year, and of one with its time.
const MAX_BYTES: usize = 48;
const STAMP_BYTES: usize = 24;

/// Other numbers of four digits are no years.
const YEARS: Range<usize> = 1900..2200;

/// Words between a day and its month: `3 de octubre`, `3rd of October`.
const BETWEEN: [&str; 4] = ["de ", "of ", "di ", "d'"];

/// Returns the number of a month by its name.
fn month(name: &str) -> Option<usize> {
    static NUMBERS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
        let numbered =
            MONTHS.iter().zip(1..).flat_map(|(names, number)| names.split(' ').map(move |name| (name, number)));
        numbered.collect()
    });
    // No name is shorter or longer.
    (3..=20).contains(&name.len()).then(|| NUMBERS.get(&*name.to_lowercase()).copied()).flatten()
}

/// Returns whether the number of so many digits may be of a date or a time, by what stands beside it.
fn may_be(bytes: &[u8], start: usize, length: usize) -> bool {
    let next = bytes.get(start + length).copied().unwrap_or_default();
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte >= 0x80;
    let follows_word = || matches!(bytes[..start], [.., before, b' '] if is_letter(before) || before == b'.');
    match length {
        1 | 2 => matches!(next, b'.' | b'/' | b' ' | b'-' | b':') || is_letter(next) || follows_word(),
        4 => matches!(next, b'.' | b'/' | b'-') || next >= 0x80,
        8 => true,
        _ => false,
    }
}

/// Another way to write a date or a time.
#[derive(Debug)]
pub struct Spelling {
    pub date: String,
    /// Whether it is a name: the text has not year, month and day in this order already.
    pub is_name: bool,
}

/// Returns the other ways to write the date or the time whose first digit is at `start`; O(1).
pub fn spellings(text: &str, start: usize) -> Vec<Spelling> {
    let Some(dated) = Dated::unless_stamp(text, start) else { return Vec::new() };
    let mut spellings = Vec::new();
    for (year, month, day) in dated.days {
        let mut date = String::new();
        let _ = write!(date, "{month:02}-{day:02}");
        let with_year = year.filter(|_| !dated.is_its_name).map(|year| format!("{year}-{date}"));
        spellings.extend(with_year.map(|date| Spelling { date, is_name: true }));
        spellings.push(Spelling { date, is_name: !dated.is_standard });
    }
    spellings.extend(dated.time.map(|date| Spelling { date, is_name: true }));
    spellings
}

/// Returns the first day in a text that has its year, of a log's line, too. O(n).
pub fn first_day(text: &str) -> Option<Date> {
    let of = |start| {
        let days = Dated::at(text, start)?.days;
        days.into_iter().find_map(|(year, month, day)| Some((year?, month, day)))
    };
    let (year, month, day) = numbers(text).find_map(of)?;
    Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()
}

/// A date or a time as it is written.
#[derive(Debug, Default)]
struct Dated {
    /// What year, month and day it may be.
    days: Vec<(Option<usize>, usize, usize)>,
    time: Option<String>,
    /// Whether year, month and day stand in this order.
    is_standard: bool,
    /// Whether it is its own name: without the time of the day, too.
    is_its_name: bool,
}

impl Dated {
    /// Reads that whose first digit is at `start`, but the time of a log's line.
    fn unless_stamp(text: &str, start: usize) -> Option<Self> {
        Self::at(text, start).filter(|_| !is_stamp(&text[start..]))
    }

    /// Reads that whose first digit is at `start`. O(1).
    fn at(text: &str, start: usize) -> Option<Self> {
        let rest = &text[start..text.floor_char_boundary(text.len().min(start + MAX_BYTES))];
        let length = digits(rest);
        if !may_be(text.as_bytes(), start, length) {
            return None;
        }
        let first = number(&rest[..length]);
        let mut this = Self { is_standard: matches!(length, 4 | 8), ..Self::default() };
        let behind = &rest[length..];
        match length {
            8 if YEARS.contains(&(first / 10_000)) => {
                this.add(Some(first / 10_000), first / 100 % 100, first % 100);
            }
            4 => {
                let mut parts = behind.split(['-', '/', '.']).skip(1).map(|part| number(&part[..digits(part)]));
                if let (true, Some(month), Some(day)) =
                    (behind.starts_with(['-', '/', '.']), parts.next(), parts.next())
                {
                    // With a time the whole is another name.
                    let has_time =
                        behind.get(3..).is_some_and(|day| day.trim_start_matches(|c: char| c != 'T').len() > 1);
                    this.is_its_name = !has_time;
                    this.add(Some(first), month, day);
                } else if let Some((month, day)) = behind.strip_prefix('年').and_then(wide) {
                    this.add(Some(first), month, day);
                }
            }
            1 | 2 => this.read_day(text, start, rest, first),
            _ => {}
        }
        (!this.days.is_empty() || this.time.is_some()).then_some(this)
    }

    /// Reads what begins with the one or two digits of a day, a month or an hour.
    fn read_day(&mut self, text: &str, start: usize, rest: &str, first: usize) {
        let behind = &rest[digits(rest)..];
        if let Some((month, day)) = wide(rest) {
            self.add(None, month, day);
        } else if let Some((sign, other)) =
            behind.split_at_checked(1).filter(|(_, other)| (1..=2).contains(&digits(other)))
            && matches!(sign, "." | "/" | "-")
        {
            let (second, behind) = (number(&other[..digits(other)]), &other[digits(other)..]);
            let year = behind.strip_prefix(sign).map_or("", |year| &year[..digits(year)]);
            // "3.10" may be a number, "3.10.1" a version, "3-10" from one to the other.
            let is_day = match sign {
                "." => behind.strip_prefix('.').is_some_and(|next| !next.starts_with(char::is_alphanumeric)),
                "/" => !behind.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_')),
                _ => false,
            };
            if year.len() == 4 || year.len() == 2 && sign != "-" || is_day {
                let year = (year.len() == 4).then(|| number(year));
                self.add(year, second, first);
                if sign == "/" && first != second {
                    self.add(year, first, second);
                }
            }
        } else if let Some((month, behind)) = month_behind(behind) {
            self.add(year_of(behind), month, first);
        } else if let Some(month) = month_before(&text[..start]) {
            self.add(year_of(behind.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == ',')), month, first);
        } else {
            self.time = half_day(first, behind);
        }
    }

    /// Adds a day of the calendar; other numbers of four digits are no years.
    fn add(&mut self, year: Option<usize>, month: usize, day: usize) {
        if (1..=12).contains(&month) && (1..=31).contains(&day) {
            self.days.push((year.filter(|year| YEARS.contains(year)), month, day));
        }
    }
}

/// Returns the day that a field is, with its time: 20,260,508.143 is 2026-05-08 14:30.
pub fn stated_day(field: &str) -> Option<f64> {
    let start = field.find(|c: char| c.is_ascii_digit()).filter(|_| field.len() <= MAX_BYTES)?;
    let number = |digits: &str| digits.parse::<f64>().ok();
    if let [year, month, day] = *field[start..].splitn(3, ['-', '/', '.']).collect::<Vec<_>>()
        && start == 0
        && digits(year) == 4
        && digits(month) == month.len()
    {
        let (day, time) = day.split_at(digits(day));
        let time: String = time.chars().filter(char::is_ascii_digit).collect();
        let time = number(&format!("0.{time}0"))?;
        return Some((number(year)? * 100.0 + number(month)?) * 100.0 + number(day)? + time);
    }
    let day = spellings(field, start).into_iter().find(|spelling| spelling.date.len() > 5 && spelling.is_name)?;
    number(&day.date.replace('-', ""))
}

/// Returns the months of the days in a text, with the places of these. O(n).
pub fn months_in(text: &str) -> impl Iterator<Item = (usize, usize)> {
    numbers(text).filter_map(|at| {
        let (_, month, _) = *Dated::unless_stamp(text, at)?.days.first()?;
        Some((month, at))
    })
}

/// Returns where numbers start that may begin a date.
fn numbers(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).filter(|&at| {
        bytes[at].is_ascii_digit()
            && !at.checked_sub(1).is_some_and(|before| {
                bytes[before].is_ascii_alphanumeric() || matches!(bytes[before], b'-' | b'/' | b'.' | b':')
            })
    })
}

/// Returns the month that a question names without a day: "in May", "im Mai", 5月, 2026-05.
pub fn month_asked(question: &str) -> Option<usize> {
    let words = question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = iter::once("").chain(words).chain([""]).collect();
    let named = words.windows(3).find_map(|words| {
        let [before, word, next] = *words else { return None };
        let is_capital = word.starts_with(char::is_uppercase) && !before.is_empty();
        let is_plain = word.len() >= PLAIN_MONTH && word != "march";
        let is_day = |word: &str| (1..=2).contains(&digits(word));
        month(word).filter(|_| (is_capital || is_plain) && !is_day(before) && !is_day(next))
    });
    named
        .or_else(|| question.match_indices('月').find_map(|(at, _)| wide_month(&question[..at], &question[at..])))
        .or_else(|| {
            let mut dashed = question.match_indices('-').filter(|(at, _)| {
                let before = question[..*at].bytes().rev().take_while(u8::is_ascii_digit).count();
                before == 4 && digits(&question[at + 1..]) == 2 && !question[at + 3..].starts_with('-')
            });
            dashed.find_map(|(at, _)| question[at + 1..at + 3].parse().ok())
        })
        .filter(|month| (1..=12).contains(month))
}

/// Months in lower case are words of other meanings up to so many bytes: "may", "mar".
const PLAIN_MONTH: usize = 5;

/// Returns the month before 月, unless a day or a number of months follows or stands there: 5月, 五月, not 5月3日.
fn wide_month(before: &str, behind: &str) -> Option<usize> {
    if behind['月'.len_utf8()..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number = before.bytes().rev().take_while(u8::is_ascii_digit).count();
    if number > 0 {
        return before[before.len() - number..].parse().ok();
    }
    WIDE_MONTHS.iter().zip((1..=12).rev()).find_map(|(name, month)| before.ends_with(name).then_some(month))
}

/// From the last on, for the longer names.
const WIDE_MONTHS: [&str; 12] = ["十二", "十一", "十", "九", "八", "七", "六", "五", "四", "三", "二", "一"];

fn number(digits: &str) -> usize {
    digits.parse().unwrap_or_default()
}

fn digits(text: &str) -> usize {
    text.bytes().take(9).take_while(u8::is_ascii_digit).count()
}

/// Returns whether a time to the second follows a date, or an hour: a log's.
fn is_stamp(text: &str) -> bool {
    let line = &text.as_bytes()[..text.len().min(STAMP_BYTES)];
    let is_like = |(byte, like): (&u8, &u8)| if *like == b'0' { byte.is_ascii_digit() } else { byte == like };
    let is_time = |at: &[u8]| at.iter().zip(b"00:00:00").all(is_like) && at[6..] != *b"00";
    line.windows(8).any(is_time)
}

/// Returns month and day of `10月3日`.
fn wide(text: &str) -> Option<(usize, usize)> {
    let month = &text[..digits(text)];
    let day = text[month.len()..].strip_prefix('月')?;
    Some((month.parse().ok()?, day[..digits(day)].parse().ok()?))
}

/// Returns the month behind a day, and what follows: `. Oktober`, ` de octubre`, `rd of October`.
fn month_behind(behind: &str) -> Option<(usize, &str)> {
    let ordinal = ["st", "nd", "rd", "th", ".", "er", "º"].iter().find_map(|end| behind.strip_prefix(end));
    let behind = ordinal.unwrap_or(behind).strip_prefix([' ', '-'])?;
    let behind = BETWEEN.iter().find_map(|between| behind.strip_prefix(between)).unwrap_or(behind);
    let end = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
    Some((month(&behind[..end])?, behind[end..].trim_start_matches(['.', ','])))
}

/// Returns the month before a day: `October 3`, `Oct. 3`.
fn month_before(before: &str) -> Option<usize> {
    let before = before.strip_suffix(' ')?.trim_end_matches('.');
    let start = before.char_indices().rev().take(14).take_while(|(_, c)| c.is_alphabetic()).last()?.0;
    month(&before[start..])
}

/// Returns the year that follows: ` 2026`, `de 2026`.
fn year_of(behind: &str) -> Option<usize> {
    let behind = behind.trim_start().trim_start_matches("de ").trim_start_matches([',', ' ', '-']);
    (digits(behind) == 4).then(|| behind[..4].parse().ok()).flatten()
}

/// Returns a time with `am` or `pm` behind it, of 24 hours.
fn half_day(hour: usize, behind: &str) -> Option<String> {
    let minutes = behind.strip_prefix([':', '.']).filter(|rest| digits(rest) == 2).map(|rest| &rest[..2]);
    let rest = minutes.map_or(behind, |_| &behind[3..]).trim_start_matches([' ', '\u{a0}', '\u{202f}']);
    if !rest.starts_with(['a', 'A', 'p', 'P']) {
        return None;
    }
    let rest: String = rest.chars().take(4).filter(|c| *c != '.').flat_map(char::to_lowercase).collect();
    let is_word = |end: &str| rest.strip_prefix(end).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    let hour = match hour {
        1..=12 if is_word("pm") => hour % 12 + 12,
        1..=12 if is_word("am") => hour % 12,
        _ => return None,
    };
    Some(format!("{hour:02}:{}", minutes.unwrap_or("00")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let start = text.find(|c: char| c.is_ascii_digit());
        let found = start.map_or_else(Vec::new, |start| spellings(text, start));
        found.into_iter().map(|spelling| spelling.date).collect()
    }

    #[test]
    fn a_date_is_the_same_in_every_way_to_write_it() {
        for text in [
            "2026-10-03",
            "on 2026/10/03 at noon",
            "20261003T143000Z",
            "03.10.2026",
            "3.10. um neun",
            "3.10.",
            "on 3.10.?",
            "3/10",
            "10/3, please",
            "3-10-2026",
            "3 October",
            "October 3rd",
            "Oct. 3, please",
            "3. Oktober",
            "3 de octubre",
            "3rd of October",
            "3 октября",
            "10月3日",
            "3-Oct-2026",
            "2026-10-03T14:30:00",
        ] {
            assert!(found(text).contains(&"10-03".to_owned()), "{text}: {:?}", found(text));
        }
        for text in [
            "3 Oct 2026",
            "October 3rd, 2026",
            "3. Oktober 2026",
            "03.10.2026",
            "2026年10月3日",
            "3 de octubre de 2026",
            "20261003",
            "20261003T143000Z",
            "2026-10-03T14:30:00+02:00",
            "3-10-2026",
        ] {
            assert!(found(text).contains(&"2026-10-03".to_owned()), "{text}: {:?}", found(text));
        }
        assert_eq!(found("03/10/2026"), ["2026-10-03", "10-03", "2026-03-10", "03-10"]);
    }

    #[test]
    fn a_time_is_that_of_a_whole_day() {
        for (text, time) in [("2:30 pm", "14:30"), ("at 2pm.", "14:00"), ("12:05 a.m.", "00:05"), ("9 AM", "09:00")] {
            assert_eq!(found(text), [time], "{text}");
        }
    }

    #[test]
    fn logs_and_numbers_have_no_dates() {
        for text in [
            "2026-10-03 14:05:11,123 INFO",
            "3.10",
            "3.10.1",
            "3-10",
            "3-10-26",
            "3/10/x",
            "3/10th",
            "1.2.3",
            "3 apples",
            "12 of 40",
            "4711",
            "2026",
            "14:30",
            "99999999",
            "12341005",
            "3 marbles",
            "Oct 3 14:05:11 host",
            "2 ambulances",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
