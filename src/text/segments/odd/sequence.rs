//! Finds lines where a sequence is broken: the clock jumps or goes back, or a line or an id comes twice where others come once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::column::strange;
use super::fields::runs;
use crate::text::bytes::has_digit;
use crate::tokens::{BuildMixedHasher, content_seed};

/// Fewer lines do not tell what is usual.
pub(super) const MIN_SEQUENCE: usize = 32;
/// Breaks of one kind, at most: more are usual themselves.
pub(super) const MAX_BREAKS: usize = 2;
/// One line in so many may have no clock.
const WITHOUT_CLOCK_IN: usize = 10;
/// Bytes in which the clock of a line ends: behind a date of RFC 5424 or of Apache.
const CLOCK_WITHIN: usize = 40;
/// A jump lasts so many times as long as all but one in twenty steps, and a minute at least.
const JUMP: i64 = 20;
const MIN_JUMP: i64 = 60;
const USUAL: usize = 20;
const DAY: i64 = 86_400;

/// Returns the lines behind a jump of the clock, and those that come twice.
pub(super) fn breaks(lines: &[(usize, &str)]) -> Vec<usize> {
    if lines.len() < MIN_SEQUENCE {
        return Vec::new();
    }
    let mut broken = jumps(lines);
    let mut whole = Once::default();
    for &(nth, line) in lines {
        whole.see(line, nth);
    }
    broken.extend(whole.doubles());
    broken
}

/// What comes once, and the lines of what does not.
#[derive(Default)]
pub(super) struct Once {
    first: HashMap<u64, usize, BuildMixedHasher>,
    doubles: Vec<usize>,
}

impl Once {
    pub(super) fn see(&mut self, text: &str, line: usize) {
        if self.are_many() {
            return;
        }
        match self.first.entry(xxh3_64_with_seed(text.as_bytes(), content_seed())) {
            Entry::Vacant(entry) => _ = entry.insert(line),
            Entry::Occupied(entry) => self.doubles.extend([*entry.get(), line]),
        }
    }

    /// Returns both lines of what comes twice, if hardly anything does.
    pub(super) fn doubles(&self) -> &[usize] {
        if self.are_many() { &[] } else { &self.doubles }
    }

    fn are_many(&self) -> bool {
        self.doubles.len() > 2 * MAX_BREAKS
    }
}

/// Fewest lines in a row with the same field, most such rows, and fewest lines of all, for a change for good.
const MIN_RUN: usize = 5;
const MAX_RUNS: usize = 3;
const MIN_IN_RUNS: usize = 16;

/// The rows of a column in which the same field follows itself: a dose of 5 mg, and from some day on 10 mg.
#[derive(Default)]
pub(super) struct Runs<'t> {
    runs: Vec<Run<'t>>,
}

struct Run<'t> {
    field: &'t str,
    first: usize,
    last: usize,
    count: usize,
}

impl<'t> Runs<'t> {
    pub(super) fn see(&mut self, field: &'t str, line: usize) {
        let is_varied = self.runs.len() > MAX_RUNS;
        match self.runs.last_mut() {
            _ if is_varied => {}
            Some(run) if run.field == field => (run.last, run.count) = (line, run.count + 1),
            _ => self.runs.push(Run { field, first: line, last: line, count: 1 }),
        }
    }

    /// Iterates over the lines before and behind each change, where they are few. What counts on by one, as hours do, does not change.
    pub(super) fn changes(&self) -> impl Iterator<Item = [usize; 2]> {
        let all: usize = self.runs.iter().map(|run| run.count).sum();
        let are_few = (2..=MAX_RUNS).contains(&self.runs.len()) && all >= MIN_IN_RUNS;
        let are_long = self.runs.iter().all(|run| run.count >= MIN_RUN);
        let counts_on = |pair: &[Run<'_>]| {
            let steps = runs(pair[0].field).zip(runs(pair[1].field)).map(|(before, behind)| behind - before);
            // Past midnight, and in a new year.
            let begins_anew = pair[1].field.len() == 2 && pair[1].field.starts_with('0');
            begins_anew || steps.filter(|step| *step != 0.0).any(|step| step.abs() <= 1.0)
        };
        let is_change = are_few && are_long && !self.runs.windows(2).any(counts_on);
        let pairs = self.runs.windows(2).filter(move |_| is_change);
        pairs.map(|pair| [pair[0].last, pair[1].first])
    }
}

/// Least bytes of an id; of fewer some are the same by chance.
const MIN_ID: usize = 8;
const MIN_ID_WITH_LETTERS: usize = 6;
/// What falls less often than once in so many lines is in order.
const FALL_IN: usize = 8;

/// Returns nothing seen yet, if sampled fields are ids that come once, and not in order: times do, and some are the same.
pub(super) fn ids<'t>(fields: impl Iterator<Item = &'t str> + Clone) -> Option<Once> {
    let count = fields.clone().count();
    // By chance one has no digit.
    if fields.clone().filter(|field| !is_id(field)).take(strange(count) + 1).count() > strange(count) {
        return None;
    }
    let mut once = Once::default();
    fields.clone().enumerate().for_each(|(nth, field)| once.see(field, nth));
    let falls = fields.clone().zip(fields.skip(1)).filter(|(before, field)| before > field).count();
    let are_ids = count >= MIN_SEQUENCE && !once.are_many() && falls * FALL_IN > count;
    are_ids.then(Once::default)
}

fn is_id(field: &str) -> bool {
    // "REF 4417293"
    let field = field.rsplit(' ').next().unwrap_or(field);
    let letters = field.bytes().filter(u8::is_ascii_alphabetic).count();
    let least = if letters > 0 { MIN_ID_WITH_LETTERS } else { MIN_ID };
    field.len() >= least
        && has_digit(field)
        && field.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Returns the lines before which the clock jumps ahead, or goes back, if it hardly ever does.
fn jumps(lines: &[(usize, &str)]) -> Vec<usize> {
    let most = lines.len() / WITHOUT_CLOCK_IN;
    let mut clocks = Vec::with_capacity(lines.len());
    for (before, &(nth, line)) in lines.iter().enumerate() {
        clocks.extend(clock(line).map(|(date, seconds)| (nth, date, seconds)));
        if clocks.len() + most <= before {
            return Vec::new();
        }
    }
    let mut steps = steps(&clocks);
    // The newest first.
    if steps.iter().filter(|(_, step)| *step < 0).count() * 2 > steps.len() {
        clocks.reverse();
        steps = self::steps(&clocks);
    }
    let mut sorted: Vec<i64> = steps.iter().map(|(_, step)| *step).collect();
    sorted.sort_unstable();
    let jump = MIN_JUMP.max(JUMP * sorted[sorted.len() - 1 - sorted.len() / USUAL]);
    let (ahead, back): (Vec<_>, Vec<_>) =
        steps.into_iter().filter(|&(_, step)| step > jump || step < -MIN_JUMP).partition(|&(_, step)| step > 0);
    let few = [ahead, back].into_iter().filter(|broken| broken.len() <= MAX_BREAKS).flatten();
    few.map(|(nth, _)| nth).collect()
}

/// Returns each line behind another with the seconds between their clocks.
fn steps(clocks: &[(usize, &str, i64)]) -> Vec<(usize, i64)> {
    let step = |pair: &[(usize, &str, i64)]| {
        let ((_, date, from), (nth, next, to)) = (pair[0], pair[1]);
        let is_next_day = to < from && (date != next || from - to > DAY / 2 && !has_digit(date));
        (nth, to - from + if is_next_day { DAY } else { 0 })
    };
    clocks.windows(2).map(step).collect()
}

/// Returns what stands before the clock of a line, and its seconds.
fn clock(line: &str) -> Option<(&str, i64)> {
    let bytes = &line.as_bytes()[..line.len().min(CLOCK_WITHIN)];
    let two = |at: usize| match bytes.get(at..at + 2)? {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => Some(i64::from(tens - b'0') * 10 + i64::from(ones - b'0')),
        _ => None,
    };
    memchr::memchr_iter(b':', bytes).find_map(|colon| {
        let start = colon.checked_sub(2)?;
        let is_alone = start.checked_sub(1).is_none_or(|before| !bytes[before].is_ascii_digit());
        let (hours, minutes) = (two(start)?, two(colon + 1)?);
        let seconds = (bytes.get(colon + 3) == Some(&b':')).then(|| two(colon + 4))??;
        (is_alone && hours < 24).then_some((&line[..start], hours * 3600 + minutes * 60 + seconds))
    })
}
