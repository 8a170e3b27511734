//! Finds the pieces that may be cut, their weight and their shortest form.

use crate::conversation::{is_notes, is_own};
use crate::message::{Field, Message, Role, Text};
use crate::text::analysis::{Analysis, Form};
use crate::text::conclusions::concludes;
use crate::text::elision::{self, Marks};
use crate::text::excerpt;
use crate::text::language::Language;
use crate::text::ledger;
use crate::tokens::{TokenCounter, Tokens, Way, cut_by_content};
use crate::tools::{Effect, made, running};

use super::archive_paths::ArchivePaths;
use super::documents::SHORT_TOKENS;
use super::draft::{Draft, Piece, Slot};
use super::priority::{Priority, classify};
use super::protection::{Protection, Tier};
use super::superseded::Superseded;

/// Shorter arguments are never cut: the marks would cost as much.
const MIN_CUT_ARGUMENTS: Tokens = Tokens(96);

/// Shorter results that say what their call made are never cut, either, but in the newest group.
const MIN_CUT_RECEIPT: Tokens = Tokens(160);

/// Groups whose results have fewer together stay or go with these. Of 24 results of 10 to 60 tokens 0 to 5 are whole at half of the
/// tokens without this, with it 2 to 7; of recorded runs .761 and .763 of what is used next stays at 25 %.
const MIN_CUT_RESULTS: Tokens = Tokens(80);

/// Characters that each string of cut arguments keeps.
const ARGUMENT_CHARS: usize = 40;

/// Returns the pieces that may be cut, in the order of the conversation. `superseded` has the entries of superseded results;
/// empty where they are not wanted.
pub fn candidates(
    draft: &Draft<'_, '_>,
    archive_paths: &ArchivePaths<'_>,
    protection: &Protection,
    superseded: &[Option<Superseded>],
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (position, group) in protection.groups.iter().enumerate() {
        let Some(tier) = protection.tiers[position] else { continue };
        let results = (group.start..group.end).filter(|&index| draft.is_result(index));
        let results = results.flat_map(|index| &draft.entries[index].pieces).map(|piece| piece.tokens);
        let is_short = results.sum::<Tokens>() < MIN_CUT_RESULTS;
        for index in group.start..group.end {
            let entry = &draft.entries[index];
            if entry.dropped.is_none() {
                let of = Of {
                    group: position,
                    tier,
                    priority: priority(draft, index),
                    superseded: superseded.get(index).copied().flatten(),
                    is_short,
                    is_of_request: index >= protection.request,
                };
                candidates.extend(
                    (0..entry.pieces.len()).filter_map(|piece| candidate(draft, archive_paths, (index, piece), of)),
                );
            }
        }
    }
    candidates
}

/// A piece that may be cut.
pub struct Candidate {
    pub entry: usize,
    pub piece: usize,
    /// Position of its group.
    pub group: usize,
    /// Tokens now.
    pub full: Tokens,
    /// Tokens of its shortest form.
    pub floor: Tokens,
    /// Factor of its parts' worth.
    pub weight: f32,
    /// Whether whole members of its arguments may go: their strings are many and short.
    pub by_members: bool,
    /// Why it is superseded, if it is.
    pub superseded: Option<Superseded>,
}

/// Factor of the worth of reasoning: a token of it is worth less than one of what the model says.
const THOUGHTS: f32 = 0.01;

/// Factor of the worth of results that were fetched for what the user asks for now. Of the values that the next call takes from the
/// record of a customer who is served 8 and 14 of 24 are gone at 50 and 25 % of the tokens without it, none with it; recall at 25, 50
/// and 75 % is .764, .910 and .976 without, .766, .912 and .975 with it, and .765, .914 and .974 with 3.
const OF_REQUEST: f32 = 2.0;

/// Facts about a candidate's message.
#[derive(Clone, Copy)]
struct Of {
    group: usize,
    tier: Tier,
    priority: Priority,
    superseded: Option<Superseded>,
    /// Whether the results of its group are short.
    is_short: bool,
    /// Whether it stands behind what the user asks for now.
    is_of_request: bool,
}

fn priority(draft: &Draft<'_, '_>, entry: usize) -> Priority {
    // Rules and requests of the user are selected by themselves, so their words need no search.
    let message = draft.message(entry).filter(|message| !is_own(message));
    message.map_or(Priority::Normal, |message| classify(message, draft.entries[entry].effect))
}

/// Returns the candidate of a piece, or `None` if it is not to be cut.
fn candidate(
    draft: &Draft<'_, '_>,
    archive_paths: &ArchivePaths<'_>,
    (entry, piece): (usize, usize),
    Of { group, tier, priority, superseded, is_short, is_of_request }: Of,
) -> Option<Candidate> {
    let text = draft.text(entry, piece);
    if elision::is_whole(text) || is_notes(text) {
        return None;
    }
    let (slot, tokens) = (draft.entries[entry].pieces[piece].slot, draft.entries[entry].pieces[piece].tokens);
    let is_receipt = || tokens < MIN_CUT_RECEIPT && is_receipt(draft.entries[entry].effect, text);
    if draft.is_result(entry) && tier != Tier::Newest && (is_short || is_receipt()) {
        return None;
    }
    // A call without the few words that say what came of the others is hardly worth its own.
    let calls = |message: &Message<'_>| message.role == Role::Assistant && !message.tool_calls.is_empty();
    let is_calling = || draft.message(entry).is_some_and(calls);
    if slot.is_content() && tokens <= SHORT_TOKENS && tier != Tier::Newest && is_calling() && concludes(text) {
        return None;
    }
    let (floor, by_members) = match slot {
        Slot::Arguments(_) | Slot::Field(Field::FunctionArguments) if tokens < MIN_CUT_ARGUMENTS => return None,
        Slot::Arguments(_) | Slot::Field(Field::FunctionArguments) => arguments_floor(text, tokens, draft.counter),
        Slot::Content | Slot::Part(_) | Slot::Media(_) | Slot::Field(Field::Refusal) => {
            (placeholder(draft, archive_paths, (entry, piece), superseded).1, false)
        }
        Slot::Field(_) => (thoughts(draft, entry, piece).1, false),
    };
    if floor >= tokens {
        return None;
    }
    if let Slot::Field(field) = slot
        && field.is_signature()
        && tier > Tier::Older
    {
        return None;
    }
    let weight = match (slot, priority) {
        (Slot::Field(field), _) if floor == Tokens::ZERO || field.is_reasoning() => THOUGHTS,
        (_, Priority::High) => 1.5,
        _ => 1.0,
    };
    let weight = if is_of_request && draft.is_result(entry) { weight * OF_REQUEST } else { weight };
    Some(Candidate { entry, piece, group, full: tokens, floor, weight, by_members, superseded })
}

/// Returns whether a short result says what its call made, or names what runs on.
fn is_receipt(effect: Effect, result: &str) -> bool {
    match effect {
        Effect::Changes => true,
        Effect::RunsCommand | Effect::Unknown => running(result).is_some(),
        _ => false,
    }
}

/// Returns the shortest form of a piece, with its tokens.
pub fn shortest(draft: &Draft<'_, '_>, archive_paths: &ArchivePaths<'_>, candidate: &Candidate) -> (String, Tokens) {
    let piece = &draft.entries[candidate.entry].pieces[candidate.piece];
    match piece.slot {
        Slot::Arguments(_) | Slot::Field(Field::FunctionArguments) => {
            let source = draft.source(candidate.entry, piece);
            let text = if candidate.by_members { shortest_members(source) } else { short_strings(source) };
            let tokens = draft.counter.text(&text);
            (text, tokens)
        }
        Slot::Content | Slot::Part(_) | Slot::Media(_) | Slot::Field(Field::Refusal) => {
            placeholder(draft, archive_paths, (candidate.entry, candidate.piece), candidate.superseded)
        }
        Slot::Field(_) => thoughts(draft, candidate.entry, candidate.piece),
    }
}

/// Returns what replaces a field other than content, with its tokens: nothing, or a mark for plain-text reasoning, which
/// some providers require to be there, whatever it says.
pub fn thoughts(draft: &Draft<'_, '_>, entry: usize, piece: usize) -> (String, Tokens) {
    let Piece { slot, original_tokens, .. } = draft.entries[entry].pieces[piece];
    let is_reasoning = matches!(slot, Slot::Field(field) if field.is_reasoning());
    if !is_reasoning || !draft.counter.family().wants_reasoning {
        return (String::new(), Tokens::ZERO);
    }
    let mark = elision::whole("reasoning", original_tokens, Marks::default());
    let tokens = draft.counter.text(&mark);
    (mark, tokens)
}

/// Arguments above this with all strings shortened lose whole members, if their strings are not most of them.
const MAX_SHORT_STRINGS: Tokens = Tokens(192);

/// Arguments with fewer members and elements keep them all: dropping a number beside a long string gains nothing.
const FEW_MEMBERS: usize = 8;

/// Returns the tokens of the shortest form of arguments, and whether whole members go in it.
fn arguments_floor(text: &str, tokens: Tokens, counter: TokenCounter) -> (Tokens, bool) {
    let find = || {
        let count = |text: &str| counter.text(text);
        let strings = count(&short_strings(text));
        if strings <= MAX_SHORT_STRINGS || strings * 2 < tokens || excerpt::separators(text) < FEW_MEMBERS {
            return [strings.0, 0, 0];
        }
        let members = count(&shortest_members(text));
        if members < strings { [members.0, 1, 0] } else { [strings.0, 0, 0] }
    };
    let [floor, by_members, _] = cut_by_content(text, 0, counter.key(Way::ShortestArguments), find);
    (Tokens(floor), by_members == 1)
}

/// Returns arguments with all their strings shortened.
fn short_strings(text: &str) -> String {
    excerpt::arguments(text, ARGUMENT_CHARS)
}

/// Returns arguments reduced to the members that say what the call was about.
fn shortest_members(text: &str) -> String {
    let analysis = Analysis::of(text, Form::Members);
    short_strings(&analysis.excerpt(text, &|part| analysis.parts[part].is_fixed, Marks::default()))
}

/// Returns the mark that replaces a whole text, with its tokens.
pub fn placeholder(
    draft: &Draft<'_, '_>,
    archive_paths: &ArchivePaths<'_>,
    (entry, piece): (usize, usize),
    superseded: Option<Superseded>,
) -> (String, Tokens) {
    let message = draft.message(entry);
    let &Piece { slot, original_tokens, .. } = &draft.entries[entry].pieces[piece];
    let is_chinese = draft.language() == Language::Chinese;
    let what = match (slot, draft.entries[entry].role) {
        (Slot::Media(_), _) => if is_chinese { "附件" } else { "attachment" }.to_owned(),
        (_, Role::Tool | Role::Function) => {
            let name = message.and_then(|message| message.name.as_ref()).map_or("tool", Text::as_str);
            let name = if elision::can_show(name) { name } else { "tool" };
            let path = draft.entries[entry].effect.is_of_file().then(|| draft.path(entry)).flatten();
            let path = path.filter(|path| path.len() <= MAX_PATH_BYTES && elision::can_show(path));
            elision::result_of(name, path, draft.language())
        }
        _ => if is_chinese { "消息" } else { "message" }.to_owned(),
    };
    let why = match superseded {
        Some(why) => Some(if is_chinese { why.chinese() } else { why.word() }.to_owned()),
        None => outcome(draft, entry, piece),
    };
    let what = match why {
        None => what,
        Some(why) if is_chinese => format!("{what}（{why}）"),
        Some(why) => format!("{what} ({why})"),
    };
    // A result that was read from the archive already names its file.
    let archive_path = archive_paths.path(draft, entry, piece).filter(|archive_path| !what.contains(archive_path));
    let mark = elision::whole(&what, original_tokens, draft.marks(archive_path.as_deref()));
    let tokens = draft.counter.text(&mark);
    (mark, tokens)
}

/// Returns how a call ended that may have changed something, or what it made, where its result says so in words fit for a mark.
fn outcome(draft: &Draft<'_, '_>, entry: usize, piece: usize) -> Option<String> {
    let effect = draft.entries[entry].effect;
    let source = || draft.source(entry, &draft.entries[entry].pieces[piece]);
    if !effect.is_changing() {
        return None;
    }
    let made = || {
        let call = draft.call(entry)?;
        made(call.name.as_ref()?.as_str(), call.arguments.as_ref().map_or("", Text::as_str), source())
    };
    let outcome = ledger::outcome(source(), effect).or_else(|| ledger::with_state(made(), source()))?;
    elision::can_show(&outcome).then_some(outcome)
}

/// Longest path that a placeholder repeats; the call has it, too.
const MAX_PATH_BYTES: usize = 200;
