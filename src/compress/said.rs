//! Finds what the user says in the groups that may go, and which of it is rare enough to hold.

use std::ops::Range;

use crate::conversation::is_notes;
use crate::message::{Field, Role};
use crate::select::scoring::Author;
use crate::text::estimate::count;
use crate::text::rules::{Claim, Said, question_in, raise_corrections, said};

use super::draft::{Draft, Entry, Piece, Slot};
use super::protection::{Protection, Tier};

/// A user who types at most this share of a conversation says little.
pub const LITTLE: f32 = 0.25;
/// Claims above this share of what the user says are usual.
pub const OFTEN: f32 = 0.03;
/// The same beside a usual claim, as in a meeting: with a quarter in place of an eighth, .617 of the evidence of Chinese meetings
/// stays at 25 %, with this .619.
pub const RARER: f32 = OFTEN / 8.0;
/// Claims that hold wherever they are made; and others, in the order in which they may be usual.
const HOLDING: [Claim; 3] = [Claim::Rule, Claim::Order, Claim::Fact];
const OTHERS: [Claim; 4] = [Claim::Trait, Claim::Answer, Claim::Wish, Claim::Brief];

/// An entry, and the position of a piece in it.
pub type At = (usize, usize);

/// What the user says in the groups that may go.
pub struct Users {
    /// By text, in order.
    pub said: Vec<(At, Said)>,
    /// Questions of the model that are answered in a few words, likewise.
    pub questions: Vec<(At, Range<usize>)>,
    /// Claims that are rare, or all of a user who says little: in a talk among several people a usual one says nothing.
    pub rare: Vec<Claim>,
}

impl Users {
    /// Reads every text of the user; O(n).
    pub fn of(draft: &Draft<'_, '_>, protection: &Protection) -> Self {
        let (mut texts, mut all, mut typed) = (Vec::new(), 0, 0);
        let (mut questions, mut question) = (Vec::new(), None);
        for (group, tier) in protection.groups.iter().zip(&protection.tiers) {
            let kept = (group.start..group.end).filter(|&entry| draft.entries[entry].dropped.is_none());
            for (entry, piece) in kept.flat_map(|entry| (0..draft.entries[entry].pieces.len()).map(move |i| (entry, i)))
            {
                let text = draft.text(entry, piece);
                all += text.len();
                let of = &draft.entries[entry];
                let author = author(&of.pieces[piece], of);
                if author == Some(Author::Assistant) {
                    question = question_in(text).map(|range| ((entry, piece), range));
                }
                if is_said(*tier, author, text) {
                    let mut said = said(text);
                    if let Some(question) = question.take()
                        && said.answer(text)
                    {
                        questions.push(question);
                    }
                    typed += said.typed_bytes;
                    texts.push(((entry, piece), said));
                }
            }
        }
        let says_little = share(typed, all) <= LITTLE;
        let held = |wanted: Claim| {
            let sentences = texts.iter().flat_map(|(_, said)| &said.claims).filter(|(claim, _)| *claim == wanted);
            share(sentences.map(|(_, at)| at.len()).sum(), typed)
        };
        let (rare, are_few) = rare_claims(held, says_little);
        if are_few {
            raise_corrections(texts.iter_mut().map(|((entry, piece), said)| (draft.text(*entry, *piece), said)), &rare);
        }
        Self { said: texts, questions, rare }
    }
}

/// Returns the claims that are rare by their shares of what the user says, and whether they are few together.
fn rare_claims(held: impl Fn(Claim) -> f32, says_little: bool) -> (Vec<Claim>, bool) {
    let mut rare = HOLDING.to_vec();
    let mut sum: f32 = HOLDING.into_iter().map(&held).sum();
    let mut often = if sum <= OFTEN { OFTEN } else { RARER };
    for claim in OTHERS {
        let held = held(claim);
        if says_little || sum + held <= often {
            rare.push(claim);
            sum += held;
        } else {
            often = RARER;
        }
    }
    (rare, sum <= often)
}

fn share(part: usize, whole: usize) -> f32 {
    count(part) / count(whole.max(1))
}

/// Returns whether a text is the user's own.
fn is_said(tier: Option<Tier>, author: Option<Author>, text: &str) -> bool {
    tier.is_some() && author == Some(Author::User) && !is_notes(text)
}

/// Returns who brought a piece; `None` where there is nothing to read in it, or nothing that was said.
pub fn author(piece: &Piece, entry: &Entry) -> Option<Author> {
    match (piece.slot, entry.role) {
        (Slot::Arguments(_) | Slot::Field(Field::FunctionArguments), _) => Some(Author::Call),
        (Slot::Field(Field::Refusal), _) => Some(Author::Assistant),
        (Slot::Media(_) | Slot::Field(_), _) => None,
        (_, Role::System) => Some(Author::System),
        (_, Role::User) => Some(Author::User),
        (_, Role::Assistant) => Some(Author::Assistant),
        (_, Role::Tool | Role::Function) => Some(Author::Result),
    }
}
