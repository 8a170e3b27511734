//! Finds whether the user now asks for what a step has left out: by a name, or by a word that may be one and that hardly any
//! message has.

use memchr::memmem::Finder;

use crate::conversation::said;
use crate::message::{Message, Role};
use crate::select::scoring::asks_for_nothing;
use crate::text::names::{names, opening_person};
use crate::text::terms::{is_han, scan};

use super::compaction::{CompactionStep, Made};
use super::plan::Output;

/// A question has at most so many bytes and words that may be names.
const QUESTION: (usize, usize) = (240, 40);

/// A task has at most so many bytes, and names with a digit, as that of an order: one with more of them is about all of them.
/// Without the limit of names the recorded trajectories reuse .959 of the prefix in place of .961.
const TASK: (usize, usize) = (2_000, 3);

/// Characters of a Chinese word.
const HAN: usize = 3;

/// A name in more messages is the subject of the conversation.
const RARELY: usize = 2;

/// Returns whether the message at `question` asks for what the messages before `step` say and those that it left do not.
/// O(bytes) for each word.
pub(super) fn asks_for_lost(view: &[Message<'_>], question: usize, step: &CompactionStep, made: &Made) -> bool {
    let said = said(&view[question]);
    let (mut asked, most) = match said.len() {
        bytes if bytes <= QUESTION.0 => (asked_words(&said), QUESTION.1),
        bytes if bytes <= TASK.0 => (asked_names(&said), TASK.1),
        _ => return false,
    };
    asked.sort_unstable();
    asked.dedup();
    asked.len() <= most && asked.into_iter().any(|word| is_lost(word, &view[..step.at], made))
}

/// Returns the names of one word with a digit.
fn asked_names(text: &str) -> Vec<&str> {
    let names = names(text).into_iter().map(|name| &text[name]);
    names.filter(|name| name.bytes().any(|byte| byte.is_ascii_digit()) && !name.contains(' ')).collect()
}

/// Returns what a text may ask for: names, and in a question each word with a capital, a digit or a letter beyond ASCII, each flag
/// and quoted text.
///
/// Other words cost too much: with them the recorded trajectories reuse .955 of the prefix in place of .961.
fn asked_words(text: &str) -> Vec<&str> {
    let mut asked: Vec<&str> = names(text).into_iter().map(|name| &text[name]).collect();
    asked.extend(opening_person(text));
    if !text.contains(['?', '？']) {
        return asked;
    }
    let is_part = |c: char| c.is_alphanumeric() && !is_han(c) || matches!(c, '-' | '%');
    let may_be_name = |word: &&str| {
        let mut says_something = false;
        scan(word, |term, _| says_something |= !asks_for_nothing(term.short()));
        let has_form = word.contains(|c: char| c.is_uppercase() || c.is_ascii_digit() || !c.is_ascii());
        says_something && word.len() > 1 && (has_form || word.starts_with("--"))
    };
    asked.extend(text.split(|c| !is_part(c)).filter(may_be_name));
    asked.extend(quoted(text));
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let windows = starts.windows(HAN + 1).map(|at| &text[at[0]..at[HAN]]);
    asked.extend(windows.filter(|window| window.chars().all(is_han)));
    asked
}

/// Iterates over the quoted texts.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    const QUOTES: [(char, char); 5] = [('"', '"'), ('“', '”'), ('「', '」'), ('«', '»'), ('`', '`')];
    QUOTES.into_iter().flat_map(move |(open, close)| {
        let mut rest = text;
        std::iter::from_fn(move || {
            let (said, behind) = rest.split_once(open)?.1.split_once(close)?;
            rest = behind;
            Some(said.trim())
        })
        .filter(|said| said.len() > 1)
    })
}

/// Returns whether few of the messages in `older` have `name`, and none of those that stay.
fn is_lost(name: &str, older: &[Message<'_>], made: &Made) -> bool {
    let finder = Finder::new(name);
    let having: Vec<usize> = (0..older.len()).filter(|&index| has(&older[index], &finder)).take(RARELY + 1).collect();
    let stays = |output: &Output| match output {
        Output::Keep(index) => having.contains(index),
        Output::Edit(index, _) => having.contains(index) && has(&output.message(older), &finder),
        // The ledger names it and does not say what it was.
        Output::New(_) => false,
    };
    (1..=RARELY).contains(&having.len())
        && having.iter().all(|&index| older[index].role != Role::System)
        && !made.plan.outputs.iter().any(stays)
}

fn has(message: &Message<'_>, name: &Finder<'_>) -> bool {
    let mut found = false;
    message.each_text(|text, media| found |= media.is_none() && name.find(text.as_str().as_bytes()).is_some());
    found
}
