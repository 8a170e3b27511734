//! What the fields of a column hold, and which of them are unlike the others.

use super::super::columns::least;
use super::fields::{Value, measured, runs};

/// Different values of a field with a few values.
pub(super) const MAX_VALUES: usize = 16;
/// One sampled line in so many may be odd itself.
const STRANGE_IN: usize = 32;
/// Bytes from which on a start that all fields have is one: `10.0.`, `/srv/`.
const MIN_START: usize = 3;
/// Numbers within a field that are compared.
const MAX_RUNS: usize = 8;
/// How far beyond the largest of a sample numbers go, in distances between that and those which are about as large: where many
/// lie close together, few are missing.
const TAIL: f64 = 4.0;
/// Returns how many of so many sampled lines may be odd themselves.
pub(super) fn strange(count: usize) -> usize {
    count / STRANGE_IN
}

/// What a field holds in the lines of one shape.
pub(super) enum Column {
    /// Text with this start, one of a few values where any are given, and the numbers within, if each has as many.
    Text(String, Option<Vec<Value>>, Vec<Numbers>),
    /// Numbers, one of a few where any are given, with one of a few units likewise.
    Numbers(Numbers, Option<Vec<Value>>, Option<Vec<u32>>),
}

impl Column {
    /// Reads no more of the `count` fields, so many of which may be strange, than it takes to know that they hold anything.
    pub(super) fn of<'t>(count: usize, strange: usize, fields: &(impl Iterator<Item = &'t str> + Clone)) -> Self {
        let max_values = MAX_VALUES.min(count / 4);
        let mut values: Vec<(Value, usize)> = Vec::new();
        let mut units: Vec<(u32, usize)> = Vec::new();
        let mut numbers = Vec::with_capacity(count);
        let text =
            |values| Self::Text(common_start(fields.clone(), strange), values, numbers_within(count, strange, fields));
        for (read, field) in (1..).zip(fields.clone()) {
            let value = match measured(field) {
                Some((number, unit)) => {
                    numbers.push(number);
                    add(&mut units, unit);
                    Value::Number(number.to_bits())
                }
                None => Value::form(field),
            };
            // One that is not among the few is strange.
            let may_be_few = values.len() <= max_values + strange;
            if may_be_few || values.iter().any(|(known, _)| *known == value) {
                add(&mut values, value);
            } else if numbers.len() + strange < read {
                return text(None);
            }
        }
        let values = few(values, max_values, count, strange);
        let is_numbers = if values.is_some() { numbers.len() == count } else { numbers.len() + strange >= count };
        match values {
            values if is_numbers => {
                let units = few(units, MAX_VALUES, numbers.len(), strange);
                Self::Numbers(Numbers::of(&mut numbers, strange), values, units)
            }
            Some(values) if !numbers.is_empty() => Self::Text(String::new(), Some(values), Vec::new()),
            values => text(values),
        }
    }

    /// Returns how far a field lies from what the column holds; `None` where it is like the others, as `last` is.
    pub(super) fn distance<'t>(&self, field: &'t str, last: &mut &'t str) -> Option<f64> {
        if field == *last {
            return None;
        }
        let distance = match self {
            Self::Text(start, values, numbers) => {
                let is_usual = field.starts_with(&**start)
                    && values.as_ref().is_none_or(|values| values.contains(&Value::of(field)));
                let beyond = || numbers.iter().zip(runs(field)).filter_map(|(numbers, run)| numbers.beyond(run));
                if is_usual { beyond().reduce(f64::max) } else { Some(f64::INFINITY) }
            }
            Self::Numbers(numbers, values, units) => match measured(field) {
                Some((_, unit)) if units.as_ref().is_some_and(|units| !units.contains(&unit)) => Some(f64::INFINITY),
                Some((number, _)) => match values {
                    Some(values) if values.contains(&Value::Number(number.to_bits())) => None,
                    // Near is less odd than far, where many are not of the few.
                    Some(_) => numbers.beyond(number).or(Some(f64::MIN_POSITIVE)),
                    None => numbers.beyond(number),
                },
                None => Some(f64::INFINITY),
            },
        };
        if distance.is_none() {
            *last = field;
        }
        distance
    }
}

/// Adds to what was counted.
fn add<T: PartialEq>(counted: &mut Vec<(T, usize)>, value: T) {
    match counted.iter_mut().find(|(known, _)| *known == value) {
        Some((_, count)) => *count += 1,
        None => counted.push((value, 1)),
    }
}

/// Returns the values of a column, where they are a few but for what is strange.
fn few<T>(mut counted: Vec<(T, usize)>, most: usize, count: usize, strange: usize) -> Option<Vec<T>> {
    if counted.len() > most + strange {
        return None;
    }
    counted.retain(|(_, count)| *count > usize::from(strange > 0));
    let is_few = counted.len() <= most && counted.iter().map(|(_, count)| count).sum::<usize>() + strange >= count;
    is_few.then(|| counted.into_iter().map(|(value, _)| value).collect())
}

/// Numbers of a column.
pub(super) struct Numbers {
    /// Where they lie.
    range: (f64, f64),
}

impl Numbers {
    /// Changes the order of numbers.
    fn of(numbers: &mut [f64], strange: usize) -> Self {
        Self { range: range(numbers, strange) }
    }

    /// Returns how far a number lies beyond the range, in lengths of that; `None` within it.
    fn beyond(&self, number: f64) -> Option<f64> {
        let (low, high) = self.range;
        Some((low - number).max(number - high) / (high - low)).filter(|beyond| *beyond > 0.0)
    }
}

/// Returns the numbers within the fields of a text, where each field has as many.
fn numbers_within<'t>(count: usize, strange: usize, fields: &(impl Iterator<Item = &'t str> + Clone)) -> Vec<Numbers> {
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
    by_run.iter_mut().map(|numbers| Numbers::of(numbers, strange)).collect()
}

/// Returns the range of numbers but for so many `strange` ones, and as far again on both sides, or less far where they end
/// abruptly; where no number is negative, none is expected to be.
fn range(numbers: &mut [f64], strange: usize) -> (f64, f64) {
    numbers.sort_unstable_by(f64::total_cmp);
    let strange = strange.min((numbers.len() - 1) / 2);
    let last = numbers.len() - 1;
    let (low, high) = (numbers[strange], numbers[last - strange]);
    let (mut below, mut above) = (low - (high - low), high + (high - low));
    if strange > 2 {
        // The first and the last may be odd themselves.
        below = below.max(numbers[1] - TAIL * (low - numbers[1]));
        above = above.min(numbers[last - 1] + TAIL * (numbers[last - 1] - high));
    }
    (if low < 0.0 { below } else { below.max(least(numbers)).max(0.0) }, above)
}

/// Returns what all fields start with but for a few; nothing where that is short.
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
