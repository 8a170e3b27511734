//! Lines that break the pattern of the lines around them, whatever their words say.
//!
//! Most long results are one line printed again and again: an access log, a listing, a file of settings. A person sees at
//! once the line with another shape, the status 502 among 200, the value far outside its range. A sample of the lines
//! gives the usual shapes and what each of their fields holds; every line is then held against that. A text without usual
//! shapes (prose, code) has no odd lines. O(n), and at most [`SAMPLE`] lines are kept.

mod fields;

use std::collections::HashMap;
use std::ops::Range;

use super::columns::least;
use super::units::Unit;
use fields::{Field, Value, number, only_run, read, spread};

/// Fewer lines than this have no pattern.
const MIN_LINES: usize = 12;
/// Lines of the sample, spread over the text: one of so many in a row, not always the same of them, for what is logged in turn
/// has a period.
const SAMPLE: usize = 256;
/// Share of the sample, in percent, that shapes of two lines and more cover in a text with a pattern.
const COVERED: usize = 80;
/// Lines of a shape in the sample from which its fields are known.
const MIN_OF_SHAPE: usize = 8;
/// Different values of a field with a few values.
const MAX_VALUES: usize = 16;
/// At most one line in [`ODD_IN`] is odd for one reason, or [`MIN_ODD`] of a short text: of more lines the reason is none.
const ODD_IN: usize = 50;
const MIN_ODD: usize = 4;
/// One sampled line in so many may be odd itself.
const STRANGE_IN: usize = 32;
/// Bytes from which on a start that all fields have is one: `10.0.`, `/srv/`.
const MIN_START: usize = 3;
/// Bytes of a line that are compared.
const LINE_BYTES: usize = 600;

/// Returns the units, in order, whose lines are odd.
pub fn odd(text: &str, units: &[Unit]) -> Vec<usize> {
    let lines: Vec<usize> = (0..units.len()).filter(|&i| units[i].opens && !line(text, units[i]).is_empty()).collect();
    if lines.len() < MIN_LINES {
        return Vec::new();
    }
    let step = lines.len().div_ceil(SAMPLE);
    let sampled = |nth: usize| {
        let from = nth * step;
        from + usize::try_from(spread(nth as u64 + 1) >> 33).unwrap_or(0) % step.min(lines.len() - from)
    };
    let sample = Sample::of((0..lines.len().div_ceil(step)).map(|nth| line(text, units[lines[sampled(nth)]])));
    let Some(usual) = Usual::of(&sample) else { return Vec::new() };
    let most = (lines.len() / ODD_IN).max(MIN_ODD);
    let (mut of_other_shape, mut fields) = (Vec::new(), Vec::new());
    let mut by_column = vec![Vec::new(); usual.columns.len()];
    // By column: what was like the others last; mostly the next is the same.
    let mut last = vec![""; usual.columns.len()];
    for (nth, &i) in lines.iter().enumerate() {
        let (line, shape, fields) = if nth == sampled(nth / step) {
            sample.line(nth / step)
        } else {
            let line = line(text, units[i]);
            fields.clear();
            (line, read(line, &mut fields), &fields[..])
        };
        let Some(columns) = usual.shapes.get(&shape) else {
            of_other_shape.push(i);
            continue;
        };
        for (field, column) in fields.iter().zip(columns.clone()) {
            if let Some(distance) = usual.columns[column].distance(field.of(line), &mut last[column]) {
                by_column[column].push((distance, i));
            }
        }
    }
    let mut odd = of_other_shape;
    if odd.len() > most {
        odd.clear();
    }
    for mut of_column in by_column {
        if of_column.len() > most {
            // A column with a long tail: its ends alone are odd.
            of_column.retain(|(distance, _)| distance.is_finite());
            of_column.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            of_column.truncate(MIN_ODD);
        }
        odd.extend(of_column.into_iter().map(|(_, line)| line));
    }
    odd.sort_unstable();
    odd.dedup();
    odd
}

/// Returns the compared part of a line, without its end and the spaces before that.
fn line(text: &str, unit: Unit) -> &str {
    let line = unit.said(text).trim_end();
    &line[..line.floor_char_boundary(LINE_BYTES)]
}

/// Lines that were read.
#[derive(Default)]
struct Sample<'t> {
    /// Each with its shape and the end of its fields.
    lines: Vec<(&'t str, u64, usize)>,
    /// The fields of all lines.
    fields: Vec<Field>,
}

impl<'t> Sample<'t> {
    fn of(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut this = Self::default();
        for line in lines {
            let shape = read(line, &mut this.fields);
            this.lines.push((line, shape, this.fields.len()));
        }
        this
    }

    /// Returns a line, its shape and its fields.
    fn line(&self, nth: usize) -> (&'t str, u64, &[Field]) {
        let (line, shape, end) = self.lines[nth];
        let start = nth.checked_sub(1).map_or(0, |before| self.lines[before].2);
        (line, shape, &self.fields[start..end])
    }
}

/// What the lines of a text usually look like.
struct Usual {
    /// The columns of each shape; none of a shape with few lines.
    shapes: HashMap<u64, Range<usize>>,
    columns: Vec<Column>,
}

impl Usual {
    /// Returns `None` where the sampled lines have no pattern.
    fn of(sample: &Sample<'_>) -> Option<Self> {
        let mut by_shape: HashMap<u64, Vec<usize>> = HashMap::default();
        for (nth, (_, shape, _)) in sample.lines.iter().enumerate() {
            by_shape.entry(*shape).or_default().push(nth);
        }
        by_shape.retain(|_, lines| lines.len() > 1);
        if by_shape.values().map(Vec::len).sum::<usize>() * 100 < sample.lines.len() * COVERED {
            return None;
        }
        let mut usual = Self { shapes: HashMap::default(), columns: Vec::new() };
        for (shape, lines) in by_shape {
            let start = usual.columns.len();
            if lines.len() >= MIN_OF_SHAPE {
                let field = |nth: usize, at: usize| {
                    let (line, _, fields) = sample.line(nth);
                    fields[at].of(line)
                };
                let column = |at| Column::of(lines.len(), &lines.iter().map(|&nth| field(nth, at)));
                usual.columns.extend((0..sample.line(lines[0]).2.len()).map(column));
            }
            usual.shapes.insert(shape, start..usual.columns.len());
        }
        Some(usual)
    }
}

/// What a field holds in the lines of one shape.
enum Column {
    /// Text with this start, one of a few values where any are given, and the range of the number that is in each, if one is.
    Text(String, Option<Vec<Value>>, Option<(f64, f64)>),
    /// Numbers that lie in this range, and are one of a few where any are given.
    Numbers((f64, f64), Option<Vec<Value>>),
}

impl Column {
    /// Reads no more of the fields than it takes to know that they hold anything.
    fn of<'t>(count: usize, fields: &(impl Iterator<Item = &'t str> + Clone)) -> Self {
        let strange = count / STRANGE_IN;
        let max_values = MAX_VALUES.min(count / 4);
        let mut values: Vec<(Value, usize)> = Vec::new();
        let mut numbers = Vec::with_capacity(count);
        let text = |values| {
            let mut runs = Vec::with_capacity(count);
            runs.extend(fields.clone().filter_map(only_run));
            let range = (runs.len() + strange >= count).then(|| range(&mut runs, strange));
            Self::Text(common_start(fields.clone(), strange), values, range)
        };
        for (read, field) in (1..).zip(fields.clone()) {
            let value = Value::of(field);
            numbers.extend(value.number());
            // One that is not among the few is strange.
            let may_be_few = values.len() <= max_values + strange;
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, count)) => *count += 1,
                None if may_be_few => values.push((value, 1)),
                None if numbers.len() + strange < read => return text(None),
                None => {}
            }
        }
        if values.len() <= max_values + strange {
            values.retain(|(_, count)| *count > usize::from(strange > 0));
            if values.iter().map(|(_, count)| count).sum::<usize>() + strange >= count && values.len() <= max_values {
                let values = Some(values.into_iter().map(|(value, _)| value).collect());
                return match numbers.len() {
                    0 => text(values),
                    all if all == count => Self::Numbers(range(&mut numbers, strange), values),
                    _ => Self::Text(String::new(), values, None),
                };
            }
        }
        if numbers.len() + strange < count {
            return text(None);
        }
        Self::Numbers(range(&mut numbers, strange), None)
    }

    /// Returns how far a field lies from what the column holds; `None` where it is like the others, as `last` is.
    fn distance<'t>(&self, field: &'t str, last: &mut &'t str) -> Option<f64> {
        if field == *last {
            return None;
        }
        let distance = match self {
            Self::Text(start, values, range) => {
                let is_usual =
                    field.starts_with(start) && values.as_ref().is_none_or(|values| values.contains(&Value::of(field)));
                match range {
                    _ if !is_usual => Some(f64::INFINITY),
                    Some(range) => only_run(field).and_then(|number| beyond(*range, number)),
                    None => None,
                }
            }
            Self::Numbers(range, values) => match (number(field), values) {
                (None, _) => Some(f64::INFINITY),
                (Some(_), Some(values)) if values.contains(&Value::of(field)) => None,
                // Near is less odd than far, where many are not of the few.
                (Some(number), Some(_)) => beyond(*range, number).or(Some(f64::MIN_POSITIVE)),
                (Some(number), None) => beyond(*range, number),
            },
        };
        if distance.is_none() {
            *last = field;
        }
        distance
    }
}

/// Returns the range of numbers but for so many `strange` ones, and as far again on both sides; where no number is negative, none
/// is expected to be.
fn range(numbers: &mut [f64], strange: usize) -> (f64, f64) {
    numbers.sort_unstable_by(f64::total_cmp);
    let strange = strange.min((numbers.len() - 1) / 2);
    let (low, high) = (numbers[strange], numbers[numbers.len() - 1 - strange]);
    let below = low - (high - low);
    (if low < 0.0 { below } else { below.max(least(numbers)).max(0.0) }, high + (high - low))
}

/// Returns how far a number lies beyond a range, in lengths of that; `None` within it.
fn beyond((low, high): (f64, f64), number: f64) -> Option<f64> {
    Some((low - number).max(number - high) / (high - low)).filter(|beyond| *beyond > 0.0)
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

#[cfg(test)]
mod tests {
    use super::super::units::units;
    use super::*;

    /// Returns the odd lines among a hundred that `line` writes, the `odd` ones in their places.
    fn odd_among(line: impl Fn(usize) -> String, odd_lines: &[(usize, &str)]) -> Vec<String> {
        let mut lines: Vec<String> = (0..100).map(line).collect();
        for (at, odd) in odd_lines {
            lines[*at] = (*odd).to_owned();
        }
        let text = lines.join("\n");
        let units = units(&text, false, |_| 0);
        odd(&text, &units).into_iter().map(|i| units[i].line(&text).to_owned()).collect()
    }

    #[test]
    fn a_line_that_breaks_the_pattern_is_odd_whatever_it_says() {
        type Line = fn(usize) -> String;
        let cases: [(Line, &str); 17] = [
            (|i| format!("GET /o/{i} 200 {}", 100 + i * 37 % 900), "GET /o/7 502 0"),
            (|i| format!("{i},SKU-{i:05},{},{}.50", 12 + i * 7 % 400, i % 80), "61,SKU-00061,-31744,4.50"),
            (|i| format!("step {i} loss={}.{i:02} lr=3e-4", i % 3), "step 61 loss=nan lr=3e-4"),
            (
                |i| format!("{{\"ts\":{},\"level\":\"info\",\"status\":200}}", i * 1000),
                r#"{"ts":61000,"level":"info","status":507}"#,
            ),
            (
                |i| format!("web-{:x}   1/1   Running   0   {i}m", i * 7919),
                "web-7c9fd   0/1   CrashLoopBackOff   17   3m",
            ),
            (|i| format!("64 bytes: icmp_seq={i} time={} ms", 20 + i % 11), "64 bytes: icmp_seq=61 time=1893 ms"),
            (|i| format!("tenant.{i}.max=200"), "tenant.61.max=0"),
            (|i| format!("第{i}号订单 已发货 状态正常"), "第61号订单 磁盘已满 状态异常"),
            (|i| format!("10.0.{}.{} srv{i}.corp", i % 7, 1 + i * 37 % 250), "203.0.113.66 srv61.corp"),
            (|i| format!("copied /srv/data/{:x} in {i} s", i * 7919), "copied /etc/shadow in 61 s"),
            (|i| format!("stock of {i}: {} pieces", 40 + i * 37 % 460), "stock of 61: 0 pieces"),
            (|i| format!("第{i}次 耗时{}毫秒", 20 + i % 30), "第61次 耗时90011毫秒"),
            (|i| format!("支付 ¥{} 完成 {i}", 20 + i % 30), "支付 ¥90011 完成 61"),
            (|i| format!("room {i}: {}°C", 20 + i % 9), "room 61: 90°C"),
            (|i| format!("took{}ms for {i}", 20 + i % 30), "took90011ms for 61"),
            (|i| format!("worker-{} served {i}", i % 7), "worker-99 served 61"),
            (|i| format!("[{i}/100] Building src/f{i}.c.o"), "src/f61.c:12:5: error: unknown type name 'foo'"),
        ];
        for (line, odd) in cases {
            for at in [0, 61, 99] {
                assert_eq!(odd_among(line, &[(at, odd)]), [odd]);
            }
            assert_eq!(odd_among(line, &[]), Vec::<String>::new(), "{odd}");
        }
    }

    #[test]
    fn a_number_is_far_from_others_that_come_in_turn() {
        for period in 1..16 {
            for count in [100, 300, 600, 900, 1_300, 3_000] {
                let value = |i: usize| if i == 61 { 90_011 } else { 20 + i % period };
                let line = |i: usize| format!("heartbeat {i} of node latency={}ms", value(i));
                let text = (0..count).map(line).collect::<Vec<_>>().join("\n");
                let units = units(&text, false, |_| 0);
                assert!(odd(&text, &units).contains(&61), "{period} {count}");
            }
        }
    }

    #[test]
    fn what_many_lines_do_is_not_odd() {
        let two_shapes =
            |i: usize| if i.is_multiple_of(9) { format!("gc: {i} ms") } else { format!("served {i} in {} ms", i % 40) };
        assert_eq!(odd_among(two_shapes, &[]), Vec::<String>::new());
        let grows = |i: usize| format!("row {} of {}", i * i * i, i * 17);
        assert_eq!(odd_among(grows, &[]), Vec::<String>::new());
        let words =
            ["The shop is closed, we think.", "Nobody came!", "It rained: so what?", "(a note)", "- one\t- two"];
        let prose = |i: usize| format!("{} {}", words[i % 5], "and so on, ".repeat(i));
        assert_eq!(odd_among(prose, &[(50, "Prices: 3, 4")]), Vec::<String>::new());
    }

    #[test]
    fn of_a_long_tail_the_ends_are_odd() {
        let latency = |i: usize| format!("took {} ms\n", if i % 40 == 3 { 1000 + i } else { 20 + i % 37 });
        let text: String = (0..2000).map(latency).collect();
        let units = units(&text, false, |_| 0);
        assert_eq!(odd(&text, &units), [1843, 1883, 1923, 1963]);
    }

    #[test]
    fn numbers_of_any_size_compare() {
        let digits = "9".repeat(400);
        assert_eq!(odd_among(|i| format!("n {digits}{i}"), &[]), Vec::<String>::new());
        assert_eq!(
            (number("-0.5"), number("45%"), number("1."), number("12ab3"), number("-")),
            (Some(-0.5), Some(45.0), Some(1.0), None, None)
        );
    }
}
