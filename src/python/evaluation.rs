//! What an evaluation asks for. The names are private: no release has them, and no stub.

use pyo3::prelude::*;

use crate::budget::Limits;
use crate::compress::evaluation::{self, Example};
use crate::tokens::Tokens;

use super::arguments::tokens;
use super::call::Call;
use super::receipt::Fitted;

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Return an example for every term of a conversation that could be kept or lost, as little-endian
/// 16-bit numbers: features, and whether one of the texts in `used` names it.
///
/// What `training/usage.py` fits the trees of the choice to.
#[pyfunction(name = "_usage_examples")]
#[allow(clippy::needless_pass_by_value)] // a list can be extracted by value only
pub fn usage_examples(messages: &Bound<'_, PyAny>, used: Vec<String>) -> PyResult<Vec<u8>> {
    let call = Call::new(messages, None, None)?;
    let request = call.request(Tokens::MAX, Limits::default());
    let used: Vec<&str> = used.iter().map(String::as_str).collect();
    let examples =
        call.with_view(|view, _| view.run(messages.py(), |view| evaluation::usage_examples(view, &request, &used)))??;
    let row = |example: &Example| {
        let mut values = example.features.to_vec();
        values.push(u16::from(example.is_used));
        values
    };
    Ok(examples.iter().flat_map(row).flat_map(u16::to_le_bytes).collect())
}

/// Return `messages` within `max_tokens` as `fit_messages` does, without some of what it goes by.
///
/// `without` names among `learned`, `relevance`, `outline`, `superseded`, `pinning`, `ledger`,
/// `coverage` and `striking`. For evaluation, which shows what each is worth.
///
/// Raises:
///     ContextOverflowError: As `fit_messages`.
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used, or no mechanism has such a name.
#[pyfunction(name = "_fit_without")]
#[allow(clippy::needless_pass_by_value)] // as above
pub fn fit_without(
    messages: &Bound<'_, PyAny>,
    max_tokens: &Bound<'_, PyAny>,
    model: Any<'_, '_>,
    without: Vec<String>,
) -> PyResult<Fitted> {
    let call = Call::new(messages, model, None)?;
    let max_tokens = tokens(max_tokens, "max_tokens")?;
    let request = call.request(max_tokens, Limits::default());
    call.planned(&request, |view, request| {
        evaluation::fit_without(view, request, max_tokens, without.iter().map(String::as_str))
    })
}
