//! Compares the rows of texts that list the same things: an invoice that was not paid is in one of two files only, and of a file that
//! is read again some rows have changed.
//!
//! A row is known by keys, which are in no other row of its text: an identifier, a number, two words. If most rows of a text have
//! a partner in another one, those without are odd, as is one that differs from its partner in a field which others share.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::bytes::{hash_of_name, is_word};
use super::estimate::index;
use super::terms::is_han;

/// Fewer rows are no list; more are too many to compare.
const MIN_ROWS: usize = 8;
const MAX_ROWS: usize = 2_000;

/// Least share in percent of the rows of a text that have a partner in another one, and of partners that share a field.
const PAIRED: usize = 70;
const SHARED: usize = 80;

/// Most odd rows of a pair of texts: more are usual. One in so many, or as many as these.
const ODD_IN: usize = 12;
const MOST: (usize, usize) = (4, 8);

/// Most texts that are compared, the newest; most of these with one, and fields of a row.
const MAX_TEXTS: usize = 24;
const MAX_PARTNERS: usize = 3;
const MAX_FIELDS: usize = 24;

/// What a row is known by, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum KeyKind {
    /// A word with a letter and a digit, or a sign within it: `RE-12345`, `src/a.rs`.
    Identifier,
    /// Four digits or more.
    Number,
    /// Two words.
    Words,
}

const KINDS: [KeyKind; 3] = [KeyKind::Identifier, KeyKind::Number, KeyKind::Words];

/// The rows of a text.
#[derive(Debug)]
pub struct Rows {
    /// Where each begins, and where the last one ends.
    starts: Box<[u32]>,
    /// By kind: the keys that are in one row, with it, in order; none unless most rows are known by them.
    keys: [Box<[(u32, u32)]>; 3],
}

/// Rows of texts, as the number of the text and bytes in it, that say something only together.
pub type Together = Vec<(usize, Range<usize>)>;

impl Rows {
    /// Returns the rows that begin at `starts`, if most have keys. O(n log n).
    pub fn of(text: &str, starts: impl Iterator<Item = usize>) -> Option<Self> {
        let mut starts: Vec<u32> = starts.take(MAX_ROWS + 1).map(index).collect();
        if !(MIN_ROWS..=MAX_ROWS).contains(&starts.len()) {
            return None;
        }
        let rows = starts.len();
        starts.push(index(text.len()));
        let mut keys = [Vec::new(), Vec::new(), Vec::new()];
        for (row, range) in starts.windows(2).enumerate() {
            let row_text = &text[range[0] as usize..range[1] as usize];
            read(row_text, |kind, key| keys[kind as usize].push((key, index(row))));
        }
        let keys = keys.map(|mut keys| {
            keys.sort_unstable();
            keys.dedup();
            let alone = keys.chunk_by(|one, next| one.0 == next.0).filter(|rows| rows.len() == 1);
            let keys: Box<[(u32, u32)]> = alone.map(|rows| rows[0]).collect();
            if known(&keys).len() * 100 >= rows * PAIRED { keys } else { Box::default() }
        });
        keys.iter().any(|keys| !keys.is_empty()).then(|| Self { starts: starts.into(), keys })
    }

    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.starts) + self.keys.iter().map(|keys| size_of_val(&**keys)).sum::<usize>()
    }

    fn row(&self, row: u32) -> Range<usize> {
        self.starts[row as usize] as usize..self.starts[row as usize + 1] as usize
    }

    /// Returns each row with a partner in another text, with it.
    fn pairs(&self, other: &Self, kind: KeyKind) -> BTreeMap<u32, u32> {
        let mut theirs = other.keys[kind as usize].iter().peekable();
        let mut pairs = BTreeMap::new();
        for (key, row) in &self.keys[kind as usize] {
            while theirs.next_if(|their| their.0 < *key).is_some() {}
            if let Some(their) = theirs.peek().filter(|their| their.0 == *key) {
                pairs.entry(*row).or_insert(their.1);
            }
        }
        pairs
    }

    /// Returns the rows with a partner, with these, and those without, if most have one: by the best keys that both have.
    fn paired(&self, other: &Self) -> Option<(KeyKind, BTreeMap<u32, u32>, Vec<u32>)> {
        let is_common = |kind: &KeyKind| [self, other].iter().all(|rows| !rows.keys[*kind as usize].is_empty());
        let kind = KINDS.into_iter().find(is_common)?;
        let (pairs, known) = (self.pairs(other, kind), known(&self.keys[kind as usize]));
        let are_most = pairs.len() >= MIN_ROWS && pairs.len() * 100 >= known.len() * PAIRED;
        let alone = || known.into_iter().filter(|row| !pairs.contains_key(row)).collect();
        are_most.then(alone).map(|alone| (kind, pairs, alone))
    }
}

/// Returns the rows with a key.
fn known(keys: &[(u32, u32)]) -> BTreeSet<u32> {
    keys.iter().map(|key| key.1).collect()
}

/// Returns the rows without a partner, those that differ from theirs with these, and those that have one too many: first those known
/// by the best keys, then those of which there are fewest. O(n log n) of the rows for each pair of texts.
pub fn odd_rows(texts: &[(&str, &Rows)]) -> Vec<Together> {
    let mut odd: Vec<(KeyKind, usize, Together)> = Vec::new();
    let newest = || (0..texts.len()).rev().take(MAX_TEXTS);
    for one in newest() {
        let (text, rows) = texts[one];
        let (mut partners, mut seldom) = (0, Vec::new());
        for other in newest().filter(|&other| other != one) {
            let (other_text, others) = texts[other];
            let both = |(&row, &their): (&u32, &u32)| vec![(one, rows.row(row)), (other, others.row(their))];
            let Some((kind, pairs, alone)) = rows.paired(others) else {
                // One that has hardly anything of this text: paid in another month, too.
                let pairs = rows.pairs(others, KeyKind::Identifier);
                if pairs.len() * MIN_ROWS * 2 <= others.starts.len() {
                    seldom.extend(pairs.iter().map(both));
                }
                continue;
            };
            let mut found: Vec<Together> = Vec::new();
            if alone.len() <= most_odd(pairs.len()) {
                found.extend(alone.into_iter().map(|row| vec![(one, rows.row(row))]));
            }
            let said = |(&row, &their): (&u32, &u32)| (&text[rows.row(row)], &other_text[others.row(their)]);
            let differ = differing(&pairs.iter().map(said).collect::<Vec<_>>());
            found.extend(pairs.iter().zip(differ).filter(|(_, differ)| *differ).map(|(pair, _)| both(pair)));
            let few = found.len();
            odd.extend(found.into_iter().map(|together| (kind, few, together)));
            partners += 1;
            if partners == MAX_PARTNERS {
                break;
            }
        }
        if partners > 0 && seldom.len() <= MOST.0 {
            let few = seldom.len();
            odd.extend(seldom.into_iter().map(|together| (KeyKind::Identifier, few, together)));
        }
    }
    odd.sort_by_key(|(kind, few, _)| (*kind, *few));
    odd.into_iter().map(|(.., together)| together).collect()
}

/// Returns how many rows may be odd where so many are not.
fn most_odd(usual: usize) -> usize {
    (usual / ODD_IN).clamp(MOST.0, MOST.1)
}

/// Returns by pair of rows whether they differ in a field that nearly all pairs share.
fn differing(pairs: &[(&str, &str)]) -> Vec<bool> {
    let rows: Vec<(Vec<&str>, Vec<&str>)> = pairs.iter().map(|(one, other)| (fields(one), fields(other))).collect();
    let mut differ = vec![false; rows.len()];
    for column in 0..MAX_FIELDS {
        let shares = |(one, other): &(Vec<&str>, Vec<&str>)| one.get(column).map(|field| is_in(field, other));
        let of_pairs: Vec<Option<bool>> = rows.iter().map(shares).collect();
        let of = |value: bool| of_pairs.iter().filter(|shared| **shared == Some(value)).count();
        let (sharing, others) = (of(true), of(false));
        if sharing * 100 >= (sharing + others) * SHARED && others <= most_odd(sharing) {
            differ.iter_mut().zip(of_pairs).for_each(|(differ, shared)| *differ |= shared == Some(false));
        }
    }
    differ
}

/// What separates fields, best first.
const BETWEEN: [char; 7] = [';', '\t', '|', '\n', ',', ' ', '='];

/// Returns the fields of a row; of the members of JSON the values.
fn fields(row: &str) -> Vec<&str> {
    let row = row.trim().trim_start_matches([',', '[', '{']).trim();
    let by = BETWEEN.into_iter().find(|by| row.contains(*by)).unwrap_or(' ');
    let value = |field: &'_ str| field.find("\":").map_or(0, |key| key + 2);
    let fields = row
        .split(by)
        .map(|field| field[value(field)..].trim_matches(|c: char| c.is_whitespace() || ",\"{}[]".contains(c)));
    fields.filter(|field| !field.is_empty()).take(MAX_FIELDS).collect()
}

/// Returns whether one of `fields` has a field, in a sentence or not: of a number the digits.
fn is_in(field: &str, fields: &[&str]) -> bool {
    let is_number = |text: &str| text.bytes().any(|b| b.is_ascii_digit()) && !text.chars().any(char::is_alphabetic);
    if !is_number(field) {
        let has =
            |other: &&str| other.split(' ').any(|word| word == field) || field.contains(' ') && other.contains(field);
        return fields.iter().any(|other| *other == field || has(other));
    }
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).collect::<Vec<u8>>();
    let number = digits(field);
    fields.iter().any(|other| digits(other) == number || other.split(' ').any(|word| digits(word) == number))
}

/// Calls `found` with the keys of a row. O(n).
fn read(row: &str, mut found: impl FnMut(KeyKind, u32)) {
    let bytes = row.as_bytes();
    let (mut at, mut before) = (0, None);
    let is_part = |at: usize| bytes.get(at).is_some_and(|&byte| is_word(byte) || byte >= 0x80);
    let joins = |at: usize| matches!(bytes[at], b'-' | b'.' | b'/' | b':' | b'@' | b'#' | b'+');
    while at < bytes.len() {
        if !is_part(at) {
            at += 1;
            continue;
        }
        let start = at;
        let (mut letters, mut digits, mut signs) = (false, false, false);
        loop {
            while is_part(at) {
                digits |= bytes[at].is_ascii_digit();
                letters |= !bytes[at].is_ascii_digit();
                signs |= bytes[at] == b'_';
                at += 1;
            }
            if at < bytes.len() && joins(at) && is_part(at + 1) {
                signs = true;
                at += 1;
            } else {
                break;
            }
        }
        let key = (hash_of_name(&bytes[start..at]) >> 32) as u32;
        let is_word = letters && !digits && !signs;
        if letters && (digits || signs) && !bytes[start].is_ascii_digit() {
            found(KeyKind::Identifier, key);
        } else if digits && !letters && !signs && at - start >= 4 {
            found(KeyKind::Number, key);
        }
        // Without blanks between words.
        if row[start..].starts_with(is_han) {
            found(KeyKind::Words, key);
        }
        if let Some(before) = before.filter(|_| is_word) {
            found(KeyKind::Words, key.rotate_left(21) ^ before);
        }
        before = is_word.then_some(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::analysis::{Analysis, Form};

    /// Returns the odd rows of texts, as written.
    fn odd(texts: &[&str]) -> Vec<String> {
        let analyses: Vec<_> = texts.iter().map(|text| Analysis::of(text, Form::Outlined)).collect();
        let lists: Vec<(&str, &Rows)> =
            texts.iter().zip(&analyses).filter_map(|(text, analysis)| Some((*text, analysis.rows()?))).collect();
        assert_eq!(lists.len(), texts.len(), "{texts:?}");
        let row =
            |(text, row): &(usize, Range<usize>)| lists[*text].0[row.clone()].trim_matches([',', '\n', ' ']).to_owned();
        let together = |rows: &Together| rows.iter().map(row).collect::<Vec<_>>().join(" & ");
        let odd: BTreeSet<String> = odd_rows(&lists).iter().map(together).collect();
        odd.into_iter().collect()
    }

    fn invoices(skip: Option<usize>) -> String {
        let row =
            |i: usize| format!("RE-{},{},2026-03-{:02},{}.50\n", 40_100 + 7 * i, "Kranz AG", 1 + i % 9, 31 * i + 100);
        let rows: String = (0..20).filter(|i| Some(*i) != skip).map(row).collect();
        format!("invoice,supplier,received,amount\n{rows}")
    }

    fn payments(skip: Option<usize>, wrong: Option<usize>) -> String {
        let amount = |i: usize| if Some(i) == wrong { 9_000 } else { 31 * i + 100 };
        let row = |i: usize| format!("2026-04-{:02};Kranz AG RE-{};-{}.50\n", 1 + i % 7, 40_100 + 7 * i, amount(i));
        let rows: String = (0..20).rev().filter(|i| Some(*i) != skip).map(row).collect();
        format!("date;text;amount\n{rows}")
    }

    #[test]
    fn a_row_without_a_partner_is_odd() {
        assert_eq!(odd(&[&invoices(None), &payments(Some(8), None)]), ["RE-40156,Kranz AG,2026-03-09,348.50"]);
        assert_eq!(odd(&[&invoices(Some(8)), &payments(None, None)]), ["2026-04-02;Kranz AG RE-40156;-348.50"]);
        assert_eq!(odd(&[&invoices(None), &payments(None, None)]), [""; 0]);
    }

    #[test]
    fn a_pair_that_differs_where_others_agree_is_odd() {
        let one = "2026-04-02;Kranz AG RE-40156;-9000.50";
        let other = "RE-40156,Kranz AG,2026-03-09,348.50";
        let expected = [format!("{one} & {other}"), format!("{other} & {one}")];
        assert_eq!(odd(&[&invoices(None), &payments(None, Some(8))]), expected);
    }

    #[test]
    fn a_row_in_a_list_of_other_things_is_odd() {
        let row = |i: usize| format!("2026-05-{i:02};Petrov RX-{};-{}.20\n", 7_000 + 13 * i, 17 * i);
        let mut may: Vec<String> = (1..20).map(row).collect();
        may.insert(9, "2026-05-11;Kranz AG;RE-40156;-348.50\n".to_owned());
        let may = format!("date;text;amount\n{}", may.concat());
        let twice = "RE-40156,Kranz AG,2026-03-09,348.50 & 2026-05-11;Kranz AG;RE-40156;-348.50";
        assert!(odd(&[&invoices(None), &payments(None, None), &may]).iter().any(|rows| rows == twice));
    }

    #[test]
    fn people_are_known_by_their_names() {
        let names = ["Liam Lindqvist", "Yara Iversen", "Henrik Winter", "Jakub Ionescu", "Gudrun Brandt", "Bruno Falk"];
        let more = ["Zoe Conti", "Anna Petrov", "Maja Lang", "Tomas Urban", "Ines Abel", "Pavel Dorn"];
        let names: Vec<&str> = names.into_iter().chain(more).collect();
        let guest = |(i, name): (usize, &&str)| format!("- {name}, {}\n", ["fish", "meat"][i % 2]);
        let guests: String = names.iter().enumerate().map(guest).collect();
        let answers: String = names
            .iter()
            .rev()
            .filter(|name| **name != "Jakub Ionescu")
            .map(|name| [name, ";comes\n"].concat())
            .collect();
        assert_eq!(odd(&[&guests, &answers]), ["- Jakub Ionescu, meat"]);
        let names =
            ["王伟芳", "李娜娜", "张敏静", "刘丽强", "陈磊军", "杨洋勇", "赵艳杰", "黄娟涛", "周明超", "吴秀霞"];
        let paid = |names: &[&str]| names.iter().map(|name| ["三月,", name, ",工资\n"].concat()).collect::<String>();
        let staff: String = names.iter().map(|name| [name, ",销售\n"].concat()).collect();
        assert_eq!(odd(&[&staff, &paid(&names[1..])]), ["王伟芳,销售"]);
    }

    #[test]
    fn records_of_json_are_rows() {
        let order = |i: usize| serde_json::json!({"order_id": format!("ORD-{}", 10_000 + 37 * i), "total": 100 + i});
        let charge = |i: usize| serde_json::json!({"order": format!("ORD-{}", 10_000 + 37 * i), "sum": if i == 5 { 99 } else { 100 + i }});
        let orders = serde_json::to_string(&(0..12).map(order).collect::<Vec<_>>()).unwrap();
        let charges = serde_json::to_string_pretty(&(0..12).map(charge).collect::<Vec<_>>()).unwrap();
        let odd = odd(&[&orders, &charges]);
        assert_eq!(odd.len(), 2, "{odd:?}");
        assert!(odd.iter().all(|rows| rows.contains("ORD-10185") && rows.contains("105") && rows.contains("99")));
    }

    #[test]
    fn lists_of_other_things_have_no_partners() {
        let row = |i: usize| format!("2026-05-{i:02};Petrov RX-{};-{}.20\n", 7_000 + 13 * i, 17 * i);
        let may: String = (1..20).map(row).collect();
        assert_eq!(odd(&[&invoices(None), &may]), [""; 0]);
        // Every second one is missing: that is usual.
        let half: String = payments(None, None).lines().step_by(2).map(|row| [row, "\n"].concat()).collect();
        assert_eq!(odd(&[&invoices(None), &half]), [""; 0]);
    }
}
