//! Finds the lines that name the columns of those below them: a row of a table says little without.

use std::ops::Range;

use crate::text::bytes::has_time;

use super::units::Unit;

/// A heading and its rows, as ranges of units.
#[derive(Debug, PartialEq, Eq)]
pub struct Headed {
    pub heading: Range<usize>,
    pub rows: Range<usize>,
}

/// First lines of a paragraph that may be a heading: a title and a border may stand before it.
const TRIED: usize = 4;
/// Rows that are looked at, and the share that must fit, in percent.
const SAMPLED: usize = 20;
const FITTING: usize = 80;
/// Fewest rows below a heading without a rule, fewest columns of aligned ones, and the longest name of a column.
const MIN_ROWS: usize = 2;
const MIN_COLUMNS: usize = 3;
const MAX_NAME_BYTES: usize = 64;
/// Most lines of a heading in a box: names and types.
const MAX_LINES: usize = 4;

/// Returns the headings of a text, one for each paragraph that has one. O(n).
pub fn headings(text: &str, units: &[Unit]) -> Vec<Headed> {
    let lines: Vec<usize> = (0..units.len()).filter(|&unit| units[unit].opens).collect();
    let line = |unit: usize| units[unit].line(text);
    let paragraphs =
        lines.chunk_by(|&before, &after| !line(before).trim().is_empty() && !line(after).trim().is_empty());
    let found = paragraphs.filter_map(|paragraph| {
        let said: Vec<&str> = paragraph.iter().map(|&unit| line(unit)).collect();
        let (names, rows) = heading(&said)?;
        let behind = paragraph.last()? + 1;
        let end = (behind..units.len()).find(|&unit| units[unit].opens).unwrap_or(units.len());
        Some(Headed { heading: paragraph[names]..paragraph[rows], rows: paragraph[rows]..end })
    });
    found.collect()
}

/// Returns which line of a paragraph names the columns, and the first one behind it that is a row.
fn heading(lines: &[&str]) -> Option<(usize, usize)> {
    let mut tried = (0..lines.len()).filter(|&at| !is_rule(lines[at])).take(TRIED);
    tried.find_map(|at| {
        let below = &lines[at + 1..];
        let rows: Vec<&str> = below.iter().copied().filter(|line| !is_rule(line)).take(SAMPLED).collect();
        let is_boxed = lines[at].contains('│') && is_split(lines[at], &rows, '│');
        if is_boxed {
            let types = below.iter().take(MAX_LINES).position(|line| is_rule(line) && !line.contains("--"))?;
            return Some((at, at + 1 + types));
        }
        let is_ruled = below.first().is_some_and(|rule| is_rule(rule)) && !rows.is_empty();
        let rule = if is_ruled { below[0] } else { "" };
        let is_head = ['|', '\t', ',', ';'].into_iter().any(|by| is_split(lines[at], &rows, by))
            || is_ruled && underlines(rule, lines[at])
            || is_aligned(lines[at], &rows)
            || is_named(lines[at], &rows);
        is_head.then_some((at, at + 1 + usize::from(is_ruled)))
    })
}

/// Returns the rows of tables that name a group for those below them, which leave the first cells empty: of a pivot "Emden | Jan | 7" and
/// then " | Feb | 9". Outer groups come first. O(n).
pub fn groups(text: &str, units: &[Unit], tables: &[Headed]) -> Vec<Headed> {
    let mut groups = Vec::new();
    for Headed { heading, rows } in tables {
        let names = units[heading.start].line(text);
        let empty = |unit: usize| empty_cells(units[unit].line(text), names);
        // The rows that are open, with their empty cells.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let lines = rows.clone().filter(|&unit| units[unit].opens && !is_rule(units[unit].line(text)));
        for (unit, depth) in lines.map(|unit| (unit, empty(unit))).chain([(rows.end, 0)]) {
            while let Some((row, _)) = open.pop_if(|(_, of)| *of >= depth) {
                if (row + 1..unit).any(|unit| units[unit].opens) {
                    groups.push(Headed { heading: row..row + 1, rows: row + 1..unit });
                }
            }
            open.push((unit, depth));
        }
    }
    groups.sort_by_key(|group| group.heading.start);
    groups
}

/// Returns how many cells of a row are empty before the first that is not, below a line with their names.
fn empty_cells(row: &str, names: &str) -> usize {
    if let Some(by) = ['|', '│', '\t', ',', ';'].into_iter().find(|by| names.contains(*by)) {
        let empty = cells(row, by).take_while(|cell| cell.is_empty()).count();
        return if empty < cells(row, by).count() { empty } else { 0 };
    }
    let indent = row.chars().take_while(|c| *c == ' ').count();
    edges(names, false).into_iter().take_while(|(_, end)| *end <= indent).count()
}

/// Returns whether a line only draws: `+----+`, `├──┼──┤`.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.chars().all(|c| matches!(c, '-' | '=' | '+' | '|' | ':' | ' ' | '\u{2500}'..='\u{257f}'))
        && line.contains(['-', '=', '─', '═'])
}

/// Returns whether a rule stands under a line: under each of its columns, or under all of it.
fn underlines(rule: &str, line: &str) -> bool {
    // The top of a box stands under a title.
    if rule.trim().starts_with(['+', '┌', '╭', '╔']) {
        return false;
    }
    let groups = rule.split([' ', '+', '|']).filter(|group| group.len() > 1).count();
    let (rule, line) = (rule.trim().chars().count(), line.trim().chars().count());
    groups > 1 || rule >= line && rule - line <= 2
}

/// Returns whether the cells of a line name those of the rows.
fn is_split(line: &str, rows: &[&str], by: char) -> bool {
    // Bars are there for a table alone.
    let (least_names, least_rows) = if BORDERS.contains(&by) { (2, 1) } else { (MIN_COLUMNS, 3) };
    let names: Vec<&str> = cells(line, by).collect();
    let is_name = |name: &&str| {
        name.len() <= MAX_NAME_BYTES
            && name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '#' | '%' | '?'))
            && !has_time(name.as_bytes())
    };
    names.len() >= least_names
        && names.iter().all(is_name)
        && rows.len() >= least_rows
        && do_fit(rows, |row| cells(row, by).count() >= names.len())
}

/// What stands between the cells of a row and around them.
const BORDERS: [char; 2] = ['|', '│'];

/// Returns the cells of a row in a box, or of another one.
fn cells(line: &str, by: char) -> impl Iterator<Item = &str> {
    let line = if BORDERS.contains(&by) { line.trim().trim_matches(BORDERS) } else { line };
    let within = if by == '│' { '┆' } else { by };
    line.split([by, within]).map(|cell| cell.trim().trim_matches('"'))
}

fn do_fit<'t>(rows: &[&'t str], fits: impl FnMut(&&&'t str) -> bool) -> bool {
    rows.iter().filter(fits).count() * 100 >= rows.len() * FITTING
}

/// Returns whether the words of a line stand above or at the edges of those in the rows.
fn is_aligned(line: &str, rows: &[&str]) -> bool {
    let names: Vec<&str> = line.split_whitespace().collect();
    let is_name = |name: &&str| !name.starts_with(|c: char| c.is_ascii_digit()) || name.contains(char::is_alphabetic);
    let is_upper = names.iter().all(|name| !name.contains(char::is_lowercase)) && line.contains(char::is_alphabetic);
    let has_number = |row: &&&str| row.split_whitespace().any(|word| word.contains(|c: char| c.is_ascii_digit()));
    if names.len() < MIN_COLUMNS
        || rows.len() < MIN_ROWS
        || !names.iter().all(is_name)
        || has_time(line.as_bytes())
        || !is_upper && !do_fit(rows, has_number)
    {
        return false;
    }
    [false, true].into_iter().any(|is_wide| {
        let heads = edges(line, is_wide);
        let fits = |row: &&&str| {
            let words = edges(row, is_wide);
            let meets = |&&(start, end): &&(usize, usize)| {
                words.iter().any(|word| word.0 == start && start > 0 || word.1 == end)
            };
            heads.iter().filter(meets).count() * 2 >= heads.len() && words.len() + 2 >= heads.len()
        };
        do_fit(rows, fits)
    })
}

/// Returns whether nearly each word of a line begins with a capital or a sign, and stands for one of the rows, which have numbers at the
/// same places.
fn is_named(line: &str, rows: &[&str]) -> bool {
    let names: Vec<&str> = line.split_whitespace().collect();
    let is_small = |name: &&&str| name.starts_with(char::is_lowercase);
    let words = |row: &str| row.split_whitespace().count();
    let Some(first) = rows.first().filter(|_| rows.len() > MIN_ROWS && names.len() >= MIN_COLUMNS) else {
        return false;
    };
    let is_number = |row: &str, at: usize| {
        row.split_whitespace().nth(at).is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    };
    names.iter().filter(is_small).count() <= 1
        && !line.contains(|c: char| c.is_ascii_digit())
        && (names.len().saturating_sub(2)..=names.len() + 1).contains(&words(first))
        && do_fit(rows, |row| words(row) == words(first))
        && (0..words(first)).any(|at| do_fit(rows, |row| is_number(row, at)))
}

/// Returns where the words of a line start and end, in characters; `is_wide`: those of Chinese count as two.
fn edges(line: &str, is_wide: bool) -> Vec<(usize, usize)> {
    let mut words: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut was_space) = (0, true);
    for c in line.chars() {
        let (start, is_space) = (at, c.is_whitespace());
        at += if is_wide && c >= '\u{1100}' { 2 } else { 1 };
        match words.last_mut().filter(|_| !was_space) {
            _ if is_space => {}
            Some(word) => word.1 = at,
            None => words.push((start, at)),
        }
        was_space = is_space;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::segments::units::units;

    /// Returns what the first heading of a text says, its line breaks as slashes, and the first word below it.
    fn found(text: &str) -> Option<(String, &str)> {
        let units = units(text, false, |_| 0);
        let Headed { heading, rows } = headings(text, &units).into_iter().next()?;
        let said = |unit: &Unit| unit.line(text).split_whitespace().collect::<Vec<_>>().join(" ");
        let heading: Vec<String> = units[heading].iter().map(said).collect();
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        Some((heading.join(" / "), text[units[rows.start].start as usize..].split_whitespace().find(is_word)?))
    }

    #[test]
    fn the_names_of_columns_are_found_in_what_tools_print() {
        for (text, heading, row) in [
            (
                "             amount         qty\ncount     50.000000   50.000000\nmean   10159.580000  487.348800\n",
                None,
                "",
            ),
            (
                "            amount        qty        tax\ncount    50.000000  50.000000  50.000000\nmean  10159.580000 487.348800   3.100000\n",
                Some("amount qty tax"),
                "count",
            ),
            (
                "    order_id customer  amount\n0       1001     Anna   23.40\n1       1002      Ben  199.00\n",
                Some("order_id customer amount"),
                "0",
            ),
            (
                "USER         PID %CPU %MEM COMMAND\nroot         300  0.1  2.3 /usr/sbin/nginx -g x\napp        71337 10.1  0.3 python3 worker.py\n",
                Some("USER PID %CPU %MEM COMMAND"),
                "root",
            ),
            (
                "top - 10:22 up 41 days,  load 0.91\nTasks: 40 total\n\n    PID USER      PR S  %CPU COMMAND\n    341 root      20 S   0.3 nginx\n  12341 app       20 S  10.3 node\n",
                Some("PID USER PR S %CPU COMMAND"),
                "341",
            ),
            (
                "Filesystem      Size  Used Avail Use% Mounted on\n/dev/sda1       153G  113G   40G  74% /\n/dev/sdb1        38G  1.1G   37G   3% /boot\n/dev/sdc1       3.8T  2.1T  1.7T  56% /data\n",
                Some("Filesystem Size Used Avail Use% Mounted on"),
                "/dev/sda1",
            ),
            (
                "┌────────┬────────┐\n│   id   │  name  │\n│ int64  │ varchar│\n├────────┼────────┤\n│     17 │ Anna   │\n└────────┴────────┘\n",
                Some("│ id │ name │ / │ int64 │ varchar│"),
                "17",
            ),
            (
                "shape: (2, 2)\n┌─────┬──────┐\n│ a   ┆ city │\n│ --- ┆ ---  │\n│ i64 ┆ str  │\n╞═════╪══════╡\n│ 1   ┆ Rome │\n└─────┴──────┘\n",
                Some("│ a ┆ city │ / │ --- ┆ --- │ / │ i64 ┆ str │"),
                "1",
            ),
            (
                "+----+------+\n| id | name |\n+----+------+\n| 17 | Anna |\n+----+------+\n",
                Some("| id | name | / +----+------+"),
                "17",
            ),
            (" count \n-------\n 155622\n(1 row)\n", Some("count / -------"), "155622"),
            (
                "## Prices\n\n| Ticket | Price |\n|---|---|\n| Adult | 9.97 € |\n\nThey hold until May.\n",
                Some("| Ticket | Price | / |---|---|"),
                "Adult",
            ),
            (
                "UNIT          LOAD   ACTIVE SUB\nnginx.service loaded active running\ncron.service  loaded active running\n",
                Some("UNIT LOAD ACTIVE SUB"),
                "nginx.service",
            ),
            ("Name,City,Amount\nAnna,Rome,3\nBen,Oslo,4\nCid,Bern,5\n", Some("Name,City,Amount"), "Anna,Rome,3"),
            ("We met on Monday and talked\nabout the plan for 2027, which\nis to be ready by 3 May.\n", None, ""),
            (
                "Starting the import job now\n2026-11-28 10:00:01 INFO read 12 rows\n2026-11-28 10:00:02 INFO read 14 rows\n",
                None,
                "",
            ),
            ("---\n\n-----\n- \n", None, ""),
        ] {
            assert_eq!(found(text), heading.map(|heading| (heading.to_owned(), row)), "{text}");
        }
    }

    #[test]
    fn rows_without_a_first_cell_stand_under_the_one_that_has_it() {
        for (text, rows) in [
            ("branch;month;orders\nEmden;Jan;7\n;Feb;9\n;Mar;8\nHusum;Jan;5\n;Feb;6\n", vec![(1, 2..4), (4, 5..6)]),
            (
                "| land | branch | month | orders |\n|---|---|---|---|\n| N | Emden | Jan | 7 |\n| | | Feb | 9 |\n| | Husum | Jan | 5 |\n| | | Feb | 6 |\n",
                vec![(2, 3..6), (4, 5..6)],
            ),
            (
                "branch   month   orders\nEmden    Jan       7254\n         Feb       6414\nHusum    Jan       3656\n         Feb         12\n",
                vec![(1, 2..3), (3, 4..5)],
            ),
            ("rank name orders\n   1 Anna      3\n  10 Ben       4\n 100 Cid       5\n", vec![]),
            ("Name,City,Amount\nAnna,Rome,3\nBen,Oslo,4\nCid,Bern,5\n", vec![]),
        ] {
            let units = units(text, false, |_| 0);
            let found = groups(text, &units, &headings(text, &units));
            let found: Vec<_> = found.into_iter().map(|group| (group.heading.start, group.rows)).collect();
            assert_eq!(found, rows, "{text}");
        }
    }
}
