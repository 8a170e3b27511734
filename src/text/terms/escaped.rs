//! Reads words of which letters are written as escapes of JSON: `G\u00e4ste`, as Python's `json.dumps` writes them.

/// Most backslashes before the `u`: JSON in a string of JSON has three.
const MAX_BACKSLASHES: usize = 3;

/// Returns where the next backslash before a `u` stands, from `at` on. O(n).
pub fn next(bytes: &[u8], at: usize) -> Option<usize> {
    memchr::memmem::find(bytes.get(at..)?, br"\u").map(|found| at + found)
}

/// A run of letters of which some were escaped.
pub struct Run {
    pub text: String,
    /// Where it ends in the source.
    pub end: usize,
    /// Behind each escape: the position in the text and in the source.
    places: Vec<(usize, usize)>,
}

impl Run {
    /// Returns the run at `start`; `None` if none of its letters is escaped. `is_letter` tells what else belongs to it, by the rest of
    /// the source. O(n) in it.
    pub fn of(bytes: &[u8], start: usize, is_letter: impl Fn(&[u8]) -> bool) -> Option<Self> {
        let is_plain = |at: &usize| bytes[*at].is_ascii() && bytes[*at] != b'\\' && is_letter(&bytes[*at..]);
        let first = (start..bytes.len()).find(|at| !is_plain(at))?;
        // Nearly all words have none.
        character(&bytes[first..])?;
        let mut this = Self { text: String::new(), end: start, places: Vec::new() };
        while let Some(&byte) = bytes.get(this.end) {
            if let Some((c, length)) = character(&bytes[this.end..]) {
                this.text.push(c);
                this.end += length;
                this.places.push((this.text.len(), this.end));
            } else if byte.is_ascii() && is_letter(&bytes[this.end..]) {
                this.text.push(char::from(byte));
                this.end += 1;
            } else {
                break;
            }
        }
        Some(this)
    }

    /// Returns the position in the source of one in the text, of a run that begins at `start`.
    pub fn in_source(&self, start: usize, position: usize) -> usize {
        let behind = self.places.partition_point(|(in_text, _)| *in_text <= position);
        let (in_text, in_source) = behind.checked_sub(1).map_or((0, start), |last| self.places[last]);
        in_source + (position - in_text)
    }
}

/// Returns the character that is not ASCII and whose escape the bytes begin with, and the bytes of that.
fn character(bytes: &[u8]) -> Option<(char, usize)> {
    let (first, length) = unit(bytes)?;
    if let Some(c) = char::from_u32(first.into()) {
        return (!c.is_ascii()).then_some((c, length));
    }
    let (second, behind) = unit(&bytes[length..])?;
    let c = char::decode_utf16([first, second]).next()?.ok()?;
    Some((c, length + behind))
}

/// Returns the unit of UTF-16 whose escape the bytes begin with, and the bytes of that.
fn unit(bytes: &[u8]) -> Option<(u16, usize)> {
    let backslashes = bytes.iter().take(MAX_BACKSLASHES + 1).take_while(|byte| **byte == b'\\').count();
    let digits = bytes[backslashes..].strip_prefix(b"u").filter(|_| (1..=MAX_BACKSLASHES).contains(&backslashes))?;
    let digits =
        std::str::from_utf8(digits.get(..4)?).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((u16::from_str_radix(digits, 16).ok()?, backslashes + "u".len() + digits.len()))
}
