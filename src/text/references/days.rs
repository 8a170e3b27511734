//! Finds the days that a message means without their dates: "on Thursday", "tomorrow", "the 15th".

use std::mem;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::words::{Sign, WORDS};
use super::{is_ordinal, split};
use crate::text::dates::{first_day, spellings};
use crate::text::sentences::QUESTION_BYTES;

/// Most days that are meant, and months to the nearest with the number of a day: no two in a row are shorter than 31 days.
const MOST: usize = 8;
const MONTHS: i32 = 2;

/// Most bytes of a line above the date of today.
const MAX_HEADING_BYTES: usize = 80;

/// What stands beside the date of today, in lower case, besides words for today itself. Source: nanobot 0.1.3 to 0.3.5, "Current Time:"
/// before or above it, "[Message Time: …]".
const NOW: [&str; 8] = ["time", "date", "now", "datum", "fecha", "дата", "日期", "时间"];

/// Returns the days that a short message means without their dates, none where `today` does not find the day on which it is written; of a
/// day of the week and of a month the next first, then the last. `None` where it means no day, whatever today is. O(n).
pub fn days_meant(message: &str, today: impl FnOnce() -> Option<Date>) -> Option<Vec<Date>> {
    if message.len() > QUESTION_BYTES {
        return None;
    }
    let meant = Some(Meant::all(&message.to_lowercase())).filter(|meant| !meant.is_empty())?;
    let mut days: Vec<Date> = Vec::new();
    let Some(today) = today() else { return Some(days) };
    for day in meant.into_iter().flat_map(|meant| meant.from(today)).flatten() {
        if !days.contains(&day) && days.len() < MOST {
            days.push(day);
        }
    }
    Some(days)
}

/// Returns the day on which a text says that it was written: "Current Time: 2026-10-12 09:30", "Today is Monday, 12 October 2026". O(n).
pub fn today_in(text: &str) -> Option<Date> {
    let mut above = "";
    text.lines().find_map(|line| {
        let heading = mem::replace(&mut above, line);
        let day = first_day(line)?;
        let lower = line.to_lowercase();
        match says_now(&lower) {
            Some(at) => first_day(&lower[at..]).or(Some(day)),
            None => heads_today(heading).then_some(day),
        }
    })
}

/// Returns whether a line says that the day below it is today.
fn heads_today(line: &str) -> bool {
    line.len() <= MAX_HEADING_BYTES && first_day(line).is_none() && says_now(&line.to_lowercase()).is_some()
}

/// Returns where a text in lower case says that what stands behind it is today.
fn says_now(lower: &str) -> Option<usize> {
    let is_today = |sign: Sign| sign == Sign::Ahead(0);
    let word = split(lower).find(|word| WORDS.of_word(word).any(is_today));
    let phrase = || WORDS.wide_in(lower).find(|(_, sign)| is_today(*sign)).map(|(at, _)| at.start);
    let at = word.map(|word| word.as_ptr().addr() - lower.as_ptr().addr()).or_else(phrase);
    at.or_else(|| NOW.iter().find_map(|word| lower.find(word)))
}

/// A day as it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meant {
    Ahead(i8),
    Weekday(i8),
    OfMonth(i8),
}

impl Meant {
    /// Returns what a message in lower case names.
    fn all(lower: &str) -> Vec<Self> {
        let of = |sign| match sign {
            Sign::Ahead(days) => Some(Self::Ahead(days)),
            Sign::Weekday(day) => Some(Self::Weekday(day)),
            _ => None,
        };
        let phrases: Vec<_> = WORDS.wide_in(lower).filter_map(|(at, sign)| Some((at, of(sign)?))).collect();
        let mut all = Vec::new();
        let mut before = "";
        for word in split(lower) {
            let at = word.as_ptr().addr() - lower.as_ptr().addr();
            // "tomorrow" in "the day after tomorrow"
            let is_alone = !phrases.iter().any(|(phrase, _)| phrase.contains(&at));
            all.extend(WORDS.of_word(word).filter(|_| is_alone).filter_map(of));
            all.extend(Self::numbered(lower, at, word, before));
            before = word;
        }
        all.extend(phrases.into_iter().map(|(_, meant)| meant));
        all
    }

    /// Returns the day of a month that a word at `at` begins: "15th", "am 15.", 15号.
    fn numbered(lower: &str, at: usize, word: &str, before: &str) -> Option<Self> {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let day = word[..digits].parse().ok().filter(|day| (1..=31).contains(day))?;
        let is_dated = || WORDS.of_word(before).any(|sign| sign == Sign::Dated);
        let is_number = match &word[digits..] {
            "" => is_dated() && !lower[at + digits..].starts_with([':', '%', '€', '$']),
            end if is_ordinal(end) => true,
            end => end.starts_with(['号', '號', '日', '일']) && !end.starts_with("日目"),
        };
        // A month stands beside it.
        (is_number && spellings(lower, at).is_empty()).then_some(Self::OfMonth(day))
    }

    /// Returns what days that may be.
    fn from(self, today: Date) -> Vec<Option<Date>> {
        match self {
            Self::Ahead(days) => vec![today.checked_add(i32::from(days).days()).ok()],
            Self::Weekday(day) => {
                let Ok(weekday) = Weekday::from_monday_one_offset(day) else { return Vec::new() };
                let own = (today.weekday() == weekday).then_some(today);
                let nth = |nth| today.nth_weekday(nth, weekday).ok();
                vec![own, nth(1), nth(-1)]
            }
            Self::OfMonth(day) => {
                let of_month = |months: i32| {
                    let month = today.first_of_month().checked_add(months.months()).ok()?;
                    Date::new(month.year(), month.month(), day).ok()
                };
                let next = (0..=MONTHS).filter_map(of_month).find(|day| *day >= today);
                let last = (-MONTHS..=0).rev().filter_map(of_month).find(|day| *day < today);
                vec![next, last]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(message: &str) -> Vec<String> {
        // A Monday.
        let days = days_meant(message, || Some(jiff::civil::date(2026, 10, 12)));
        days.unwrap_or_default().into_iter().map(|day| day.to_string()).collect()
    }

    #[test]
    fn a_day_of_the_week_is_the_next_and_the_last_one() {
        for message in [
            "What's on on Thursday?",
            "Was steht am Donnerstag an?",
            "Was ist Donnerstagabend?",
            "Qu'est-ce que j'ai jeudi ?",
            "¿Qué tengo el jueves?",
            "Cosa c'è giovedì?",
            "O que tenho na quinta-feira?",
            "Wat staat er donderdag op het programma?",
            "Что у меня в четверг?",
            "Co mam w czwartek?",
            "Perşembe günü ne var?",
            "星期四有什么安排?",
            "周四有什么安排?",
            "木曜日の予定は?",
            "목요일 일정은?",
        ] {
            assert_eq!(days(message), ["2026-10-15", "2026-10-08"], "{message}");
        }
        assert_eq!(days("Is there anything on Monday?"), ["2026-10-12", "2026-10-19", "2026-10-05"]);
        assert_eq!(days("Plans for the weekend?"), ["2026-10-17", "2026-10-10", "2026-10-18", "2026-10-11"]);
    }

    #[test]
    fn other_days_count_from_today() {
        for (message, day) in [
            ("What's on tomorrow?", "2026-10-13"),
            ("Was ist übermorgen?", "2026-10-14"),
            ("And the day after tomorrow?", "2026-10-14"),
            ("Et après-demain ?", "2026-10-14"),
            ("Qu'est-ce que j'ai aujourd'hui ?", "2026-10-12"),
            ("What did I do yesterday?", "2026-10-11"),
            ("¿Y anteayer?", "2026-10-10"),
            ("明天有什么安排?", "2026-10-13"),
            ("明後日の予定は?", "2026-10-14"),
            ("어제 뭐 했지?", "2026-10-11"),
        ] {
            assert_eq!(days(message), [day], "{message}");
        }
    }

    #[test]
    fn the_number_of_a_day_is_the_next_and_the_last_of_a_month() {
        for message in [
            "What's on on the 15th?",
            "Wat is er op de 15e?",
            "Was ist am 15.?",
            "Que se passe-t-il le 15 ?",
            "15号有什么安排?",
            "15日は?",
        ] {
            assert_eq!(days(message), ["2026-10-15", "2026-09-15"], "{message}");
        }
        assert_eq!(days("And on the 5th?"), ["2026-11-05", "2026-10-05"]);
        assert_eq!(days("The 31st?"), ["2026-10-31", "2026-08-31"]);
        for message in
            ["Am 15:30?", "What's on on 15 October?", "the 45th", "3日目は?", "Fifteen.", "15 apples", "10月15日?"]
        {
            assert_eq!(days(message), [""; 0], "{message}");
        }
    }

    #[test]
    fn today_is_what_a_text_says() {
        for text in [
            "Current Time: 2026-10-12 09:30 (Monday) (UTC, UTC+00:00)",
            "You help Ada, born 1990-01-02.\n\n## Current Time\n2026-10-12 09:30 (Monday)",
            "Released on 2026-01-02. Today is Monday, 12 October 2026.",
            "Heute ist Montag, der 12.10.2026.",
            "今天是2026年10月12日",
            "[Message Time: 2026-10-12T09:30:11.123]",
        ] {
            assert_eq!(today_in(text), Some(jiff::civil::date(2026, 10, 12)), "{text}");
        }
        for text in ["Released on 2026-01-02.", "Today is Monday.", "Today is 2026-02-30.", ""] {
            assert_eq!(today_in(text), None, "{text}");
        }
    }
}
