//! What may be cut, what it weighs, and its shortest form.

use crate::message::{Field, Role, Text};
use crate::tokens::{TokenCounter, cut_by_content};

use super::draft::{Draft, Piece, Slot};
use super::layout::{Layout, Tier};
use super::priority::{Priority, classify, is_shell_result};
use super::{archive, marks, shorten};

/// Arguments shorter than this are never cut: the marks would cost as much.
const MIN_CUT_ARGUMENTS: u64 = 96;

/// Characters that every string of cut arguments keeps at least.
const ARGUMENT_CHARS: usize = 40;

/// Returns everything that may be cut, in the order of the conversation.
pub fn candidates(draft: &Draft<'_, '_>, layout: &Layout) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (position, group) in layout.groups.iter().enumerate() {
        let Some(tier) = layout.tiers[position] else { continue };
        for index in group.start..group.end {
            let entry = &draft.entries[index];
            if entry.dropped.is_none() {
                let priority = priority(draft, index);
                candidates.extend(
                    (0..entry.pieces.len())
                        .filter_map(|piece| candidate(draft, (index, piece), position, (tier, priority))),
                );
            }
        }
    }
    candidates
}

/// Something that may be cut.
pub struct Candidate {
    pub entry: usize,
    pub piece: usize,
    /// Position of its group.
    pub group: usize,
    /// Tokens now.
    pub full: u64,
    /// Tokens of its shortest form.
    pub floor: u64,
    /// What its parts' worth is multiplied with.
    pub weight: f32,
}

fn priority(draft: &Draft<'_, '_>, entry: usize) -> Priority {
    // Rules and requests of the user are kept for themselves, so their words need not be searched.
    let Some(message) = draft.message(entry).filter(|message| message.role != Role::User) else {
        return Priority::Normal;
    };
    let command = is_shell_result(message).then(|| draft.argument(entry, &["command"])).flatten();
    classify(message, command.as_deref())
}

/// Returns a piece as a candidate, or `None` where it is not to be cut.
fn candidate(
    draft: &Draft<'_, '_>,
    (entry, piece): (usize, usize),
    group: usize,
    (tier, priority): (Tier, Priority),
) -> Option<Candidate> {
    let text = draft.text(entry, piece);
    if marks::is_whole(text) || marks::is_note(text) {
        return None;
    }
    let (slot, tokens) = (draft.entries[entry].pieces[piece].slot, draft.entries[entry].pieces[piece].tokens);
    let floor = match slot {
        Slot::Arguments(_) | Slot::Field(Field::FunctionArguments) if tokens < MIN_CUT_ARGUMENTS => return None,
        Slot::Arguments(_) | Slot::Field(Field::FunctionArguments) => shortest_arguments(text, draft.counter),
        Slot::Content | Slot::Part(_) | Slot::Media(_) | Slot::Field(Field::Refusal) => {
            u64::from(draft.counter.text(&placeholder(draft, entry, piece)))
        }
        Slot::Field(_) => 0,
    };
    if floor >= tokens {
        return None;
    }
    if let Slot::Field(field) = slot
        && tier > newest_tier(field)
    {
        return None;
    }
    let weight = match (slot, priority) {
        (Slot::Field(_), _) if floor == 0 => 0.05,
        (_, Priority::High) => 1.5,
        _ => 1.0,
    };
    Some(Candidate { entry, piece, group, full: tokens, floor, weight })
}

/// Returns the newest tier that a field may go from.
fn newest_tier(field: Field) -> Tier {
    match field {
        // Signed thoughts must come back with the calls that they led to, as long as these are the newest.
        Field::ThinkingBlocks => Tier::LastRound,
        field if field.is_signature() => Tier::Older,
        _ => Tier::Newest,
    }
}

/// Returns the shortest form of a piece, with its tokens.
pub fn shortest(draft: &Draft<'_, '_>, candidate: &Candidate) -> (String, u64) {
    let piece = &draft.entries[candidate.entry].pieces[candidate.piece];
    let text = match piece.slot {
        Slot::Arguments(_) | Slot::Field(Field::FunctionArguments) => {
            shorten::arguments(draft.source(candidate.entry, piece), ARGUMENT_CHARS)
        }
        Slot::Content | Slot::Part(_) | Slot::Media(_) | Slot::Field(Field::Refusal) => {
            placeholder(draft, candidate.entry, candidate.piece)
        }
        Slot::Field(_) => return (String::new(), 0),
    };
    let tokens = u64::from(draft.counter.text(&text));
    (text, tokens)
}

/// Tells what is cached apart; families are below.
const SHORTEST_ARGUMENTS: u8 = 0x40;

/// Returns the tokens of arguments all of whose strings are short.
fn shortest_arguments(text: &str, counter: TokenCounter) -> u64 {
    let shortest = || [u64::from(counter.text(&shorten::arguments(text, ARGUMENT_CHARS))), 0, 0];
    cut_by_content(text, 0, counter.family().id | SHORTEST_ARGUMENTS, shortest)[0]
}

/// Returns what stands for a whole text.
fn placeholder(draft: &Draft<'_, '_>, entry: usize, piece: usize) -> String {
    let message = draft.message(entry);
    let &Piece { slot, original_tokens, .. } = &draft.entries[entry].pieces[piece];
    let what = match (slot, draft.entries[entry].role) {
        (Slot::Media(_), _) => "attachment".to_owned(),
        (_, Role::Tool | Role::Function) => {
            let name = message.and_then(|message| message.name.as_ref()).map_or("tool", Text::as_str);
            let name = if marks::can_show(name) { name } else { "tool" };
            match FILE_TOOLS.contains(&name).then(|| draft.argument(entry, &shorten::PATH_KEYS)).flatten() {
                Some(path) if path.len() <= MAX_PATH_BYTES && marks::can_show(&path) => format!("{name} {path} result"),
                _ => format!("{name} result"),
            }
        }
        _ => "message".to_owned(),
    };
    let what = match draft.expired.get(entry) {
        Some(Some(expired)) => format!("{what} ({})", expired.word()),
        _ => what,
    };
    // A result that was read from the archive names its file already.
    let origin = archive::origin(draft, entry, piece).filter(|origin| !what.contains(origin));
    marks::whole(&what, original_tokens, origin.as_deref())
}

/// Tools whose path stays in whatever remains of them: DESIGN, "compress".
const FILE_TOOLS: [&str; 3] = ["read_file", "write_file", "edit_file"];

/// Longest path that a placeholder repeats; it stands in the call too.
const MAX_PATH_BYTES: usize = 200;
