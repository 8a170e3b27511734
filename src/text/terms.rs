//! Finds the terms of a text: identifiers, paths, numbers, words, pairs of Chinese characters.
//!
//! A term is a hash: conversations are compared without their text. Case is ignored. An identifier is a term as a whole and
//! in its parts: `src/loadConfig.py` is a path, `loadConfig.py`, `loadConfig`, `load`, `config`. A word is a term by its
//! stem, so that a question with `arrived` finds `arrives`, and a name that is spelled in several ways is one in its plainest
//! spelling, too ([`super::spelling`], [`super::dates`]).

mod escaped;

use jiff::civil::Date;
use xxhash_rust::xxh3::xxh3_64;

use super::estimate::index;

use super::bytes::{
    DIGIT, HUMP, UNDERSCORE, Word, class, hash_of_name as hash, hash_within, is_escape_letter, is_escaped, is_word,
    mix, word as word_at, word_end,
};
use super::dates::{Spelling, spellings};
use super::spelling::{cyrillic_stem, grouped, in_ascii};
use super::stop_list::{MAX_STEM, is_stop_stem};
use escaped::Run;

/// The kind of a term. The numbers are the low bits of [`Term`], and part of `src/select/usage_trees.txt`, which was fitted
/// to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TermKind {
    /// Part of an identifier: for relevance only.
    Part = 0,
    /// The stem of a word of letters: for relevance only.
    Word = 1,
    /// A word of eight letters or more.
    LongWord = 2,
    /// A word with a digit, an underscore or a hump.
    Ident = 3,
    /// Words joined by `.`, `:`, `-`, `@`, `#`, `+`.
    Joined = 4,
    /// Words joined by slashes.
    Path = 5,
    /// Four digits or more.
    Number = 6,
    /// Two characters of Chinese, Japanese or Korean text.
    Pair = 7,
}

impl TermKind {
    /// Returns whether it is an exact name: neither a word nor a pair of characters.
    pub fn is_name(self) -> bool {
        matches!(self, Self::Ident | Self::Joined | Self::Path | Self::Number)
    }

    /// Returns whether it has a worth of its own, not only when the request asks for it.
    pub fn is_weighed(self) -> bool {
        !matches!(self, Self::Part | Self::Word)
    }
}

/// Kinds of terms.
pub const KINDS: usize = 8;

const ALL: [TermKind; KINDS] = [
    TermKind::Part,
    TermKind::Word,
    TermKind::LongWord,
    TermKind::Ident,
    TermKind::Joined,
    TermKind::Path,
    TermKind::Number,
    TermKind::Pair,
];

/// The hash of a term, its kind in the low three bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Term(pub u64);

impl Term {
    fn new(hash: u64, kind: TermKind) -> Self {
        Self((hash >> 3 << 3) | kind as u64)
    }

    /// Returns what the term is.
    pub fn kind(self) -> TermKind {
        self.short().kind()
    }

    /// Returns the term in half the bytes.
    #[allow(clippy::cast_possible_truncation)] // the upper half
    pub fn short(self) -> ShortTerm {
        ShortTerm((self.0 >> 32) as u32 & !7 | (self.0 & 7) as u32)
    }
}

/// A term in 32 bits, for all terms of a conversation: of 100,000 different ones about ten collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShortTerm(u32);

impl ShortTerm {
    /// Returns what the term is.
    pub fn kind(self) -> TermKind {
        ALL[(self.0 & 7) as usize]
    }

    /// Returns the word that an identifier or a part of one is: the `method` of `payment_method_id`, `PayPal`.
    pub fn as_word(self) -> Self {
        if matches!(self.kind(), TermKind::Part | TermKind::Ident) {
            return Self(self.0 & !7 | TermKind::Word as u32);
        }
        self
    }

    /// Returns a term for what is none in a text: a sign.
    pub fn of_sign(sign: &str) -> Self {
        Term::new(xxh3_64(sign.as_bytes()), TermKind::Word).short()
    }

    /// Returns the term of a day of the calendar: every spelling has it, whatever the year.
    pub fn of_day(day: Date) -> Self {
        Term::new(hash(format!("{:02}-{:02}", day.month(), day.day()).as_bytes()), TermKind::Part).short()
    }

    /// Returns its hash; the low bits are the best.
    pub fn hash(self) -> u64 {
        u64::from(self.0 >> 3)
    }
}

fn joins(byte: u8) -> bool {
    matches!(byte, b'.' | b'/' | b':' | b'-' | b'@' | b'#' | b'+' | b'~' | b'\\')
}

/// Receives words, characters and terms of a text, in order.
pub trait TextReader {
    /// Whether it asks for terms.
    const TERMS: bool = true;

    /// A word starts at `start`; behind `\n`, `\r` or `\t` without the letter of the escape.
    fn word(&mut self, _start: usize, _word: &Word) {}

    /// At `at` is an unescaped quotation mark, or a character that is not ASCII.
    fn character(&mut self, _at: usize, _c: char) {}

    /// A term starts at `start`; comes behind its words.
    fn term(&mut self, _term: Term, _start: usize) {}

    /// The current part ends, if a text is read by parts.
    fn part_ends(&mut self) {}
}

/// Ignores everything.
impl TextReader for () {}

/// Reads `text` into `reader`. O(n).
pub fn read(text: &str, reader: &mut impl TextReader) {
    let bytes = text.as_bytes();
    let has_escapes = is_json(text);
    let mut next_escape = escaped::next(bytes, 0);
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if next_escape.is_some_and(|next| next < at) {
            next_escape = escaped::next(bytes, at);
        }
        // `\nGr\u00fc\u00dfe`: the letter of an escape is no part of a word.
        let from = at + usize::from(next_escape.is_some() && is_escape_letter(bytes, at));
        if next_escape.is_some()
            && (is_word(byte) || byte == b'\\')
            && let Some(run) = Run::of(bytes, from, |rest| is_word(rest[0]) || joins_a_word(rest))
        {
            at = unescaped(bytes, from, &run, reader);
        } else if is_word(byte) {
            at = chunk(text, at, has_escapes, reader);
        } else if byte < 0x80 {
            if byte == b'"' && !is_escaped(bytes, at) {
                reader.character(at, '"');
            }
            at += 1;
        } else {
            at = wide(text, at, reader);
        }
    }
}

/// Returns whether a text is JSON, where a backslash before a letter is an escape and joins nothing: `813\nmax_retries`. O(1).
fn is_json(text: &str) -> bool {
    let mut start = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    match start.next() {
        Some(b'{') => start.next() == Some(b'"'),
        Some(b'[') => matches!(start.next(), Some(b'{' | b'[' | b'"')),
        byte => byte == Some(b'"'),
    }
}

/// Returns whether punctuation, but no backslash, joins a word to the one before.
fn joins_a_word(rest: &[u8]) -> bool {
    rest[0] != b'\\' && joins(rest[0]) && rest.get(1).is_some_and(|&byte| is_word(byte) || byte == b'\\')
}

/// Reports the words of a run as they are written, and the terms of what it says; returns the index behind it.
fn unescaped<R: TextReader>(bytes: &[u8], start: usize, run: &Run, reader: &mut R) -> usize {
    let mut at = start;
    while at < run.end {
        let end = word_end(bytes, at);
        if end > at {
            reader.word(at, &word_at(bytes, at));
        }
        at = end + 1;
    }
    if R::TERMS {
        box_before(bytes, start, reader);
        let found: &mut dyn FnMut(Term, usize) = &mut |term, at| reader.term(term, run.in_source(start, at));
        scan(&run.text, found);
    }
    run.end
}

/// Calls `found` with every term of `text`, in order, and its first byte. O(n).
pub fn scan(text: &str, found: impl FnMut(Term, usize)) {
    struct Found<F>(F);
    impl<F: FnMut(Term, usize)> TextReader for Found<F> {
        fn term(&mut self, term: Term, start: usize) {
            self.0(term, start);
        }
    }
    read(text, &mut Found(found));
}

/// The terms of a text by its parts.
pub struct Terms {
    /// In order.
    pub all: Vec<ShortTerm>,
    /// Where the names among them start in the text: identifiers, paths, numbers, repeats included.
    pub names: Vec<u32>,
    /// By part: number of terms up to its end. A term belongs to the part with the start of its last word.
    pub ends: Vec<u32>,
}

impl Terms {
    /// Returns the terms of `text`, whose parts end at `ends`; `reader` receives the words and characters of each part and
    /// its end. O(n).
    pub fn by_part(text: &str, ends: impl Iterator<Item = usize>, reader: &mut impl TextReader) -> Self {
        let (all, names) = (Vec::with_capacity(text.len() / 4), Vec::with_capacity(text.len() / 16));
        let by_part = Vec::with_capacity(ends.size_hint().0);
        let mut parts = Parts { terms: Self { all, names, ends: by_part }, end: None, ends, reader };
        parts.end = parts.ends.next();
        read(text, &mut parts);
        parts.reach(usize::MAX);
        parts.terms
    }
}

/// Reads terms by parts.
struct Parts<'r, I: Iterator<Item = usize>, R> {
    terms: Terms,
    /// Of the part under way, and of those behind it.
    end: Option<usize>,
    ends: I,
    reader: &'r mut R,
}

impl<I: Iterator<Item = usize>, R: TextReader> Parts<'_, I, R> {
    /// Ends the parts that end at `at` or before.
    #[inline]
    fn reach(&mut self, at: usize) {
        if self.end.is_some_and(|end| end <= at) {
            self.end_parts(at);
        }
    }

    /// Apart from [`Self::reach`]: no part ends before most words.
    #[inline(never)]
    fn end_parts(&mut self, at: usize) {
        while self.end.is_some_and(|end| end <= at) {
            self.end = self.ends.next();
            self.terms.ends.push(index(self.terms.all.len()));
            self.reader.part_ends();
        }
    }
}

impl<I: Iterator<Item = usize>, R: TextReader> TextReader for Parts<'_, I, R> {
    fn word(&mut self, start: usize, word: &Word) {
        self.reach(start);
        self.reader.word(start, word);
    }

    fn character(&mut self, at: usize, c: char) {
        self.reach(at);
        self.reader.character(at, c);
    }

    fn term(&mut self, term: Term, start: usize) {
        self.terms.all.push(term.short());
        if term.kind().is_name() {
            self.terms.names.push(index(start));
        }
    }
}

/// Longest identifier that is one term; what is longer is data.
const MAX_JOINED: usize = 200;

/// What an item of a list with an empty box is called. Behind a step "What is still open on my lists?" had the one that is in 8 and 4
/// of 20 runs at 8,000 and 16,000 tokens without these, in all with them.
const UNDONE: [&[u8]; 6] = [b"open", b"todo", b"pending", b"unfinished", b"offen", b"unerledigt"];

/// Reports what an empty box before `start` says.
#[inline]
fn box_before<R: TextReader>(bytes: &[u8], start: usize, reader: &mut R) {
    if R::TERMS && bytes[..start].ends_with(b"[ ] ") {
        for word in UNDONE {
            reader.term(Term::new(hash_of_stem(word, word.len()), TermKind::Word), start);
        }
    }
}

/// Scans words joined by punctuation, from `start`; returns the index behind them. In a text that `has_escapes` the letter of one is
/// no part of a word.
fn chunk<R: TextReader>(text: &str, mut start: usize, has_escapes: bool, reader: &mut R) -> usize {
    let bytes = text.as_bytes();
    if has_escapes && is_escape_letter(bytes, start) {
        start += 1;
        if !bytes.get(start).is_some_and(|&byte| is_word(byte)) {
            return start;
        }
    }
    box_before(bytes, start, reader);
    let mut at = start;
    let (mut words, mut slash, mut other) = (0, false, false);
    // where a date begins behind a colon: `DTSTART:20261003T090000`
    let mut dated = None;
    // where the last segment of a path starts
    let mut base = start;
    let mut base_words = 0;
    let end = loop {
        let word = word_at(bytes, at);
        if is_escape_letter(bytes, at) {
            let behind = word_at(bytes, at + 1);
            if behind.end > at + 1 {
                reader.word(at + 1, &behind);
            }
        } else {
            reader.word(at, &word);
        }
        if R::TERMS {
            simple(&bytes[at..], &word, at, reader);
        }
        let end = word.end;
        words += 1;
        base_words += 1;
        let Some(next) = joined_word(bytes, end, has_escapes) else { break end };
        at = next;
        if bytes[end..at].iter().any(|&b| b == b'/' || b == b'\\') {
            slash = true;
            (base, base_words) = (at, 0);
        } else {
            other |= bytes[end..at] != *b"-" || bytes[at].is_ascii_digit();
        }
        if bytes[at - 1] == b':' && is_year(&bytes[at..]) {
            dated = Some(at);
        }
    };
    if R::TERMS {
        spelled(text, start, reader);
        if let Some(start) = dated {
            spelled(text, start, reader);
        }
    }
    if R::TERMS && words > 1 && (slash || other) && end - start <= MAX_JOINED {
        let kind = if slash { TermKind::Path } else { TermKind::Joined };
        reader.term(Term::new(hash(&bytes[start..end]), kind), start);
        if slash && base_words > 1 && base > start {
            reader.term(Term::new(hash(&bytes[base..end]), TermKind::Joined), base);
        }
    }
    end
}

/// Returns whether a date may begin here with its year.
fn is_year(bytes: &[u8]) -> bool {
    let digits = bytes.iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
    digits == 8 || digits == 4 && bytes.get(4) == Some(&b'-')
}

/// Reports the other spellings of the date or the name in groups that begins at `start`.
fn spelled(text: &str, start: usize, reader: &mut impl TextReader) {
    let bytes = text.as_bytes();
    if bytes[start].is_ascii_digit() {
        for Spelling { date, is_name } in spellings(text, start) {
            let hash = hash(date.as_bytes());
            reader.term(Term::new(hash, TermKind::Part), start);
            if is_name {
                reader.term(Term::new(hash, TermKind::Joined), start);
            }
        }
    }
    let names =
        grouped(bytes, start).into_iter().flat_map(|grouped| std::iter::once(grouped.name).chain(grouped.other));
    for name in names {
        let classes = name.iter().fold(0, |classes, &byte| classes | class(byte));
        if let Some(kind) = kind_of(classes, name.len()) {
            reader.term(Term::new(hash(&name), kind), start);
        }
    }
}

/// Returns where the word begins that punctuation joins to the one that ends at `end`; an escape does not.
fn joined_word(bytes: &[u8], end: usize, has_escapes: bool) -> Option<usize> {
    // Mostly a space follows.
    if !joins(*bytes.get(end)?) {
        return None;
    }
    let joints = bytes[end..].iter().take(3).take_while(|&&byte| joins(byte)).count();
    let next = end + joints;
    let is_joined =
        bytes.get(next).is_some_and(|&byte| is_word(byte)) && !(has_escapes && is_escape_letter(bytes, next));
    is_joined.then_some(next)
}

/// Returns the length of the stem of a word of three letters or more: `arrive`, `arrives`, `arrived` and `arriving` are one
/// term, as are `query` and `queries`, `Batterie` and `Batterien`, `cantina` and `cantine`. Endings of English, German, Dutch, Polish
/// and of languages of Latin, without exceptions.
fn stem(word: &[u8]) -> usize {
    let last = |end: usize| [word[end - 3] | 0x20, word[end - 2] | 0x20, word[end - 1] | 0x20];
    let without = |end: usize, ending: usize| if end >= ending + 3 { end - ending } else { end };
    let plural = |end| match last(end) {
        [_, b's', b's'] => end,
        [_, _, b's'] | [_, b'u', b'x'] => without(end, 1),
        _ => end,
    };
    let verb = |end| match last(end) {
        [b'i', b'n', b'g'] | [b'i', b'e', b'd'] => without(end, 3),
        [_, b'e', b'd'] => without(end, 2),
        _ => end,
    };
    let noun = |end| match last(end) {
        [_, b'e', b'n'] => without(end, 2),
        [b'e', b'l' | b'r', b'n'] => without(end, 1),
        _ => end,
    };
    let vowel = |end| match last(end) {
        [b'a', b'm', b'i'] => without(end, 3),
        [_, b'i', b'a' | b'e' | b'o'] => without(end, 2),
        [_, _, b'a' | b'e' | b'i' | b'o' | b'y'] => without(end, 1),
        _ => end,
    };
    vowel(noun(verb(plural(word.len()))))
}

/// Returns the hash of the stem of the first `length` bytes. Where that would be a stop word only an "s" goes, or nothing.
fn hash_of_stem(bytes: &[u8], length: usize) -> u64 {
    let word = &bytes[..length];
    let hash_of = |end| Some(hash_within(bytes, end)).filter(|hash| end > MAX_STEM || !is_stop_stem(*hash));
    let (end, plural) = (stem(word), length - usize::from(word.ends_with(b"s")));
    let shorter = [end, plural].into_iter().take_while(|&end| end < length).find_map(hash_of);
    shorter.unwrap_or_else(|| hash_within(bytes, length))
}

/// Letters from which on a word is a long one.
const LONG: usize = 8;

/// Returns the kind of a word with these classes and length; `None` if it is too short.
const fn kind_of(classes: u8, length: usize) -> Option<TermKind> {
    match length {
        0 | 1 => None,
        _ if classes == DIGIT => Some(if length >= 4 { TermKind::Number } else { TermKind::Part }),
        _ if classes & (UNDERSCORE | HUMP | DIGIT) != 0 => {
            Some(if length >= 4 { TermKind::Ident } else { TermKind::Part })
        }
        2 => None,
        3..LONG => Some(TermKind::Word),
        _ => Some(TermKind::LongWord),
    }
}

/// [`kind_of`] by classes and length, up to where nothing changes any more.
static KIND_OF: [[Option<TermKind>; LONG + 1]; 2 * HUMP as usize] = {
    let mut kinds = [[None; LONG + 1]; 2 * HUMP as usize];
    let mut classes = 0;
    while classes < 2 * HUMP {
        let mut length = 0;
        while length <= LONG {
            kinds[classes as usize][length] = kind_of(classes, length);
            length += 1;
        }
        classes += 1;
    }
    kinds
};

/// Reports the word at the start of `bytes`, and its parts if it is an identifier.
fn simple(bytes: &[u8], read: &Word, start: usize, reader: &mut impl TextReader) {
    let word = &bytes[..read.end - start];
    if word.len() > MAX_JOINED {
        return;
    }
    match KIND_OF[usize::from(read.classes)][word.len().min(LONG)] {
        None => {}
        Some(TermKind::Word) => reader.term(Term::new(hash_of_stem(bytes, word.len()), TermKind::Word), start),
        Some(kind) => {
            reader.term(Term::new(read.hash, kind), start);
            if kind == TermKind::LongWord {
                reader.term(Term::new(hash_of_stem(bytes, word.len()), TermKind::Word), start);
            }
        }
    }
    if read.classes & (UNDERSCORE | HUMP) == 0 {
        if read.classes & DIGIT != 0 {
            shortened(bytes, word, start, reader);
        }
        return;
    }
    let mut from = 0;
    for at in 1..=word.len() {
        let cut = at == word.len()
            || word[at] == b'_'
            || word[at - 1] == b'_'
            || (word[at].is_ascii_uppercase() && word[at - 1].is_ascii_lowercase());
        if cut {
            let part = &word[from..at];
            if part.len() >= 3 && part.len() < word.len() && part[0] != b'_' {
                let is_word = part.iter().all(u8::is_ascii_alphabetic);
                let hash = if is_word { hash_of_stem(part, part.len()) } else { hash(part) };
                reader.term(Term::new(hash, TermKind::Part), start + from);
            }
            from = at;
        }
    }
}

/// Lengths to which people and tools shorten the hash of a commit or a container: `3790f43` for 40 digits. Source: Git and Docker.
const SHORTENED: [usize; 4] = [7, 8, 10, 12];
/// Hexadecimal words from this length on are hashes.
const MIN_HASH: usize = 16;

/// Reports the forms to which a hash is shortened, and such a form, as parts.
fn shortened(bytes: &[u8], word: &[u8], start: usize, reader: &mut impl TextReader) {
    let may_be = word.len() >= MIN_HASH || SHORTENED.contains(&word.len());
    if !may_be || !word.iter().all(u8::is_ascii_hexdigit) {
        return;
    }
    for length in SHORTENED.into_iter().filter(|&length| length == word.len() || word.len() >= MIN_HASH) {
        reader.term(Term::new(hash_within(bytes, length), TermKind::Part), start);
    }
}

/// Scans a run of letters that are not ASCII, from `start`; returns the index behind it.
fn wide<R: TextReader>(text: &str, start: usize, reader: &mut R) -> usize {
    box_before(text.as_bytes(), start, reader);
    let mut before: Option<(char, usize)> = None;
    let mut letters = Vec::new();
    let mut end = start;
    for (offset, c) in text[start..].char_indices() {
        if c.is_ascii() {
            break;
        }
        end = start + offset + c.len_utf8();
        reader.character(start + offset, c);
        if is_han(c) {
            if let Some((first, at)) = before {
                reader.term(Term::new(of_char(of_char(0, first), c), TermKind::Pair), at);
            }
            before = Some((c, start + offset));
        } else {
            before = None;
            if c.is_alphabetic() {
                letters.push(c.to_lowercase().next().unwrap_or(c));
            } else {
                break;
            }
        }
    }
    if letters.len() >= 3 {
        let (stem, is_long) = (cyrillic_stem(&letters), letters.len() > 6);
        let of_word = |word: &[char]| word.iter().fold(0, |hash, &letter| of_char(hash, letter));
        let kind = if is_long { TermKind::LongWord } else { TermKind::Word };
        reader.term(Term::new(of_word(&letters), kind), start);
        if is_long || stem.len() < letters.len() {
            reader.term(Term::new(of_word(stem), TermKind::Word), start);
        }
    }
    if R::TERMS
        && let Some((start, spellings)) = in_ascii(text, start)
    {
        for word in spellings.iter().filter(|word| word.len() >= 3) {
            reader.term(Term::new(hash_of_stem(word, word.len()), TermKind::Word), start);
        }
    }
    end
}

fn of_char(hash: u64, c: char) -> u64 {
    mix(hash ^ (u64::from(c) + 1))
}

/// Returns whether `c` is written without spaces between words.
pub fn is_han(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns the text of a name that [`scan`] found at `start`; `None` for other terms. O(1).
pub fn text_at(text: &str, start: usize, term: ShortTerm) -> Option<&str> {
    let (bytes, has_escapes) = (text.as_bytes(), is_json(text));
    let mut end = word_end(bytes, start);
    match term.kind() {
        TermKind::Ident | TermKind::Number => {
            if let Some(name) = grouped(bytes, start)
                && (Term::new(hash(&name.name), term.kind()).short() == term)
            {
                return text.get(start..name.end);
            }
        }
        TermKind::Joined | TermKind::Path => {
            while end - start <= MAX_JOINED
                && let Some(next) = joined_word(bytes, end, has_escapes)
            {
                end = word_end(bytes, next);
            }
        }
        _ => return None,
    }
    let name = text.get(start..end)?;
    (Term::new(hash(name.as_bytes()), term.kind()).short() == term).then_some(name)
}

#[cfg(test)]
mod tests;
