//! Lays out the vocabularies for `src/tokens/`: `cargo run --release --example tables`.
//!
//! They are read from the two crates that are oracles of the tests, at the versions that `Cargo.toml` pins, and written to
//! `src/tokens/tables/`. Nothing depends on chance or on the order of a map: the same vocabularies give the same files, and
//! `-- --check` tells whether they do. What a file has is described in `table.rs` and `seams.rs`.
#![allow(clippy::cast_possible_truncation)] // numbers and levels, asserted to have 16 bits

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

#[allow(dead_code, clippy::all, clippy::pedantic)]
#[path = "../src/tokens/seams.rs"]
mod seams;

use seams::Character;

/// A table of one vocabulary, or of two that have most of their merges in common.
const TABLES: [(&str, &[&str]); 8] = [
    ("o200k_base", &["o200k_base"]),
    ("qwen2", &["cl100k_base", "qwen2"]),
    ("deepseek_v3", &["deepseek_v3"]),
    ("qwen35", &["qwen3.5"]),
    ("glm5", &["glm4", "glm5"]),
    ("kimi_k2", &["kimi_k2"]),
    ("minimax_m2", &["minimax_m2"]),
    ("mistral_v3", &["mistral_v3"]),
];

/// A token that merges with nothing, and an empty slot.
const LAST: u16 = u16::MAX;
/// The highest level; the next one is that of no merge.
const LEVELS: u32 = 2046;
/// Merges of a row, at most, that are put into the slots together.
const ROW: usize = 24;
/// Marks a merge of the second vocabulary only, and of the first one only.
const ABSENT: [u16; 2] = [0x8000, 0x4000];
/// Marks a character that is sure to become one token in the first vocabulary, and in the second.
const WHOLE: [u16; 2] = [0x2000, 0x1000];

type Split = Option<(usize, usize)>;

/// Tokens in the order of their ranks.
struct Vocabulary {
    tokens: Vec<Vec<u8>>,
    places: HashMap<Vec<u8>, usize>,
    /// The two tokens that merge into each.
    splits: Vec<Split>,
    /// Tokens that no merges make and that a piece is counted as all the same.
    unmade: Vec<Vec<u8>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let is_check = std::env::args().any(|argument| argument == "--check");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tokens/tables");
    let mut differs = false;
    let mut put = |name: String, data: &[u8]| -> Result<(), Box<dyn Error>> {
        let path = folder.join(&name);
        if !is_check {
            std::fs::write(path, data)?;
        } else if std::fs::read(path)? != data {
            println!("{name} is not what the vocabularies give");
            differs = true;
        }
        Ok(())
    };
    for (table, names) in TABLES {
        let vocabularies = names.iter().map(|name| read(name)).collect::<Result<Vec<_>, _>>()?;
        put(format!("{table}.merges"), &lay_out(&vocabularies))?;
        // GLM 4 has no pair of characters that GLM 5 has not
        let own_seams = if table == "qwen2" { names } else { &[table] };
        for (name, vocabulary) in own_seams.iter().rev().zip(vocabularies.iter().rev()) {
            put(format!("{name}.seams"), &fill_seams(&vocabulary.tokens))?;
        }
    }
    if differs { Err("the tables are not up to date".into()) } else { Ok(()) }
}

// Vocabularies

fn read(name: &str) -> Result<Vocabulary, Box<dyn Error>> {
    let mut tokens = Vec::new();
    if name == "qwen3.5" {
        let tokenizer = toktok::Tokenizer::builtin(name)?;
        for id in 0..u32::try_from(tokenizer.vocab_size())? {
            tokens.push(tokenizer.token_bytes(id).ok_or("a rank has no token")?.to_vec());
        }
    } else {
        let encoding = tiktoken::get_encoding(name).ok_or("no such vocabulary")?;
        for id in 0.. {
            let token = encoding.decode(&[id]);
            if !token.is_empty() {
                tokens.push(token);
            }
            if tokens.len() == encoding.vocab_size() {
                break;
            }
        }
    }
    let places: HashMap<_, _> = tokens.iter().cloned().enumerate().map(|(place, token)| (token, place)).collect();
    let (mut splits, mut unmade) = (Vec::new(), Vec::new());
    if name == "qwen3.5" {
        // Its ranks are not the order of its merges; the file has the length of each token's left part.
        let file = std::fs::read(toktok_folder()?.join("data/qwen35.vocab"))?;
        for (token, &left) in tokens.iter().zip(&file[file.len() - tokens.len()..]) {
            let left = usize::from(left);
            splits.push((0 < left && left < token.len()).then(|| (places[&token[..left]], places[&token[left..]])));
        }
    } else {
        for token in &tokens {
            let split = if token.len() > 1 { last_two(token, &places) } else { None };
            if token.len() > 1 && split.is_none() {
                unmade.push(token.clone());
            }
            splits.push(split);
        }
    }
    unmade.sort();
    Ok(Vocabulary { tokens, places, splits, unmade })
}

fn toktok_folder() -> Result<PathBuf, Box<dyn Error>> {
    let output = Command::new(env!("CARGO")).args(["metadata", "--format-version", "1", "--locked"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo names no packages")?;
    let manifest = packages
        .iter()
        .find(|package| package["name"] == "toktok-rs")
        .and_then(|package| package["manifest_path"].as_str());
    Ok(Path::new(manifest.ok_or("no `toktok-rs`")?).with_file_name(""))
}

/// Returns the two tokens that the bytes of a token are before they become the token.
fn last_two(token: &[u8], places: &HashMap<Vec<u8>, usize>) -> Split {
    let rank = |from: usize, to: usize| places.get(&token[from..to]).copied();
    let mut ends: Vec<usize> = (0..=token.len()).collect();
    while ends.len() > 3 {
        let (_, at) = ends.windows(3).zip(0..).filter_map(|(ends, at)| Some((rank(ends[0], ends[2])?, at))).min()?;
        ends.remove(at + 1);
    }
    Some((rank(ends[0], ends[1])?, rank(ends[1], ends[2])?))
}

/// Makes one vocabulary of several; what they share has one order in all of them.
fn union(vocabularies: &[Vocabulary]) -> Vocabulary {
    let [first, rest @ ..] = vocabularies else { panic!("a table has a vocabulary") };
    let Some(second) = rest.first() else {
        return Vocabulary {
            tokens: first.tokens.clone(),
            places: first.places.clone(),
            splits: first.splits.clone(),
            unmade: first.unmade.clone(),
        };
    };
    let (mut tokens, mut next) = (Vec::new(), 0);
    for token in &first.tokens {
        if let Some(&place) = second.places.get(token) {
            while next <= place {
                tokens.push(second.tokens[next].clone());
                next += 1;
            }
        } else {
            tokens.push(token.clone());
        }
    }
    tokens.extend_from_slice(&second.tokens[next..]);
    let places: HashMap<_, _> = tokens.iter().cloned().enumerate().map(|(place, token)| (token, place)).collect();
    assert_eq!(places.len(), tokens.len(), "two vocabularies of a table have their tokens in one order");
    let split_in = |vocabulary: &Vocabulary, token: &Vec<u8>| {
        let (left, right) = vocabulary.splits[*vocabulary.places.get(token)?]?;
        Some((places[&vocabulary.tokens[left]], places[&vocabulary.tokens[right]]))
    };
    let splits = tokens.iter().map(|token| {
        let both = [split_in(first, token), split_in(second, token)];
        if let [Some(one), Some(other)] = both {
            assert_eq!(one, other, "a token has the same parts in both vocabularies");
        }
        both[0].or(both[1])
    });
    let splits = splits.collect();
    let unmade: Vec<_> = second.unmade.clone();
    assert!(
        first.unmade.iter().all(|token| unmade.contains(token)),
        "the second vocabulary has what the first one has"
    );
    Vocabulary { tokens, places, splits, unmade }
}

// Levels

/// Returns the tokens in the order in which merging by the lowest rank can make them: one that is ranked below a part of its own
/// follows that part at once.
fn order(vocabulary: &Vocabulary) -> Vec<usize> {
    let mut is_made = vec![false; vocabulary.tokens.len()];
    let (mut order, mut waiting) = (Vec::new(), HashMap::<usize, Vec<usize>>::new());
    for place in 0..vocabulary.tokens.len() {
        let mut ready = BinaryHeap::from([Reverse(place)]);
        while let Some(Reverse(token)) = ready.pop() {
            if is_made[token] {
                continue;
            }
            let parts = vocabulary.splits[token].map_or([token; 2], |(left, right)| [left, right]);
            if let Some(part) = parts.into_iter().find(|&part| part != token && !is_made[part]) {
                waiting.entry(part).or_default().push(token);
                continue;
            }
            is_made[token] = true;
            order.push(token);
            ready.extend(waiting.remove(&token).into_iter().flatten().map(Reverse));
        }
    }
    order
}

/// Returns numbers that keep the order of every two merges that can meet, few of them in use.
fn levels(vocabulary: &Vocabulary, order: &[usize]) -> Vec<u32> {
    let tokens = vocabulary.tokens.len();
    let (mut upper, mut next_left, mut next_right) =
        (vec![LEVELS; tokens], vec![LEVELS + 1; tokens], vec![LEVELS + 1; tokens]);
    for &token in order.iter().rev() {
        if let Some((left, right)) = vocabulary.splits[token] {
            let next = [next_left[token], next_right[token], next_right[left], next_left[right]];
            let most = next.into_iter().fold(LEVELS + 1, u32::min) - 1;
            upper[token] = most;
            // merges meet where the right part of one is the left part of the other
            next_left[left] = next_left[left].min(most);
            next_right[right] = next_right[right].min(most);
        }
    }
    let (mut level, mut last_left, mut last_right) = (vec![0; tokens], vec![0; tokens], vec![0; tokens]);
    let mut used = vec![0_u32; LEVELS as usize + 1];
    for &token in order {
        if let Some((left, right)) = vocabulary.splits[token] {
            let before = [level[left], level[right], last_right[left], last_left[right]];
            let least = 1 + before.into_iter().fold(0, u32::max);
            assert!(least <= upper[token], "the levels suffice");
            let often = |&level: &u32| (used[level as usize], level.trailing_zeros(), Reverse(level));
            let chosen = (least..=upper[token]).max_by_key(often).unwrap_or(least);
            used[chosen as usize] += 1;
            level[token] = chosen;
            last_left[left] = last_left[left].max(chosen);
            last_right[right] = last_right[right].max(chosen);
        }
    }
    level
}

/// Returns which tokens are characters that their bytes become, first to last, whatever stands beside them, by the merges of
/// tokens that `is_in` the vocabulary. What stands before is known not to be ASCII.
fn whole_characters(vocabulary: &Vocabulary, level: &[u32], is_in: impl Fn(usize) -> bool) -> Vec<bool> {
    let Vocabulary { tokens, places, splits, .. } = vocabulary;
    // the lowest level of a merge of something before with the token, and of the token with what starts a character
    let (mut before, mut behind) = (vec![u32::MAX; tokens.len()], vec![u32::MAX; tokens.len()]);
    for token in (0..tokens.len()).filter(|&token| is_in(token)) {
        if let Some((left, right)) = splits[token] {
            if tokens[left].last() >= Some(&0x80) {
                before[right] = before[right].min(level[token]);
            }
            if tokens[right][0] & 0xc0 != 0x80 {
                behind[left] = behind[left].min(level[token]);
            }
        }
    }
    let is_whole = |token: usize| {
        let bytes = &tokens[token];
        let is_character = std::str::from_utf8(bytes).is_ok_and(|text| !text.is_ascii() && text.chars().count() == 1);
        if !is_character || behind[places[&bytes[bytes.len() - 1..]]] <= level[token] {
            return false;
        }
        let mut token = token;
        while tokens[token].len() > 1 {
            match splits[token] {
                Some((left, right)) if tokens[right].len() == 1 && before[left] > level[token] => token = left,
                _ => return false,
            }
        }
        true
    };
    (0..tokens.len()).map(is_whole).collect()
}

// Layout

fn lay_out(vocabularies: &[Vocabulary]) -> Vec<u8> {
    let vocabulary = union(vocabularies);
    let tokens = vocabulary.tokens.len();
    let level = levels(&vocabulary, &order(&vocabulary));
    let is_in = |vocabulary_of: &Vocabulary, token: usize| vocabulary_of.places.contains_key(&vocabulary.tokens[token]);
    let mut flags = vec![0; tokens];
    for (place, one) in vocabularies.iter().enumerate() {
        let whole = whole_characters(&vocabulary, &level, |token| is_in(one, token));
        for token in 0..tokens {
            flags[token] |= if is_in(one, token) { 0 } else { ABSENT[place] };
            flags[token] |= if whole[token] { WHOLE[place] } else { 0 };
        }
    }
    // numbers of the tokens that merge further: bytes, then what is a right part most often
    let (mut merges_on, mut as_right) = (vec![false; tokens], vec![0_usize; tokens]);
    for &(left, right) in vocabulary.splits.iter().flatten() {
        (merges_on[left], merges_on[right]) = (true, true);
        as_right[right] += 1;
    }
    let mut numbers = vec![LAST; tokens];
    for byte in 0..=u8::MAX {
        numbers[vocabulary.places[&vec![byte]]] = u16::from(byte);
    }
    let mut often: Vec<usize> =
        (0..tokens).filter(|&token| merges_on[token] && vocabulary.tokens[token].len() > 1).collect();
    often.sort_by_key(|&token| Reverse(as_right[token]));
    for (number, &token) in (256..LAST).zip(&often) {
        numbers[token] = number;
    }
    let mut rows = vec![Vec::new(); 256 + often.len()];
    assert!(rows.len() < usize::from(LAST), "a number has 16 bits");
    for (token, split) in vocabulary.splits.iter().enumerate() {
        if let &Some((left, right)) = split {
            rows[usize::from(numbers[left])].push((u32::from(numbers[right]), token));
        }
    }
    let (heads, bases, slots) = overlap(&mut rows);
    let mut planes = vec![Vec::new(); 6];
    for slot in &slots {
        let values = slot.map_or([LAST, 0, LAST], |(right, token)| {
            [right as u16, level[token] as u16 | flags[token], numbers[token]]
        });
        for (plane, byte) in planes.iter_mut().zip(values.into_iter().flat_map(u16::to_le_bytes)) {
            plane.push(byte);
        }
    }
    let ends = vocabulary.unmade.iter().scan(0, |end, token| {
        *end += token.len() as u32;
        Some(*end)
    });
    let ends: Vec<u32> = ends.collect();
    let sizes = [heads.len(), bases.len(), slots.len(), ends.len()].map(|size| size as u32);
    let mut file = Vec::new();
    file.extend(sizes.iter().chain(&heads).chain(&bases).flat_map(|number| number.to_le_bytes()));
    file.extend(planes.concat());
    file.extend(ends.iter().flat_map(|end| end.to_le_bytes()));
    file.extend(vocabulary.unmade.concat());
    file
}

type Member = (u32, usize);

/// Returns the head of each row, the bases of rows that are split, and the slots: rows overlap where their gaps allow.
fn overlap(rows: &mut [Vec<Member>]) -> (Vec<u32>, Vec<u32>, Vec<Option<Member>>) {
    let low = rows.len();
    let total: usize = rows.iter().map(Vec::len).sum();
    let size = 3 * total + 4 * low;
    let mut parts: Vec<(usize, u32, Vec<Member>)> = Vec::new();
    let mut bits = vec![0; rows.len()];
    for (row, members) in rows.iter_mut().enumerate().filter(|(_, members)| !members.is_empty()) {
        members.sort_unstable();
        let is_split = |bits: &u32| {
            let mut counts = BTreeMap::<u32, usize>::new();
            for (right, _) in members.iter() {
                *counts.entry(right & ((1 << bits) - 1)).or_default() += 1;
            }
            counts.into_values().all(|count| count <= ROW)
        };
        bits[row] = (0..16).find(is_split).unwrap_or(16);
        assert!(bits[row] < 16, "the bits of a row have four bits");
        let mask = (1_u32 << bits[row]) - 1;
        for part in 0..=mask {
            parts.push((row, part, members.iter().copied().filter(|(right, _)| right & mask == part).collect()));
        }
    }
    parts.sort_by_key(|(_, _, members)| Reverse(members.len()));
    let mut slots: Vec<Option<Member>> = vec![None; size];
    let (mut used, mut is_base, mut first) = (vec![0_u64; size / 64 + 2], vec![false; size], 0);
    let mut bases = HashMap::new();
    for (row, part, members) in parts.iter().filter(|(_, _, members)| !members.is_empty()) {
        while used[first / 64] >> (first % 64) & 1 == 1 {
            first += 1;
        }
        let mut base = first + low - members[0].0 as usize;
        // 64 bases at once
        let base = loop {
            let mut free = u64::MAX;
            for &(right, _) in members {
                let at = base + right as usize - low;
                let (word, shift) = (at / 64, at % 64);
                free &= !(used[word] >> shift | if shift == 0 { 0 } else { used[word + 1] << (64 - shift) });
            }
            if let Some(offset) = (0..64).find(|&offset| free >> offset & 1 == 1 && !is_base[base + offset]) {
                break base + offset;
            }
            base += 64;
        };
        is_base[base] = true;
        bases.insert((*row, *part), base as u32);
        for &(right, token) in members {
            let at = base + right as usize - low;
            used[at / 64] |= 1 << (at % 64);
            slots[at] = Some((right, token));
        }
    }
    slots.truncate(slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
    let (mut heads, mut split) = (vec![u32::MAX; rows.len()], Vec::new());
    for row in (0..rows.len()).filter(|&row| !rows[row].is_empty()) {
        heads[row] = if bits[row] == 0 {
            bases[&(row, 0)] << 4
        } else {
            let first = split.len() as u32;
            split.extend((0..1_u32 << bits[row]).map(|part| bases.get(&(row, part)).copied().unwrap_or(u32::MAX >> 1)));
            first << 4 | bits[row]
        };
    }
    (heads, split, slots)
}

// Seams

fn fill_seams(tokens: &[Vec<u8>]) -> Vec<u8> {
    let mut filter = vec![0_u8; seams::BYTES];
    let mut bits = HashSet::new();
    for token in tokens {
        for at in (1..token.len()).filter(|&at| token[at] & 0xc0 != 0x80) {
            let start = (0..at).rev().take(4).find(|&start| token[start] & 0xc0 != 0x80).unwrap_or(0);
            let is_character = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| text.chars().count() == 1);
            let (after, length) = Character::at(token, at);
            bits.insert(match token.get(at..at + length) {
                Some(bytes) if is_character(bytes) && is_character(&token[start..at]) => {
                    seams::bit_of_characters(Character::at(token, start).0, after)
                }
                _ => seams::bit_of_bytes(token[at - 1], token[at]),
            });
        }
    }
    for bit in bits {
        filter[bit / 8] |= 1 << (bit % 8);
    }
    filter
}
