//! Finds for each piece of code, configuration or a record the line that says whose it is: the signature of its function, its
//! section, its key, the name of the record, the file of its diff. Under another one it would say something else.

use std::collections::{HashMap, HashSet};

use crate::text::elision;

use super::code::{is_signature, without_number};
use super::detect::{Detected, Says};
use super::headings::Headed;
use super::log::{HEADING_LEVELS, heading};
use super::records::Named;
use super::units::Unit;
use super::{Class, Kind, Span, at};

/// No parent.
const NONE: u32 = u32::MAX;

/// Shares of lines, in percent, that make a text one of sections, and one of keys.
const MIN_SECTIONS: usize = 3;
const MIN_KEYS: usize = 60;
/// A list with so many items at one depth is one of records.
const MANY_ITEMS: usize = 64;
const MAX_DEPTH: usize = 32;
/// Lines for each that is none of a text of keys.
const OTHERS: usize = 50;

/// What makes a line a parent of those behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Signatures, of what is indented more.
    Code,
    /// `[section]`, of all up to the next.
    Sections,
    /// Keys and list items, of what is indented more.
    Keys,
    /// `# Heading`, of all up to one of its level, and below it lines that introduce a list, of its items.
    Text,
}

/// The parents of a text's pieces; none of most texts.
#[derive(Debug, Default)]
pub struct Parents(Vec<u32>);

impl Parents {
    /// Finds the parents of `pieces`, which cover `text` and consist of `units`; `records` are those of a text without other structure, or the
    /// commits, files and hunks of a diff, `headed` the tables and groups in it. O(n).
    pub fn of(
        text: &str,
        units: &[Unit],
        pieces: &[Span],
        detected: &Detected,
        records: &[Named],
        headed: &[Headed],
    ) -> Self {
        let this = Self::of_lines(text, units, pieces, detected, records);
        if headed.is_empty() { this } else { this.with_headed(units, pieces, headed) }
    }

    fn of_lines(text: &str, units: &[Unit], pieces: &[Span], detected: &Detected, records: &[Named]) -> Self {
        let Detected { kind, is_numbered, says } = *detected;
        let is_code = says == Says::Code;
        let bare = |line| if is_numbered { without_number(line).unwrap_or(line) } else { line };
        let lines = |piece: &Span| text[piece.range()].lines().map(bare);
        let has_gaps = elision::may_have_note(text);
        let says_nothing = |line: &str| line.trim().is_empty() || has_gaps && elision::read_gap(line).is_some();
        let all_lines = || pieces.iter().flat_map(lines).filter(|line| !says_nothing(line));
        let form = match kind {
            // Many comments make a configuration code.
            Kind::Code if is_code && all_lines().any(|line| is_section(line.trim())) => {
                form(all_lines()).filter(|form| *form == Form::Sections).or(Some(Form::Code))
            }
            Kind::Code if is_code => Some(Form::Code),
            Kind::Table => return Self::of_table(text, pieces),
            Kind::Code | Kind::Plain | Kind::Log => {
                // Keys below which nothing stands are those of records.
                let is_nested = || all_lines().any(|line| line.starts_with([' ', '\t', '-']));
                let form = form(all_lines());
                let form = form.filter(|form| *form != Form::Keys || records.is_empty() || is_nested());
                form.or_else(|| records.is_empty().then_some(Form::Text))
            }
            _ => None,
        };
        let Some(form) = form else { return Self::of_records(units, pieces, records) };
        let mut open: Vec<(usize, u32)> = Vec::new();
        let mut parents = Vec::with_capacity(pieces.len());
        let mut next = all_lines().skip(1);
        let recurring = if form == Form::Text { recurring(all_lines()) } else { HashSet::new() };
        let mut lists = Lists { recurring, bare: None };
        for (number, piece) in (0..).zip(pieces) {
            let mut parent = None;
            for line in lines(piece) {
                if says_nothing(line) {
                    lists.end();
                    continue;
                }
                let (depth, is_parent) = match form {
                    Form::Text => lists.read(line, next.next()),
                    form => form.read(line, piece.class),
                };
                while open.last().is_some_and(|(outside, _)| *outside >= depth) {
                    open.pop();
                }
                parent.get_or_insert(open.last().map_or(NONE, |(_, piece)| *piece));
                if is_parent {
                    open.push((depth, number));
                }
            }
            parents.push(parent.unwrap_or(NONE));
        }
        Self(parents)
    }

    /// Puts the rows of tables under the lines that name their columns, and those of groups under theirs, but for rows that
    /// stand below a nearer line.
    fn with_headed(mut self, units: &[Unit], pieces: &[Span], headed: &[Headed]) -> Self {
        if self.0.is_empty() {
            self = Self::none(pieces.len());
        }
        let piece = |unit: usize| pieces.partition_point(|piece| piece.end < units[unit].end);
        for Headed { heading, rows } in headed {
            let (first, last) = (piece(heading.start), piece(heading.end - 1));
            for row in first + 1..=piece(rows.end - 1) {
                if self.of_piece(row).is_none_or(|nearer| nearer < first) {
                    self.set(at(row), at(last.min(row - 1)));
                }
            }
        }
        self.without_circles()
    }

    /// Puts all rows under the first one, and the line below that in Markdown.
    fn of_table(text: &str, pieces: &[Span]) -> Self {
        let mut this = Self::none(pieces.len());
        let is_blank = |piece: &Span| text[piece.range()].trim().is_empty();
        let head = pieces.iter().position(|piece| piece.class == Class::Header);
        let Some(head) = head.or_else(|| pieces.iter().position(|piece| !is_blank(piece))) else { return this };
        let is_rule = |piece: &Span| {
            let line = &text[piece.range()];
            line.contains("--") && !line.contains(char::is_alphabetic)
        };
        // A long first row is several pieces.
        let ends = |piece: &Span| text[piece.range()].ends_with('\n');
        let last = pieces[head..].iter().position(ends).map_or(head, |more| head + more);
        let last = last + usize::from(pieces.get(last + 1).is_some_and(is_rule));
        for piece in head + 1..pieces.len() {
            this.set(at(piece), at(last.min(piece - 1)));
        }
        this
    }

    /// Finds the pieces that name the records of several lines: a value under another name is worse than none.
    fn of_records(units: &[Unit], pieces: &[Span], records: &[Named]) -> Self {
        let piece = |unit: usize| pieces.partition_point(|piece| piece.end < units[unit].end);
        let mut parents = if records.is_empty() { Vec::new() } else { vec![NONE; pieces.len()] };
        for Named { units, named_by, titled } in records {
            let (parent, from, to) = (piece(*named_by), piece(units.start), piece(units.end - 1));
            for (child, of) in (from..).zip(&mut parents[from..=to]) {
                if child != parent {
                    *of = at(parent);
                }
            }
            if let Some(titled) = titled.map(piece).filter(|titled| *titled != parent) {
                (parents[parent], parents[titled]) = (at(titled), NONE);
            }
        }
        Self(parents).without_circles()
    }

    /// Returns those of `pieces` pieces that have none.
    pub fn none(pieces: usize) -> Self {
        Self(vec![NONE; pieces])
    }

    /// Gives a piece a parent.
    pub fn set(&mut self, piece: u32, parent: u32) {
        self.0[piece as usize] = parent;
    }

    /// Returns the parent of a piece.
    pub fn of_piece(&self, piece: usize) -> Option<usize> {
        self.0.get(piece).filter(|parent| **parent != NONE).map(|parent| *parent as usize)
    }

    /// Takes the parent of one piece of each circle, so that whoever goes up comes to an end. O(n).
    pub fn without_circles(mut self) -> Self {
        let mut seen = vec![NONE; self.0.len()];
        for start in 0..self.0.len() {
            let mut piece = start;
            while seen[piece] == NONE {
                seen[piece] = at(start);
                let Some(parent) = self.of_piece(piece) else { break };
                if seen[parent] == at(start) {
                    self.0[piece] = NONE;
                }
                piece = parent;
            }
        }
        self
    }

    /// Iterates over the pieces that have a parent.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = (0..).zip(self.0.iter().copied());
        all.filter(|(_, parent)| *parent != NONE)
    }

    /// Adds the parents of what is `kept`, and theirs.
    pub fn keep(&self, kept: &mut [bool]) {
        for piece in 0..self.0.len() {
            let mut child = piece;
            while kept[child]
                && let Some(parent) = kept.get_mut(self.0[child] as usize)
                && !std::mem::replace(parent, true)
            {
                child = self.0[child] as usize;
            }
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }
}

impl Form {
    /// Returns how deep a line stands, and whether others stand below it.
    fn read(self, line: &str, class: Class) -> (usize, bool) {
        let indented = line.len() - line.trim_start().len();
        let bare = line.trim();
        match self {
            Self::Code => (indented, class == Class::Header && is_signature(bare)),
            Self::Keys => (indented, true),
            Self::Sections => (usize::from(!is_section(bare)), is_section(bare)),
            Self::Text => heading(line).map_or((BELOW_HEADINGS, false), |level| (level, true)),
        }
    }
}

/// Depth of what is no Markdown heading, not even one that recurs.
const BELOW_HEADINGS: usize = 2 * HEADING_LEVELS + 1;

/// A heading that recurs so often is one of a part of each record.
const RECURRING: usize = 3;

/// Returns the headings that recur, where the first one stands below their level and does not: `# Memory` of `## redis-12:6379`.
fn recurring<'t>(lines: impl Iterator<Item = &'t str>) -> HashSet<&'t str> {
    let (mut first, mut times) = (None, HashMap::<(&str, usize), usize>::new());
    for heading in lines.filter_map(|line| Some((line.trim(), heading(line)?))) {
        first.get_or_insert(heading);
        *times.entry(heading).or_default() += 1;
    }
    times.retain(|_, times| *times >= RECURRING);
    let is_record =
        first.is_some_and(|first| !times.contains_key(&first) && times.keys().any(|(_, level)| *level < first.1));
    if is_record { times.into_keys().map(|(line, _)| line).collect() } else { HashSet::new() }
}

/// Lines that introduce lists, and their items: under "Not included:" an item says the opposite.
struct Lists<'t> {
    /// See [`recurring`].
    recurring: HashSet<&'t str>,
    /// The depth of a line whose items have no mark, and how many more there may be.
    bare: Option<(usize, usize)>,
}

/// Most items without a mark, and most bytes of a line that introduces what is indented more without a colon.
const MAX_BARE: usize = 16;
const MAX_TITLE_BYTES: usize = 120;

impl Lists<'_> {
    /// Ends a list without marks.
    fn end(&mut self) {
        self.bare = None;
    }

    /// Returns how deep a line stands, and whether what follows stands below it.
    fn read(&mut self, line: &str, next: Option<&str>) -> (usize, bool) {
        if let Some(level) = heading(line) {
            self.bare = None;
            return (if self.recurring.contains(line.trim()) { HEADING_LEVELS + level } else { level }, true);
        }
        let of = |line: &str| {
            let indented = line.len() - line.trim_start().len();
            BELOW_HEADINGS + 2 * indented + usize::from(is_item(line))
        };
        let (depth, below) = (of(line), next.map_or(0, of));
        let said = line.trim().trim_end_matches(['*', '_']);
        let introduces = said.ends_with([':', '：']) || below > depth && said.len() <= MAX_TITLE_BYTES;
        match self.bare {
            Some((of, left)) if !introduces && left > 0 && depth == of => {
                self.bare = Some((of, left - 1));
                return (of + 1, false);
            }
            _ => self.bare = (introduces && below == depth && !is_item(line)).then_some((depth, MAX_BARE)),
        }
        (depth, introduces)
    }
}

/// Returns whether a line is an item of a list: `- a`, `• a`, `✓ a`, `3. a`, `b) a`.
fn is_item(line: &str) -> bool {
    let bare = line.trim_start();
    let label = bare.trim_start_matches('(');
    let (name, behind) = label.split_at(label.bytes().take_while(u8::is_ascii_alphanumeric).count());
    let is_label = name.len() == 1 || (1..=3).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_label {
        return behind.starts_with("、") || behind.strip_prefix(['.', ')']).is_some_and(|said| said.starts_with(' '));
    }
    let mut chars = bare.chars();
    chars.next().is_some_and(|mark| !mark.is_alphanumeric() && !"#|>=$%/:;\"'".contains(mark))
        && chars.next() == Some(' ')
}

/// Returns the form of a text without structure, if its lines have parents.
fn form<'t>(lines: impl Iterator<Item = &'t str>) -> Option<Form> {
    let (mut all, mut sections, mut keys, mut headings, mut values) = (0, 0, 0, 0, 0);
    // At the margin of a text of keys nothing else stands; and its lists are short, or they are records.
    let (mut others, mut items) = (0, [0_usize; MAX_DEPTH]);
    for line in lines {
        let bare = line.trim();
        headings += usize::from(heading(line).is_some());
        if bare.starts_with(['#', ';']) {
            continue;
        }
        all += 1;
        sections += usize::from(is_section(bare));
        keys += usize::from(is_key(bare));
        values += usize::from(bare.contains('='));
        if bare.starts_with("- ") {
            items[(line.len() - line.trim_start().len()).min(MAX_DEPTH - 1)] += 1;
        }
        others += usize::from(!line.starts_with([' ', '\t']) && !is_key(bare));
    }
    match () {
        () if sections > 1 && sections * 100 >= all * MIN_SECTIONS && values * 2 >= all - sections => {
            Some(Form::Sections)
        }
        () if keys * 100 >= all * MIN_KEYS
            && others * OTHERS <= all
            && items.iter().all(|items| *items < MANY_ITEMS) =>
        {
            Some(Form::Keys)
        }
        () if headings > 1 => Some(Form::Text),
        () => None,
    }
}

/// `[package]`, `[[test]]`, `[ v3_req ]`.
fn is_section(bare: &str) -> bool {
    bare.starts_with('[') && bare.ends_with(']') && !bare.contains([',', '='])
}

/// `key: value`, `- item`.
fn is_key(bare: &str) -> bool {
    let key = bare.strip_prefix("- ").unwrap_or(bare);
    let end = key
        .find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.' | '/' | '"' | '\''))
        .unwrap_or(key.len());
    let is_named = end > 0 && (key[end..] == *":" || key[end..].starts_with(": "));
    is_named || bare.starts_with("- ") || bare == "-"
}

#[cfg(test)]
mod tests {
    use super::Parents;
    use crate::text::elision::Marks;
    use crate::text::segments::Segments;

    /// Returns `text` with nothing but the pieces that have one of `wanted`.
    fn short(text: &str, wanted: &[&str]) -> String {
        let segments = Segments::of(text);
        let has = |piece: usize| {
            let said = &text[segments.pieces()[piece].range()];
            wanted.iter().any(|wanted| said.contains(wanted))
        };
        segments.excerpt(text, &has, Marks::default())
    }

    fn lines(line: impl Fn(usize) -> String) -> String {
        (0..8).map(line).collect()
    }

    #[test]
    fn what_stays_stands_under_what_it_belongs_to() {
        let keys = |name: &str| lines(|i| format!("{name}_{i} = \"a value of forty characters or so {i}\"\n"));
        let toml = format!("[package]\n{}\n[target.x.lib]\n{}\n[bin]\n{}", keys("a"), keys("b"), keys("c"));
        let body =
            |name: &str| lines(|i| format!("        self.{name}_{i} = compute(the, arguments, of_{name}_{i})\n"));
        let code = format!(
            "class First:\n    def one(self):\n{}\n\nclass Second:\n    def two(self):\n{}    def three(self):\n{}",
            body("x"),
            body("y"),
            body("z")
        );
        let steps = |name: &str| lines(|i| format!("      {name}_{i}: a value of about forty characters {i}\n"));
        let yaml = format!("on:\n  push:\n{}jobs:\n  build:\n{}  test:\n{}", steps("p"), steps("q"), steps("r"));
        for (text, wanted, parents, others) in [
            (&toml, "b_5", ["[target.x.lib]", ""], "[package]"),
            (&code, "y_4", ["class Second:", "def two"], "class First:"),
            (&yaml, "r_3", ["jobs:", "  test:"], "push:"),
        ] {
            let short = short(text, &[wanted]);
            assert!(parents.iter().all(|parent| short.contains(parent)) && !short.contains(others), "{short}");
        }
    }

    #[test]
    fn a_value_stands_under_the_name_of_its_record_and_the_names_of_its_columns() {
        let owners = ["Carmen Hashimoto", "Nikhil Larsen", "Ines Adler", "Bodhi Novak"];
        let cities = ["Porto", "Lyon", "Graz", "Oslo", "Bern", "Cork", "Turku", "Gent"];
        let keys = lines(|i| {
            let (owner, city) = (owners[i % 4], cities[i]);
            format!(
                "account: Heron Glass {i}\ncity: {city}\nowner: {owner}\nterms: net {}0\nbalance: {i}184.10\n\n",
                i + 1
            )
        });
        let tags = lines(|i| {
            let (owner, city) = (owners[i % 4], cities[i]);
            format!(
                "<account>\n  <name>Heron Glass {i}</name>\n  <city>{city}</city>\n  <owner>{owner}</owner>\n  <balance>{i}184.10</balance>\n</account>\n"
            )
        });
        let tags = format!("<?xml version=\"1.0\"?>\n<accounts>\n{tags}</accounts>\n");
        for text in [keys, tags] {
            let short = short(&text, &["5184.10"]);
            assert!(short.contains("Heron Glass 5") && short.matches("Heron").count() == 1, "{short}");
        }
        let rows = lines(|i| format!("<tr><td>{i} Osprey Road</td><td>{}</td><td>{i}646</td></tr>\n", i % 4));
        let head = "<tr><th>address</th><th>rooms</th><th>rent</th></tr>";
        let page = format!("<html><body>\n<table>\n{head}\n{rows}</table>\n<p>Ask for more.</p>\n</body></html>\n");
        assert!(short(&page, &["5646"]).contains(head), "{}", short(&page, &["5646"]));
        assert!(!short(&page, &["Ask"]).contains(head));
    }

    #[test]
    fn a_value_of_a_record_stands_under_its_name() {
        let values =
            |i: usize| format!("Flies LH{}07 on 2026-05-0{}\nPaid {i},747.63, locker GV{i}NKNJ\n", i + 11, i + 1);
        let blocks =
            lines(|i| format!("Elena {}\n{}\n", ["Krug", "Adler", "Nagy", "Lund"][i % 4].repeat(i / 4 + 1), values(i)));
        let apart = blocks.replace('\n', "\n\n");
        let card = |i| {
            format!(
                "BEGIN:VCARD\nVERSION:3.0\nFN:Elena Krug{i}\nTEL:+44 7370 47947{i}\nNOTE:GV{i}NKNJ locker\nEND:VCARD\n"
            )
        };
        for (text, name) in [(blocks, "Elena Nagy\n"), (apart, "Elena Nagy\n"), (lines(card), "Elena Krug2\n")] {
            let short = short(&text, &["GV2NKNJ"]);
            assert!(short.contains(name) && short.matches("Elena").count() == 1, "{short}");
        }
    }

    #[test]
    fn a_changed_line_stands_under_its_commit_its_file_and_its_hunk() {
        let hunk = |file: &str, at: usize| {
            format!(
                "@@ -{at},2 +{at},3 @@ def f{at}():\n     x = {file}_{at}\n+    y = {file}_{at}_added_line_of_its_own\n"
            )
        };
        let of_file = |file: &str| format!("--- a/{file}\n+++ b/{file}\n{}{}", hunk(file, 10), hunk(file, 40));
        let of_git =
            |file: &str| format!("diff --git a/{file} b/{file}\nindex 63f0cd0..e873a00 100644\n{}", of_file(file));
        let of_commit = |commit: &str| {
            format!("commit {commit}\nAuthor: A\n\n    Change it\n\n{}{}", of_git("one.py"), of_git("two.py"))
        };
        let of_commit = |commit: &str| of_commit(commit).replace("added", commit);
        let (git, plain) = (["one.py", "two.py"].map(of_git).concat(), ["one.py", "two.py"].map(of_file).concat());
        let log = ["63f0cd0a1", "e873a0012"].map(of_commit).concat();
        for (text, wanted) in [(git, "two.py_40_added"), (plain, "two.py_40_added"), (log, "two.py_40_e873a0012")] {
            let short = short(&text, &[wanted]);
            assert!(
                short.contains("+++ b/two.py") && short.contains("def f40") && !short.contains("one.py"),
                "{short}"
            );
            assert!(!short.contains("def f10") && !short.contains("63f0cd0a1"), "{short}");
            assert_eq!(short.contains("commit e873a0012"), text.starts_with("commit"), "{short}");
        }
    }

    #[test]
    fn the_rows_of_a_table_stand_under_its_columns() {
        let rows = |between: &str, at: &str| {
            let row =
                |i: usize| [format!("S-{i}"), format!("Lamp {i}"), at.replace('5', &(i % 8).to_string())].join(between);
            (0..40).map(|i| row(i) + "\n").collect::<String>()
        };
        for (head, rows) in [
            ("| sku | title | sold at |\n|---|---|---|\n", rows(" | ", "12.50").replace("S-", "| S-")),
            ("sku,title,sold at\n", rows(",", "12.50")),
            ("sku,title,sold at\n", rows(",", "2026-05-05T10:15:00Z")),
            ("sku\ttitle\tsold at\n", rows("\t", "2026-05-05 10:15:00")),
        ] {
            let short = short(&(head.to_owned() + &rows), &["S-30"]);
            assert!(short.starts_with(head) && short.matches("S-").count() <= 3, "{short}");
        }
        let log = rows(" ", "2026-05-05T10:15:00Z");
        assert!(!short(&log, &["S-30"]).contains("S-0 "));
    }

    #[test]
    fn an_item_stands_under_what_introduces_its_list() {
        let items =
            |mark: &str, of: &str| lines(|i| format!("{mark}{of} number {i}, for {} to {} people\n", i + 1, i + 4));
        let prose = lines(|i| format!("The boat leaves at noon and comes back in the evening of day {}.\n\n", i + 3));
        let numbered =
            |text: &str| text.lines().zip(1..).map(|(line, at)| format!("{at}| {line}\n")).collect::<Vec<_>>().concat();
        for (first, second, mark) in [
            ("Included:", "Not included:", "- "),
            ("What to bring:\n", "What to leave at home:\n", "• "),
            ("**Do**", "**Don't**", "3. "),
            ("费用包含：", "请自备：", "✓ "),
            ("To pack:", "Not to pack:", ""),
            ("Saturday, 3 May", "Sunday, 4 May", "  10:30 "),
            ("# Household\n", "# Garden\n", "- [x] 2026-05-03 10:30 "),
        ] {
            let text = format!("{prose}{first}\n{}\n{second}\n{}\n{prose}", items(mark, "lamp"), items(mark, "rope"));
            for text in [numbered(&text), text] {
                let short = short(&text, &["rope number 4"]);
                assert!(short.contains(second.trim()) && !short.contains(first.trim()), "{short}");
            }
        }
    }

    #[test]
    fn a_line_of_a_group_stands_under_the_line_that_opens_it() {
        const NAMES: [&str; 3] = ["Ann Meyer", "Bo", "Cid Olsson"];
        const WORDS: [&str; 4] = ["the train was late", "I have the tickets, you know", "it rains", "who comes along?"];
        let said = |i: usize| {
            let lines = |k: usize| format!("No, {} and so I said nothing about that to {i}-{k}\n", WORDS[(i + k) % 4]);
            (0..=i % 3).map(lines).collect::<String>()
        };
        let talk = lines(|i| format!("{}, [{:02}.11.2026 10:{:02}]\n{}\n", NAMES[i % 3], i + 3, i + 10, said(i)));
        let goods = |i: usize| {
            (0..=i % 3 + 2).map(|k| format!("BUTTER AND BREAD {i}-{k}   {k}.29 B\n")).collect::<Vec<_>>().concat()
        };
        let bills = lines(|i| format!("*** {} ***\n0{}.11.2026 17:12 No {i}{i}\n{}\n", NAMES[i % 3], i + 1, goods(i)));
        for (text, head, others) in [(&talk, "[08.11.2026 10:15]", "[07."), (&bills, "06.11.2026", "05.11")] {
            let short = short(text, &[" 5-1"]);
            assert!(short.contains(head) && short.contains("Cid Olsson") && !short.contains(others), "{short}");
        }
    }

    #[test]
    fn what_recurs_below_the_days_opens_no_records() {
        let booking = |shop: &str, day: usize, k: usize| format!("   {shop:28}-{}.{:02} EUR\n", day * 7 % 90, 10 + k);
        let day = |day: usize| {
            let usual = booking(["ROSSMANN", "TELEKOM"][day % 2], day, 0);
            let other = booking(["OBI", "LIDL", "DECATHLON", "IKEA", "AMAZON"][day * day % 7 % 5], day, day);
            format!("{day:02}.11.2026\n{usual}{other}")
        };
        let short = short(&(1..29).map(day).collect::<String>(), &[".32 EUR"]);
        assert!(short.contains("22.11.2026") && !short.contains("21.11.2026"), "{short}");
    }

    #[test]
    fn there_are_no_circles() {
        let mut parents = Parents::none(6);
        for (piece, parent) in [(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (5, 3)] {
            parents.set(piece, parent);
        }
        let parents = parents.without_circles();
        for piece in 0..6 {
            assert!(std::iter::successors(Some(piece), |&piece| parents.of_piece(piece)).take(9).count() < 6);
        }
        assert_eq!(parents.iter().count(), 4);
    }

    #[test]
    fn headings_that_recur_stand_below_the_ones_that_name_a_record() {
        let instance = |i: usize| {
            format!(
                "## redis-{i:02}:6379\n# Memory\nused:{}\nmax:4294967296\n# Stats\nevicted:{}\n# Replication\nrole:master\n\n",
                i * 7919,
                i * 31
            )
        };
        let text: String = (0..9).map(instance).collect();
        assert!(
            short(&text, &["evicted:155\n"]).contains("## redis-05:6379\n"),
            "{}",
            short(&text, &["evicted:155\n"])
        );
        // Others recur where they belong.
        let chapter = |i: usize| format!("# Chapter {i}\n## Exercises\n### Page {i}\nCount to {i}{i}.\n\n");
        let text: String = (1..9).map(chapter).collect();
        let kept = short(&text, &["Count to 55."]);
        assert!(["# Chapter 5\n", "## Exercises\n", "### Page 5\n"].iter().all(|line| kept.contains(line)), "{kept}");
    }

    #[test]
    fn other_records_and_prose_have_no_parents() {
        let records =
            lines(|i| format!("*** {i}. row ***\n  User: somebody with a long name number {i}\n  Max: {i}\n"));
        assert!(!short(&records, &["number 5"]).contains("4. row"));
        let prose = lines(|i| format!("Sentence {i} is about forty characters long, as most of them are.\n"));
        assert_eq!(short(&prose, &["Sentence 5"]).matches("Sentence").count(), 1);
    }
}
