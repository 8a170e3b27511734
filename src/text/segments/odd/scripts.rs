//! Finds lines in a script that hardly any other line has: letters that were decoded wrongly, a message in another language.

use super::sequence::{MAX_BREAKS, MIN_SEQUENCE};

/// Scripts that are told apart, as bits.
const SCRIPTS: usize = 10;

/// Returns the lines with a script that hardly any has.
pub(super) fn strangers(lines: &[(usize, &str)]) -> Vec<usize> {
    let mut having: [Vec<usize>; SCRIPTS] = Default::default();
    if lines.len() < MIN_SEQUENCE {
        return Vec::new();
    }
    for &(nth, line) in lines.iter().filter(|(_, line)| !line.is_ascii()) {
        let scripts = line.chars().filter_map(script).fold(0, |scripts, script| scripts | 1 << script);
        for (_, lines) in having.iter_mut().enumerate().filter(|(script, _)| scripts & 1 << script != 0) {
            lines.extend(Some(nth).filter(|_| lines.len() <= MAX_BREAKS));
        }
    }
    having.into_iter().filter(|lines| lines.len() <= MAX_BREAKS).flatten().collect()
}

/// Returns the script of a letter beyond ASCII, by its block, and what stands for a byte that is no letter.
fn script(c: char) -> Option<usize> {
    match c {
        '\u{fffd}' => Some(0),
        'À'..='ɏ' => Some(1),
        'Ͱ'..='Ͽ' => Some(2),
        'Ѐ'..='ԯ' => Some(3),
        '\u{590}'..='\u{5ff}' => Some(4),
        '\u{600}'..='\u{6ff}' => Some(5),
        '\u{900}'..='\u{97f}' => Some(6),
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' => Some(7),
        '\u{ac00}'..='\u{d7af}' => Some(8),
        c if !c.is_ascii() && c.is_alphabetic() => Some(9),
        _ => None,
    }
}
