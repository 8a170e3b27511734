//! Parses the grammar of JSON (RFC 8259), and finds its values.
//!
//! Takes what tools print in its place, too: Python's `NaN`, `None`, `True`, tuples and single quotes, and JSON whose end was
//! cut off.

use crate::text::elision;
use crate::text::json_string;
use crate::text::segments::at;

use super::{Node, Shape};

/// Larger containers are opened.
const OPENED_BYTES: usize = 80;
/// Longer strings are opened.
const OPENED_STRING_BYTES: usize = 300;
/// Smaller neighbours are joined to one leaf.
const SHORT_BYTES: usize = 24;
/// Most bytes behind JSON, such as an exit code or advice.
const MAX_BYTES_BEHIND: usize = 1000;
/// Least bytes of JSON without its end.
const MIN_CUT_BYTES: usize = 1000;
/// Deeper containers are not opened, so that what stays has few brackets around it.
const MAX_DEPTH: usize = 1_000;

/// An open container.
struct Open {
    is_object: bool,
    /// Its node, above [`MAX_DEPTH`].
    node: Option<usize>,
    /// The node of its last child.
    last: Option<usize>,
}

/// Returns whether a byte opens a container.
pub fn opens(byte: u8) -> bool {
    matches!(byte, b'{' | b'[' | b'(')
}

/// Returns whether a byte closes a container.
pub fn closes(byte: u8) -> bool {
    matches!(byte, b'}' | b']' | b')')
}

/// Returns the nodes of `text[from..]` and the end of the JSON; `None` if it is not JSON with a container at its root, or
/// several on lines. A few words may follow, also where its end is missing.
///
/// The first node is the root, or [`Shape::Lines`] for several. O(n); not recursive.
pub fn parse(text: &str, from: usize) -> Option<(Vec<Node>, usize)> {
    let bytes = text.as_bytes();
    let first = skip_spaces(bytes, from);
    if !opens(*bytes.get(first)?) {
        return None;
    }
    let mut parser = Parser { bytes, text, nodes: Vec::new(), open: Vec::new(), complete: first };
    parser.nodes.push(node(first, first, Shape::Lines));
    parser.open.push(Open { is_object: false, node: Some(0), last: None });
    let mut position = first;
    loop {
        let Some(end) = parser.value(position) else {
            position = parser.leave_all(first)?;
            break;
        };
        position = end;
        let next = skip_spaces(bytes, position);
        if next == bytes.len() {
            break;
        }
        // Objects also behind each other, as streams have them.
        let is_next = bytes[next] == b'{' || (bytes[next] == b'[' && bytes[position..next].contains(&b'\n'));
        if !is_next {
            let rest = bytes.len() - position;
            if rest > MAX_BYTES_BEHIND || position - first < OPENED_BYTES.max(rest * 2) {
                return None;
            }
            break;
        }
        position = next;
    }
    let mut nodes = parser.nodes;
    nodes[0].end = at(position);
    nodes[0].skip = at(nodes.len());
    // A single value is the root itself.
    if nodes[1].skip == nodes[0].skip && nodes[1].count == 1 {
        nodes.remove(0);
        for node in &mut nodes {
            node.skip -= 1;
        }
    }
    Some((nodes, position))
}

/// As [`parse`], of a text that is one string which may say JSON, as of a tool whose result was written twice.
pub fn parse_string(text: &str) -> Option<(Vec<Node>, usize)> {
    let end = text.starts_with('"').then(|| json_string::end(text.as_bytes(), 0))??;
    let says_json = text[1..].trim_start_matches(['\\', 'n', ' ']).starts_with(['{', '[']);
    (says_json && end > OPENED_STRING_BYTES && text[end..].trim().is_empty())
        .then(|| (vec![Node { skip: 1, ..node(0, end, Shape::Text) }], end))
}

fn node(start: usize, end: usize, shape: Shape) -> Node {
    Node { start: at(start), end: at(end), skip: 0, count: 1, piece: 0, shape, is_closed: true }
}

pub fn skip_spaces(bytes: &[u8], mut position: usize) -> usize {
    while matches!(bytes.get(position), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        position += 1;
    }
    position
}

struct Parser<'t> {
    bytes: &'t [u8],
    text: &'t str,
    nodes: Vec<Node>,
    open: Vec<Open>,
    /// End of the last value that is complete.
    complete: usize,
}

impl Parser<'_> {
    /// Reads the container at `position`; returns its end.
    fn value(&mut self, mut position: usize) -> Option<usize> {
        let outside = self.open.len();
        let mut start = position;
        loop {
            position = match *self.bytes.get(position)? {
                open if opens(open) => {
                    self.enter(start, open == b'{');
                    let inside = skip_spaces(self.bytes, position + 1);
                    if !self.bytes.get(inside).copied().is_some_and(closes) {
                        (start, position) = self.member(inside)?;
                        continue;
                    }
                    // The empty container is closed below.
                    position + 1
                }
                b'"' | b'\'' => {
                    let end = json_string::end_in_any_quotes(self.bytes, position)?;
                    self.leaf(start, end, end - position > OPENED_STRING_BYTES);
                    end
                }
                _ => {
                    let end = number_end(self.bytes, position).or_else(|| literal_end(self.bytes, position))?;
                    self.leaf(start, end, false);
                    end
                }
            };
            // Behind a value: the containers that close, then a comma.
            loop {
                if self.open.len() == outside {
                    return Some(position);
                }
                position = skip_spaces(self.bytes, position);
                match *self.bytes.get(position)? {
                    b',' => {
                        (start, position) = self.member(skip_spaces(self.bytes, position + 1))?;
                        break;
                    }
                    close if closes(close) => {
                        position += 1;
                        self.leave(position, close == b'}')?;
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Returns the start of the next element or member, and of its value.
    fn member(&self, position: usize) -> Option<(usize, usize)> {
        if !self.open.last()?.is_object {
            return Some((position, position));
        }
        Some((position, value_start(self.bytes, position)?))
    }

    fn enter(&mut self, start: usize, is_object: bool) {
        let is_opened = self.open.len() <= MAX_DEPTH && self.open.last().is_some_and(|open| open.node.is_some());
        let node = is_opened.then_some(self.nodes.len());
        if is_opened {
            self.nodes.push(self::node(start, start, if is_object { Shape::Object } else { Shape::Array }));
        }
        self.open.push(Open { is_object, node, last: None });
    }

    fn leave(&mut self, end: usize, is_object: bool) -> Option<()> {
        let closed = self.open.pop().filter(|open| open.is_object == is_object)?;
        let Some(node) = closed.node else { return Some(()) };
        // A text that is one small container is opened, too: nothing else could go.
        let is_small = end - self.nodes[node].start as usize <= OPENED_BYTES && self.open.len() > 1;
        self.nodes[node].end = at(end);
        self.complete = end;
        if is_small || closed.last.is_none() {
            self.nodes.truncate(node + 1);
            self.nodes[node].shape = Shape::Leaf;
        }
        self.nodes[node].skip = at(self.nodes.len());
        self.added(node);
        Some(())
    }

    /// Leaves all containers behind the last complete value, which is returned; `None` if that is not near the end of a long
    /// text.
    fn leave_all(&mut self, first: usize) -> Option<usize> {
        let end = self.complete;
        if end - first < MIN_CUT_BYTES || self.bytes.len() - end > MAX_BYTES_BEHIND {
            return None;
        }
        while self.open.len() > 1 {
            let closed = self.open.pop()?;
            let Some(node) = closed.node else { continue };
            if closed.last.is_none() {
                // Nothing in it is complete.
                self.nodes.truncate(node);
                continue;
            }
            let skip = at(self.nodes.len());
            self.nodes[node] = Node { end: at(end), skip, is_closed: false, ..self.nodes[node] };
            self.added(node);
        }
        (self.nodes.len() > 1).then_some(end)
    }

    fn leaf(&mut self, start: usize, end: usize, is_long: bool) {
        self.complete = end;
        if self.open.last().is_some_and(|open| open.node.is_some()) {
            self.nodes.push(node(start, end, if is_long { Shape::Text } else { Shape::Leaf }));
            let last = self.nodes.len() - 1;
            self.nodes[last].skip = at(last + 1);
            self.added(last);
        }
    }

    /// Adds a child to the open container, or joins it with a short one before it.
    fn added(&mut self, child: usize) {
        let Some(open) = self.open.last_mut() else { return };
        let previous = open.last.filter(|last| last + 1 == child);
        let is_short = |node: &Node| node.shape == Shape::Leaf && ((node.end - node.start) as usize) < SHORT_BYTES;
        let source = |node: &Node| &self.text[node.start as usize..node.end as usize];
        if let Some(previous) = previous {
            let (before, node) = (self.nodes[previous], self.nodes[child]);
            let is_mark = || [before, node].iter().any(|node| elision::json_gap_body(source(node)).is_some());
            if is_short(&before) && is_short(&node) && !is_mark() {
                self.nodes.truncate(child);
                let merged = &mut self.nodes[previous];
                merged.end = node.end;
                merged.count += node.count;
                return;
            }
        }
        open.last = Some(child);
    }
}

/// Returns the start of the value of the member at `position`.
pub fn value_start(bytes: &[u8], position: usize) -> Option<usize> {
    if !matches!(bytes.get(position), Some(b'"' | b'\'')) {
        return None;
    }
    let colon = skip_spaces(bytes, json_string::end_in_any_quotes(bytes, position)?);
    (bytes.get(colon) == Some(&b':')).then(|| skip_spaces(bytes, colon + 1))
}

/// Returns the position behind the literal at `position`, of JSON or Python.
fn literal_end(bytes: &[u8], position: usize) -> Option<usize> {
    const LITERALS: [&str; 12] =
        ["true", "false", "null", "True", "False", "None", "NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"];
    let rest = &bytes[position..];
    LITERALS.into_iter().find(|literal| rest.starts_with(literal.as_bytes())).map(|literal| position + literal.len())
}

/// Returns the position behind the number at `position`.
fn number_end(bytes: &[u8], position: usize) -> Option<usize> {
    let digits = |at: usize| at + bytes[at.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = position + usize::from(bytes.get(position) == Some(&b'-'));
    let mut end = match bytes.get(start)? {
        b'0' => start + 1,
        b'1'..=b'9' => digits(start),
        _ => return None,
    };
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if fraction == end + 1 {
            return None;
        }
        end = fraction;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(sign);
        if exponent == sign {
            return None;
        }
        end = exponent;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_is_what_the_grammar_allows() {
        for text in [
            "{}",
            " [] ",
            "[1, -0.0, 1.50e-7, 123456789012345678901234]",
            r#"{"a": [true, null, "\u00e9\n"]}"#,
            "[[[]]]",
        ] {
            assert!(parse(text, 0).is_some(), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
        }
        for text in [
            "",
            "1",
            "\"a\"",
            "[1,]",
            "[,1]",
            "{\"a\"}",
            "{\"a\":}",
            "{1:2}",
            "[01]",
            "[1.]",
            "[.5]",
            "[1e]",
            "[-]",
            "[tru]",
            "[\"\\x\"]",
            "[\"\n\"]",
            "[\"a]",
            "[1",
            "[1}",
            "{]",
            "{\"a\":1]",
            "[1] x",
            "[1] [2]",
            "[1]\n2",
            "[1]]",
            "[\"\\u12g4\"]",
            "[1 2]",
        ] {
            assert!(parse(text, 0).is_none(), "{text}");
        }
        // What Python prints.
        for text in [
            "[NaN, -Infinity]",
            "{'a': 1, \"b\": None}",
            "[(1, 'it\\'s'), (2, True)]",
            "([1, 2], 2)",
            "[nan, inf, -inf]",
        ] {
            assert!(parse(text, 0).is_some(), "{text}");
        }
        for text in ["{'a: 1}", "['a\nb']", "['a\"]", "{None: 1}", "[None1]", "[1, (2, 3]"] {
            assert!(parse(text, 0).is_none(), "{text}");
        }
        assert_eq!(parse("[1]\n{\"a\": 2}\n", 0).unwrap().0[0].shape, Shape::Lines);
    }
    #[test]
    fn json_without_its_end_is_taken_as_far_as_it_goes() {
        let row = |i: usize| format!(r#"{{"id": {i}, "name": "order number {i}", "tags": ["a", "b"]}}"#);
        let rows = (0..40).map(row).collect::<Vec<_>>().join(", ");
        for (cut, rest) in [(r#", {"id": 41, "na"#, r#", "na"#), (",]", ",]"), (", ... (300 more)", ", ... (300 more)")]
        {
            let text = format!(r#"{{"ok": true, "rows": [{rows}{cut}"#);
            let (nodes, end) = parse(&text, 0).unwrap();
            assert_eq!(&text[end..], rest);
            assert_eq!(nodes.iter().filter(|node| !node.is_closed).count(), if rest == r#", "na"# { 3 } else { 2 });
        }
        assert!(parse(&format!("[{rows}{}", "and so on ".repeat(101)), 0).is_none(), "much follows");
        assert!(parse(r#"{"ok": true, "rows": ["#, 0).is_none(), "little comes before");
        assert!(parse(&"[".repeat(3_000), 0).is_none());
        assert!(parse(&format!("{}{rows}", "[".repeat(1_100)), 0).is_none(), "nothing is opened that deep");
    }
}
