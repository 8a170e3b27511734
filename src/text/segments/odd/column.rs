//! Learns the contents of a column, and finds fields that are unlike them.

use crate::text::bytes::has_digit;
use crate::text::estimate::count;

use super::super::columns::{MIN_ENDS, least, least_of_few, lone_zero};
use super::fields::{FieldValue, measured, runs};
use super::{MIN_OF_COLUMN, rare};

/// Most values of a field with few values.
pub(super) const MAX_VALUES: usize = 16;
/// The same where each of them occurs so often on average.
const MOST_VALUES: usize = 40;
const OF_VALUE: usize = 16;
/// One sampled line in so many may itself be odd.
const STRANGE_IN: usize = 32;
/// Least bytes of a common start: `10.0.`, `/srv/`.
const MIN_START: usize = 3;
/// Lines in which a value that all have but one, or one in so many, leaves no place for another that occurs once.
const MIN_CONSTANT: usize = MIN_OF_COLUMN;
const OTHERS_IN: usize = 10;
/// Fewer lines do not tell that a value which occurs once is odd beside several that do not.
const MIN_WITH_LONE: usize = 16;
/// Where values occur less often than this on average, one that occurs once is no odd one.
const OFTEN: usize = 6;
/// Most numbers within a field that are compared.
const MAX_RUNS: usize = 8;
/// How far beyond a sample numbers may lie, in distances between its largest and those of similar size: where many lie close
/// together, few are missing.
const TAIL: f64 = 4.0;
/// They may lie beyond it by this fraction of the range in any case; of few numbers the last may be farther.
const NEAR: f64 = 8.0;
const NEAR_FEW: f64 = 4.0;
/// Least numbers that are an end of [`MIN_ENDS`].
const OF_END: usize = 4;
/// Numbers that show whether a column counts, and by how much: times may grow by more, and two lines may have the same.
const MIN_COUNTED: usize = 32;
const COUNTED_BY: std::ops::Range<f64> = 0.5..8.0;
/// One pair in so many rises where numbers rise, as those of a meter do.
const RISES_IN: usize = 2;
/// Percent from which something is all but full, below which it is not, and one in how many may be.
const FULL: f64 = 95.0;
const NOT_FULL: f64 = 90.0;
const FULL_IN: usize = 16;
/// Steps of one size behind which one of another is a gap.
const MIN_STEPS: usize = 16;

/// Returns the number of sampled lines that may themselves be odd.
pub(super) fn strange(count: usize) -> usize {
    count / STRANGE_IN
}

/// The contents of a field in the lines of one shape.
pub(super) enum FieldColumn {
    /// Text with this start, one of these values if given, and the numbers within if each field has as many; with the letters
    /// beside digits if each field has a digit, as hashes have.
    Text(String, Option<Vec<FieldValue>>, Vec<Numbers>, Option<u32>),
    /// Numbers, one of these values if given, with one of these units if given.
    Numbers(Numbers, Option<Vec<FieldValue>>, Option<Vec<u32>>),
}

/// Statistics of a column: sampled lines, how many may be odd, and the step of the sample.
#[derive(Clone, Copy)]
pub(super) struct Sampled {
    pub count: usize,
    pub strange: usize,
    pub step: usize,
}

impl FieldColumn {
    /// Reads only as many fields as it needs to know their contents.
    pub(super) fn of<'t>(sampled: Sampled, fields: &(impl Iterator<Item = &'t str> + Clone)) -> Self {
        let Sampled { count, strange, .. } = sampled;
        let max_values = MAX_VALUES.min(count / 4).max(MOST_VALUES.min(count / OF_VALUE));
        let mut values: Vec<(FieldValue, usize)> = Vec::new();
        let mut units: Vec<(u32, usize)> = Vec::new();
        let mut numbers = Vec::with_capacity(count);
        let text = |values| {
            let (start, numbers) = (common_start(fields.clone(), strange), numbers_within(sampled, fields));
            Self::Text(start, values, numbers, beside_digits(fields.clone(), strange))
        };
        // The first line may name the columns.
        let spare = strange.max(usize::from(fields.clone().next().is_some_and(|first| measured(first).is_none())));
        for (read, field) in (1..).zip(fields.clone()) {
            let value = match measured(field) {
                Some((number, unit)) => {
                    numbers.push(number);
                    add(&mut units, unit);
                    FieldValue::Number(number.to_bits())
                }
                None => FieldValue::form(field),
            };
            // A value that is not one of the few is odd.
            let may_be_few = values.len() <= max_values + strange;
            if may_be_few || values.iter().any(|(known, _)| *known == value) {
                add(&mut values, value);
            } else if numbers.len() + spare < read {
                return text(None);
            }
        }
        let found = numbers.len();
        let are_numbers = found == count;
        let lone = lone_end(&numbers).filter(|_| are_numbers);
        if let Some(lone) = lone {
            numbers.retain(|number| number.total_cmp(&lone).is_ne());
            values.retain(|(value, _)| *value != FieldValue::Number(lone.to_bits()));
        }
        let values = few(values, max_values, count, strange.max(usize::from(lone.is_some())));
        let is_numbers = are_numbers || values.is_none() && found + spare >= count;
        match values {
            values if is_numbers => {
                let units = few(units, MAX_VALUES, found, strange);
                let mut of = Numbers::of(&mut numbers, sampled, fields.clone().any(is_padded));
                if fields.clone().all(|field| field.ends_with('%')) {
                    of.limit_percent(&numbers);
                }
                Self::Numbers(of, values, units)
            }
            Some(values) if !numbers.is_empty() => Self::Text(String::new(), Some(values), Vec::new(), None),
            values => text(values),
        }
    }

    /// Returns whether it is text of many values.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Text(_, None, ..))
    }

    /// Returns whether it is text of a few values.
    pub(super) fn has_few(&self) -> bool {
        matches!(self, Self::Text(_, Some(_), ..))
    }

    /// Calls `odd` with the distance of a field from the column and with its `line`, unless it is regular, as `last` is;
    /// with the line before if a number shows that that one came too early.
    pub(super) fn compare<'t>(
        &mut self,
        field: &'t str,
        line: usize,
        last: &mut &'t str,
        odd: &mut impl FnMut(f64, usize),
    ) {
        if field == *last {
            return;
        }
        let (distance, counts) = match self {
            Self::Text(start, values, numbers, beside) => {
                let is_usual = field.starts_with(&**start)
                    && beside.is_none_or(|beside| has_digit(field) || letters(field) & !beside == 0)
                    && values.as_ref().is_none_or(|values| values.contains(&FieldValue::of(field)));
                if is_usual {
                    let within = |distance: Option<f64>, (of, number): (&mut Numbers, f64)| {
                        distance.into_iter().chain(of.compare(number, line, odd)).reduce(f64::max)
                    };
                    let counts = numbers.iter().any(|numbers| numbers.counting.is_some());
                    (numbers.iter_mut().zip(runs(field)).fold(None, within), counts)
                } else {
                    (Some(f64::INFINITY), false)
                }
            }
            Self::Numbers(numbers, values, units) => match measured(field) {
                Some((_, unit)) if units.as_ref().is_some_and(|units| !units.contains(&unit)) => {
                    (Some(f64::INFINITY), false)
                }
                Some((number, _)) => {
                    let value = FieldValue::Number(number.to_bits());
                    let distance = match values {
                        Some(values) if values.contains(&value) => None,
                        // A near value is less odd than a far one, if many are not of the few.
                        Some(_) => numbers.beyond(number).or(Some(f64::MIN_POSITIVE)),
                        None => numbers.compare(number, line, odd),
                    };
                    (distance, numbers.counting.is_some())
                }
                None => (Some(f64::INFINITY), false),
            },
        };
        match distance {
            Some(distance) => odd(distance, line),
            None if !counts => *last = field,
            None => {}
        }
    }
}

/// Of fewer numbers the ends tell nothing; of more [`range`] asks them.
const FEW_NUMBERS: std::ops::Range<usize> = MIN_OF_COLUMN..MIN_WITH_LONE;
/// How far one of few lies from the others to be odd, in ranges of these: of six it does by chance once in three hundred times.
const FAR_OF_FEW: f64 = 4.0;

/// Returns the number of few that lies far beyond all others: 47 among 0 and 1.
fn lone_end(numbers: &[f64]) -> Option<f64> {
    if !FEW_NUMBERS.contains(&numbers.len()) {
        return None;
    }
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let is_far = |end: f64, next: f64, other: f64| (end - next).abs() > FAR_OF_FEW * (next - other).abs();
    match &sorted[..] {
        [low, .., before, high] if is_far(*high, *before, *low) && before > low => Some(*high),
        [low, second, .., high] if is_far(*low, *second, *high) && second < high => Some(*low),
        _ => None,
    }
}

/// Adds to what was counted.
fn add<T: PartialEq>(counted: &mut Vec<(T, usize)>, value: T) {
    match counted.iter_mut().find(|(known, _)| *known == value) {
        Some((_, count)) => *count += 1,
        None => counted.push((value, 1)),
    }
}

/// Returns the values of a column if they are few, except for odd ones: those that occur once where the others occur often.
fn few<T>(mut counted: Vec<(T, usize)>, most: usize, count: usize, strange: usize) -> Option<Vec<T>> {
    let usual = counted.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let is_constant = count >= MIN_CONSTANT && usual + (count / OTHERS_IN).max(1) >= count;
    let strange = if is_constant { strange.max(count - usual) } else { strange };
    if counted.len() > most + strange {
        return None;
    }
    let often = counted.iter().filter(|(_, count)| *count > 1).count();
    // Of few lines, too, one value is odd beside a few that are usual.
    let is_lone = often > 0 && counted.len() == often + 1 && count >= MIN_WITH_LONE.max(often * OFTEN);
    let strange = if is_lone { strange.max(1) } else { strange };
    if strange > 0 && often * OFTEN <= count {
        let rare = if is_constant { rare(counted.iter().map(|(_, count)| *count), count) } else { 1 };
        counted.retain(|(_, count)| *count > rare);
    }
    let is_few = counted.len() <= most && counted.iter().map(|(_, count)| count).sum::<usize>() + strange >= count;
    is_few.then(|| counted.into_iter().map(|(value, _)| value).collect())
}

/// Numbers of a column.
pub(super) struct Numbers {
    /// Their range.
    range: (f64, f64),
    /// Their counter, if each is larger than the one before.
    counting: Option<Counting>,
}

impl Numbers {
    /// Reorders `numbers`, which are in the order of lines.
    fn of(numbers: &mut [f64], sampled: Sampled, is_padded: bool) -> Self {
        let counting = Counting::of(numbers, sampled);
        let falls = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
        // What rises from line to line may begin at zero.
        let may_be_zero = is_padded || falls <= sampled.strange;
        let (low, high) = range(numbers, sampled.strange, is_padded);
        let low = if may_be_zero { low } else { low.max(lone_zero(numbers)) };
        Self { range: (low, high), counting }
    }

    /// Makes what is all but full odd where the others are not, whatever their range.
    fn limit_percent(&mut self, numbers: &[f64]) {
        let full = numbers.iter().filter(|number| **number >= FULL).count();
        let is_between = |number: &&f64| (NOT_FULL..FULL).contains(*number);
        if full <= (numbers.len() / FULL_IN).max(1) && numbers.iter().find(is_between).is_none() {
            self.range.1 = self.range.1.min(NOT_FULL);
        }
    }

    /// Returns how far a number lies beyond the others, if it does; one out of sequence is odd.
    fn compare(&mut self, number: f64, line: usize, odd: &mut impl FnMut(f64, usize)) -> Option<f64> {
        let beyond = self.beyond(number);
        if let Some(counting) = self.counting.as_mut().filter(|_| beyond.is_none()) {
            counting.see(number, line, odd);
        }
        beyond
    }

    /// Returns the distance of a number from the range, in lengths of it; `None` within it.
    fn beyond(&self, number: f64) -> Option<f64> {
        let (low, high) = self.range;
        Some((low - number).max(number - high) / (high - low)).filter(|beyond| *beyond > 0.0)
    }
}

/// Numbers that count their lines.
struct Counting {
    /// The last one in sequence, its line, and the one before.
    last: (f64, usize),
    before: f64,
    /// The line of the one before, if that was out of sequence.
    behind: Option<usize>,
    /// How they rise, and how often they did so; half of it where they rose otherwise.
    usual: Step,
    times: usize,
    /// Whether they rise by anything or not at all, as a meter does, not by a few from line to line.
    is_meter: bool,
}

/// A number behind another.
#[derive(Clone, Copy)]
struct Step {
    by: f64,
    lines: usize,
}

impl Counting {
    fn of(numbers: &[f64], sampled: Sampled) -> Option<Self> {
        if numbers.len() < MIN_COUNTED {
            return None;
        }
        // One out of sequence is smaller than its neighbour or the one after next; a restart has two.
        let (falls, turns) = falls_and_turns(numbers, 1);
        if falls > 1 {
            return None;
        }
        let (falls_anew, anew) = falls_and_turns(numbers, 2);
        let rises = numbers.len() - 1 - turns;
        let is_meter = falls_anew <= 1 && rises * RISES_IN >= numbers.len();
        let smallest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lines = f64::from(count(sampled.count * sampled.step));
        let are_whole = || numbers.iter().all(|number| number.fract() == 0.0);
        let counts = turns <= 1 && anew <= 1 && COUNTED_BY.contains(&((largest - smallest) / lines)) && are_whole();
        (counts || is_meter).then_some(Self {
            last: (f64::NEG_INFINITY, 0),
            before: f64::NEG_INFINITY,
            behind: None,
            usual: Step { by: 0.0, lines: 1 },
            times: 0,
            is_meter: !counts,
        })
    }

    /// Calls `odd` with the line whose number is not between its neighbours: this line, the one before, or both if they are
    /// equal, and with one behind a gap. A second smaller number in a row is a restart.
    fn see(&mut self, number: f64, line: usize, odd: &mut impl FnMut(f64, usize)) {
        if self.is_meter {
            self.see_meter(number, line, odd);
            return;
        }
        if number > self.last.0 || self.behind.is_some() {
            let step = Step { by: number - self.last.0, lines: line.saturating_sub(self.last.1) };
            let is_usual = (step.by - self.usual.by).abs() < f64::EPSILON;
            if is_usual {
                self.times += 1;
            } else if self.times >= MIN_STEPS {
                // Between two that are farther apart in the text something else may be counted.
                if step.by > 0.0 && step.lines <= self.usual.lines {
                    // The wider, the odder, if there are many.
                    odd(step.by, line);
                }
                self.times /= 2;
            } else {
                (self.usual, self.times) = (step, 1);
            }
            self.before = if self.behind.is_some() { f64::NEG_INFINITY } else { self.last.0 };
            self.last = (number, line);
            self.behind = None;
            return;
        }
        if number > self.before {
            odd(f64::INFINITY, self.last.1);
        }
        if number > self.before && number < self.last.0 {
            self.last = (number, line);
        } else {
            odd(f64::INFINITY, line);
            self.behind = (number < self.last.0).then_some(line);
        }
    }

    /// As [`Self::see`], where a restart is nothing odd: a day begins anew.
    fn see_meter(&mut self, number: f64, line: usize, odd: &mut impl FnMut(f64, usize)) {
        let (last, behind) = (self.last, self.behind.take());
        if let Some(behind) = behind {
            // What fell came back: it was the one between that is odd.
            if number >= last.0 {
                odd(f64::INFINITY, behind);
            }
        } else if number < last.0 && number > self.before {
            odd(f64::INFINITY, last.1);
        } else if number < last.0 {
            self.behind = Some(line);
            return;
        }
        (self.before, self.last) =
            (if behind.is_some() || number < last.0 { f64::NEG_INFINITY } else { last.0 }, (number, line));
    }
}

/// Returns how many numbers are larger than the one so many places behind them, and how many are at least as large.
fn falls_and_turns(numbers: &[f64], behind: usize) -> (usize, usize) {
    let pairs = numbers.iter().zip(&numbers[behind..]);
    pairs.fold((0, 0), |(falls, turns), (one, other)| {
        (falls + usize::from(one > other), turns + usize::from(one >= other))
    })
}

/// Returns the numbers within fields, if each field has as many.
fn numbers_within<'t>(sampled: Sampled, fields: &(impl Iterator<Item = &'t str> + Clone)) -> Vec<Numbers> {
    let Sampled { count, strange, .. } = sampled;
    let mut by_run: Vec<Vec<f64>> = Vec::new();
    let mut others = 0;
    for field in fields.clone() {
        let mut found = [0.0; MAX_RUNS];
        let mut width = 0;
        for number in runs(field).take(MAX_RUNS + 1) {
            if let Some(place) = found.get_mut(width) {
                *place = number;
            }
            width += 1;
        }
        if by_run.is_empty() && width <= MAX_RUNS {
            by_run = (0..width).map(|_| Vec::with_capacity(count)).collect();
        }
        if width != by_run.len() || width == 0 {
            others += 1;
            if others > strange {
                return Vec::new();
            }
            // The first may be strange itself.
            by_run = if others == 1 && by_run.first().is_some_and(|run| run.len() == 1) { Vec::new() } else { by_run };
            continue;
        }
        for (run, number) in by_run.iter_mut().zip(found) {
            run.push(number);
        }
    }
    by_run.iter_mut().map(|numbers| Numbers::of(numbers, sampled, false)).collect()
}

/// Returns the range of numbers without `strange` ones, extended by its length on both sides, or by less where they end
/// abruptly; negative only if one is. Numbers with zeros before them begin at zero.
fn range(numbers: &mut [f64], strange: usize, is_padded: bool) -> (f64, f64) {
    numbers.sort_unstable_by(f64::total_cmp);
    let strange = strange.min((numbers.len() - 1) / 2);
    let last = numbers.len() - 1;
    let (low, high) = (numbers[strange], numbers[last - strange]);
    let (mut below, mut above) = (low - (high - low), high + (high - low));
    if numbers.len() >= MIN_ENDS {
        // The first and the last may be odd themselves; of whole numbers the last one may be missing.
        let near = if strange > 2 { NEAR } else { NEAR_FEW };
        let beyond = |distance: f64| (TAIL * distance).max((high - low) / near);
        let end = strange.max(OF_END);
        let near_below = numbers[1] - beyond(numbers[end] - numbers[1]);
        above = above.min(numbers[last - 1] + beyond(numbers[last - 1] - numbers[last - end]));
        // Few numbers that lie above zero by chance end nowhere.
        if strange > 2 || least_of_few(numbers).is_finite() {
            below = below.max(near_below);
        }
    }
    let bound = if is_padded { 0.0 } else { least(numbers).max(least_of_few(numbers)).max(0.0) };
    (if low < 0.0 { below } else { below.max(bound) }, above)
}

/// Returns the letters of fields that have a digit, if all but a few have one.
fn beside_digits<'t>(fields: impl Iterator<Item = &'t str>, strange: usize) -> Option<u32> {
    let (mut without, mut beside) = (0, 0);
    for field in fields {
        if has_digit(field) {
            beside |= letters(field);
        } else {
            without += 1;
            if without > strange {
                return None;
            }
        }
    }
    Some(beside)
}

/// Returns the letters of a field as bits, all of other scripts as one.
fn letters(field: &str) -> u32 {
    field.bytes().fold(0, |letters, byte| match byte {
        b'a'..=b'z' => letters | 1 << (byte - b'a'),
        b'A'..=b'Z' => letters | 1 << (byte - b'A'),
        0x80.. => letters | 1 << 31,
        _ => letters,
    })
}

/// Returns whether a number has zeros before it, as minutes and seconds.
fn is_padded(field: &str) -> bool {
    matches!(field.as_bytes(), [b'0', b'0'..=b'9', ..])
}

/// Returns the common start of all but a few fields; empty if it is short.
fn common_start<'t>(fields: impl Iterator<Item = &'t str>, mut strange: usize) -> String {
    let (mut start, mut is_shared): (Option<&str>, bool) = (None, false);
    for field in fields {
        let known = start.unwrap_or(field);
        let same = known.bytes().zip(field.bytes()).take_while(|(a, b)| a == b).count();
        if same < MIN_START && strange > 0 {
            strange -= 1;
            start = if is_shared { start } else { Some(field) };
            continue;
        }
        if same < MIN_START {
            return String::new();
        }
        is_shared |= start.is_some();
        start = Some(&known[..known.floor_char_boundary(same)]);
    }
    // "10.0.1" and "10.0.17" share more by chance.
    let start = start.unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit());
    if start.len() < MIN_START { String::new() } else { start.to_owned() }
}
