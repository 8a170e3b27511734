//! One text made shorter by its content, whatever conversation it stands in.
//!
//! This is for limits that hold for a text alone. It must come out the same in every later call, so neither the question
//! nor the other messages have a say.

use std::sync::{Arc, LazyLock};

use crate::tokens::{ContentMemory, TokenCounter};

use super::Mechanisms;
use super::analysis::{Analysis, Form};
use super::choice::{Block, Choice, FIRST_MARK, Frame, Kept};
use super::marks;
use super::outline::Kind;
use super::salience::{Passage, Salience, Voice};
use super::shorten;

/// Bytes of shortened texts that are remembered: a large result is shortened anew in every call that it stands in.
const MEMORY_BYTES: usize = 16 << 20;

static MEMORY: LazyLock<ContentMemory<Option<(String, u64)>>> = LazyLock::new(|| ContentMemory::new(MEMORY_BYTES));

/// Returns `text` cut to at most `max_tokens`, and its tokens; `None` where that is too little for any of it.
///
/// `origin`, where all of it can be read, is named in the first mark. JSON comes out as JSON. O(n), remembered by content.
pub fn within(text: &str, max_tokens: u64, counter: TokenCounter, origin: Option<&str>) -> Option<(String, u64)> {
    let salt = max_tokens << 8 | u64::from(counter.family().id);
    let key = origin.map(|origin| [text, "\0", origin].concat());
    let made = MEMORY.get_or_make(key.as_deref().unwrap_or(text), salt, || {
        let made = make(text, max_tokens, counter, origin);
        let bytes = made.as_ref().map_or(0, |(text, _)| text.len());
        (made, bytes)
    });
    made.as_ref().clone()
}

fn make(text: &str, max_tokens: u64, counter: TokenCounter, origin: Option<&str>) -> Option<(String, u64)> {
    let analysis = Analysis::of(text, Form::Outlined);
    let by_content = chosen(text, &analysis, max_tokens, counter, origin);
    // Parts that are few and large may leave much of the room; then the start and the end say more.
    let fills = by_content.as_ref().is_some_and(|(_, tokens)| tokens * 10 >= max_tokens * 8);
    if fills || analysis.kind() == Some(Kind::Json) {
        return by_content;
    }
    // It knows no origins, and would cut through the marks of an earlier cut.
    let by_place = (origin.is_none() && marks::find_gap(text).is_none())
        .then(|| shorten::to_tokens(text, max_tokens, counter))
        .flatten();
    [by_content, by_place].into_iter().flatten().max_by_key(|(_, tokens)| *tokens)
}

/// Returns the parts that are worth most, with marks for the others.
fn chosen(
    text: &str,
    analysis: &Arc<Analysis>,
    max_tokens: u64,
    counter: TokenCounter,
    origin: Option<&str>,
) -> Option<(String, u64)> {
    let passage = Passage { message: 0, voice: Voice::Result, stays: false, asks: 0.0, analysis: Arc::clone(analysis) };
    let mut salience = Salience::new(vec![passage], 1, None, Mechanisms::default());
    let mark = FIRST_MARK + origin.map_or(0.0, |origin| float(u64::from(counter.text(origin))));
    let full = float(u64::from(counter.text(text)));
    let block = Block { passage: Some(0), group: 0, full, shortest: 0.0, weight: 1.0, mark, is_bundle: false };
    let mut choice = Choice::new(&mut salience, vec![Frame::default()], vec![block], 0.0);
    choice.grow(float(max_tokens), |_| true);
    while choice.kept(0) != Kept::Nothing {
        let short = analysis.render(text, &|part| choice.stays(0, part), origin);
        let tokens = u64::from(counter.text(&short));
        if tokens <= max_tokens {
            return Some((short, tokens));
        }
        choice.shrink(float(tokens - max_tokens));
    }
    None
}

#[allow(clippy::cast_precision_loss)] // an estimate, checked by counting
fn float(tokens: u64) -> f32 {
    tokens as f32
}
