//! Reads snapshots of a browser's page, as tools for browsers return them: a tree of elements, each with a number.

/// What stands before the address of the page, and before the numbers of its elements, which are others' in the next snapshot. Source:
/// what Playwright's MCP server returns, and for `uid=` that of Chrome's developer tools.
const PAGE: &str = "Page URL: ";
const NUMBERED: [&str; 2] = ["[ref=", "uid="];
/// The same where a call or the code for it names an element.
const NAMED: [&str; 3] = ["ref\": \"", "ref\":\"", "aria-ref="];
/// Bytes of a snapshot before its elements.
const MAX_HEAD_BYTES: usize = 2_048;

/// Returns the address of the page of which a text is a snapshot. O(n) for a text with one, else O(1).
pub fn page(text: &str) -> Option<&str> {
    let (_, address) = text[..text.floor_char_boundary(MAX_HEAD_BYTES)].split_once(PAGE)?;
    let is_snapshot = NUMBERED.iter().any(|before| text.contains(before));
    address.lines().next().map(str::trim).filter(|_| is_snapshot)
}

/// Returns whether the number of an element of a page stands at `at`: of an old page it says nothing.
pub fn is_number(text: &str, at: usize) -> bool {
    NUMBERED.iter().chain(&NAMED).any(|before| text[..at].ends_with(before))
}
