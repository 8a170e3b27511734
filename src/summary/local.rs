//! Makes a summary by rules, without a model; deterministic.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::compress::lost::errors;
use crate::conversation::is_note;
use crate::message::{Message, Role, Text};
use crate::text::bytes::has_time;
use crate::text::ledger::on_one_line;
use crate::text::rules::rules;
use crate::text::sentences::sentences;
use crate::text::terms;
use crate::tokens::BuildMixedHasher;
use crate::tools::path_in;

use super::Structured;
use super::changes::changes_of;
use super::cut::is_result;
use super::transcript::said;

/// Words of a sentence that tells a decision.
const DECISION: &str = r"(?i)(?-u:\b)(?:decided|we(?:'ll| will| shall) (?:use|keep|take|go)|let's (?:use|keep|take|go)|going with|agreed (?:on|to|that)|chose|settled on|switched to|decision (?:is|was)|entschieden|beschlossen|decidimos|decidido|decidiu|deciso)(?-u:\b)|(?-u:\b)(?:decisions?|entscheidung|beschluss|décision|decisión|decisão|decisione)\*{0,2} ?[:：]|décidé|решили|решение\*{0,2} ?:|决定|采用|改用|就用|选定|定为";
/// Words of a sentence that tells what is left to do.
const OPEN: &str = r"(?i)(?-u:\b)(?:todo|fixme|next steps?|still (?:need|needs|have|has|open|missing)|not yet|remains? to|open questions?|to be (?:done|decided)|noch offen|pendiente|da fare)(?-u:\b)|à faire|осталось|待办|未完成|还需要|还没|下一步|待确认";

#[allow(clippy::expect_used)] // the patterns are literals, and a test compiles them
static PATTERNS: LazyLock<[Regex; 2]> =
    LazyLock::new(|| [DECISION, OPEN].map(|pattern| Regex::new(pattern).expect("the pattern is a literal")));

/// Most bytes of a sentence that is an entry; longer ones are pasted.
const MAX_SENTENCE_BYTES: usize = 300;
/// Most characters of a request.
const MAX_REQUEST_CHARS: usize = 120;
/// Most error lines of a result.
const MAX_ERRORS: usize = 3;
/// Most names before merging.
const MAX_NAMES: usize = 40;

/// Returns the fields of a summary of the messages. Every entry is a sentence, a line, a call or a name of theirs. O(bytes).
pub fn local(view: &[Message<'_>]) -> Structured {
    let [decision, open] = &*PATTERNS;
    let mut found = Structured::default();
    for (index, message) in view.iter().enumerate() {
        let text = said(message);
        if is_result(message) {
            // The command's entry has its outcome.
            let lines = errors(&text).into_iter().map(|(_, line)| line).filter(|line| !is_exit_code(line));
            found.errors.extend(lines.take(MAX_ERRORS).map(|line| on_one_line(line, MAX_SENTENCE_BYTES)));
            continue;
        }
        if message.role == Role::User && !is_note(message) {
            let request = on_one_line(&text, MAX_REQUEST_CHARS);
            if found.goal.is_empty() {
                found.goal = request;
            } else {
                found.requests.push(request);
            }
        }
        if message.role == Role::User || message.role == Role::System {
            found.constraints.extend(rules(&text).into_iter().map(|rule| text[rule].trim().to_owned()));
        }
        if message.role != Role::System {
            for sentence in sentences(&text).map(|at| text[at].trim()).filter(|s| s.len() <= MAX_SENTENCE_BYTES) {
                if sentence.ends_with(['?', '？']) {
                    continue;
                }
                if decision.is_match(sentence) {
                    found.decisions.push(sentence.to_owned());
                } else if open.is_match(sentence) {
                    found.open_questions.push(sentence.to_owned());
                }
            }
        }
        for change in changes_of(view, index) {
            let names_file = path_in(&serde_json::from_str(change.arguments).unwrap_or_default()).is_some();
            let list = if names_file { &mut found.file_changes } else { &mut found.commands };
            list.push(change.line);
        }
    }
    found.open_questions.extend(question(view));
    found.names = names(view);
    // Merging removes duplicates and enforces the limits of lists.
    Structured::default().merged(found)
}

fn is_exit_code(line: &str) -> bool {
    line.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("exit code"))
}

/// Returns the question that the conversation ends with, asked by the assistant.
fn question(view: &[Message<'_>]) -> Option<String> {
    let last = view.last().filter(|message| message.role == Role::Assistant)?;
    let text = said(last);
    let last = sentences(&text).map(|at| text[at].trim()).filter(|sentence| !sentence.is_empty()).last()?;
    (last.ends_with(['?', '？']) && last.len() <= MAX_SENTENCE_BYTES).then(|| last.to_owned())
}

/// Returns exact names: the user's first, then by number of messages, then newest.
fn names(view: &[Message<'_>]) -> Vec<String> {
    struct Seen<'v> {
        by_user: bool,
        messages: u32,
        last: usize,
        text: &'v str,
    }
    let mut seen: HashMap<terms::Term, Seen<'_>, BuildMixedHasher> = HashMap::default();
    for (index, message) in view.iter().enumerate().filter(|(_, message)| message.role != Role::System) {
        let by_user = message.role == Role::User;
        let arguments = message.tool_calls.iter().filter_map(|call| call.arguments.as_ref()).map(Text::as_str);
        for text in message.texts().chain(arguments) {
            terms::scan(text, |term, start| {
                if let Some(seen) = seen.get_mut(&term) {
                    seen.messages += u32::from(seen.last != index);
                    seen.last = index;
                    seen.by_user |= by_user;
                } else if term.kind().is_name()
                    && let Some(name) =
                        terms::text_at(text, start, term.short()).filter(|name| !has_time(name.as_bytes()))
                {
                    let text = &text[start - root(&text[..start]).len()..start + name.len()];
                    seen.insert(term, Seen { by_user, messages: 1, last: index, text });
                }
            });
        }
    }
    // A name in only one result is data.
    let mut names: Vec<Seen<'_>> = seen.into_values().filter(|seen| seen.by_user || seen.messages > 1).collect();
    names.sort_by(|a, b| {
        let rank = |seen: &Seen<'_>| (seen.by_user, seen.messages, seen.last);
        rank(b).cmp(&rank(a)).then_with(|| (b.text.len(), b.text).cmp(&(a.text.len(), a.text)))
    });
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        // A part of one that is kept.
        if kept.len() < MAX_NAMES && !kept.iter().any(|kept| kept.contains(name.text)) {
            kept.push(name.text.to_owned());
        }
    }
    kept
}

/// Returns the end of `before` if that starts a path, which names leave out.
fn root(before: &str) -> &str {
    let root = ["../", "~/", "./", "/"].into_iter().find(|root| before.ends_with(root)).unwrap_or_default();
    let outer = before[..before.len() - root.len()].chars().next_back();
    if outer.is_none_or(|c| c.is_whitespace() || "\"'`([<=:,".contains(c)) { root } else { "" }
}
