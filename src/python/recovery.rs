//! `Recovery`: what to send after a refusal.

use pyo3::prelude::*;

use crate::budget::{self, check_ratio};
use crate::overflow::{self, Recovery as Core, Step};
use crate::tokens::Tokens;

use super::arguments::{optional_tokens, tokens, whole};
use super::errors::OrRaise;
use super::overflow::Overflow;

/// What to do after a refusal.
#[pyclass(frozen, get_all, skip_from_py_object, module = "nanobot_context")]
#[derive(Clone)]
pub struct Repair {
    /// `send`, `compress`, `restore` or `give_up`.
    action: &'static str,
    /// For `compress`: the tokens that the prompt may have at most.
    prompt_tokens: Tokens,
    /// For `send`: the limit for the answer, `None` where the request has none.
    output_tokens: Option<Tokens>,
    /// For `give_up`: `unrelated`, `floor`, `refused` or `useless`.
    reason: Option<&'static str>,
}

impl From<Step> for Repair {
    fn from(step: Step) -> Self {
        let nothing = Self { action: "give_up", prompt_tokens: Tokens::ZERO, output_tokens: None, reason: None };
        match step {
            Step::Send { output_tokens } => Self { action: "send", output_tokens, ..nothing },
            Step::Compress { prompt_tokens } => Self { action: "compress", prompt_tokens, ..nothing },
            Step::Restore => Self { action: "restore", ..nothing },
            Step::GiveUp(reason) => Self { reason: Some(reason.name()), ..nothing },
        }
    }
}

/// The repair of one request, from its first refusal on.
///
/// Tell it what the provider said, do what it says, tell it the outcome: it sends and compresses
/// nothing itself. `prompt_tokens` is our count of what was refused, `fixed_tokens` of what is never
/// cut of it, `output_tokens` the answer it asked for, `listed_output_tokens` the longest answer that
/// the model is known for.
#[pyclass(module = "nanobot_context")]
pub struct Recovery(Core);

#[pymethods]
impl Recovery {
    #[new]
    #[pyo3(signature = (prompt_tokens, output_tokens=None, *, fixed_tokens, listed_output_tokens, emergency_ratio=0.6))]
    fn new(
        prompt_tokens: &Bound<'_, PyAny>,
        output_tokens: Option<&Bound<'_, PyAny>>,
        fixed_tokens: &Bound<'_, PyAny>,
        listed_output_tokens: &Bound<'_, PyAny>,
        emergency_ratio: f64,
    ) -> PyResult<Self> {
        let py = prompt_tokens.py();
        Ok(Self(Core::new(
            tokens(prompt_tokens, "prompt_tokens")?,
            optional_tokens(output_tokens, "output_tokens")?,
            tokens(fixed_tokens, "fixed_tokens")?,
            tokens(listed_output_tokens, "listed_output_tokens")?,
            check_ratio("emergency_ratio", emergency_ratio).or_raise(py)?,
        )))
    }

    /// Take note of the bytes that what was refused had.
    fn weighs(&mut self, size: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.weighs(whole(size, "size")?);
        Ok(())
    }

    /// Return what to do after the provider refused what was sent last.
    fn refused(&mut self, overflow: &Overflow) -> Repair {
        self.0.refused(&overflow.0).into()
    }

    /// Return what to do with messages that were compressed to `prompt_tokens`.
    fn compressed(&mut self, prompt_tokens: &Bound<'_, PyAny>) -> PyResult<Repair> {
        Ok(self.0.compressed(tokens(prompt_tokens, "prompt_tokens")?).into())
    }

    /// Return what to do where what must stay needs `needed_tokens`, more than was allowed.
    fn floor(&mut self, needed_tokens: &Bound<'_, PyAny>) -> PyResult<Repair> {
        Ok(self.0.floor(tokens(needed_tokens, "needed_tokens")?).into())
    }
}

/// Return what to keep free for an answer of at most `asked_tokens` where `left_tokens` of a window are
/// not taken by what is never cut.
#[pyfunction]
pub fn answer_reserve(left_tokens: &Bound<'_, PyAny>, asked_tokens: &Bound<'_, PyAny>) -> PyResult<Tokens> {
    Ok(overflow::answer_reserve(tokens(left_tokens, "left_tokens")?, tokens(asked_tokens, "asked_tokens")?))
}

/// Return the tokens of a window that are kept free for the answer.
#[pyfunction]
pub fn reserve_tokens(
    window_tokens: &Bound<'_, PyAny>,
    max_output_tokens: Option<&Bound<'_, PyAny>>,
    context_reserve_ratio: f64,
) -> PyResult<Tokens> {
    let (output, ratio) = answer(window_tokens.py(), max_output_tokens, context_reserve_ratio)?;
    Ok(budget::reserve_tokens(tokens(window_tokens, "window_tokens")?, output, ratio))
}

/// Return the smallest window that leaves `prompt_tokens` beside what is kept free for the answer.
#[pyfunction]
pub fn window_for(
    prompt_tokens: &Bound<'_, PyAny>,
    max_output_tokens: Option<&Bound<'_, PyAny>>,
    context_reserve_ratio: f64,
) -> PyResult<Tokens> {
    let (output, ratio) = answer(prompt_tokens.py(), max_output_tokens, context_reserve_ratio)?;
    Ok(budget::window_for(tokens(prompt_tokens, "prompt_tokens")?, output, ratio))
}

/// Returns the limit for an answer, 0 for none, and the share of the window that it has.
fn answer(py: Python<'_>, max_output_tokens: Option<&Bound<'_, PyAny>>, ratio: f64) -> PyResult<(Tokens, f64)> {
    let ratio = check_ratio("context_reserve_ratio", ratio).or_raise(py)?;
    Ok((optional_tokens(max_output_tokens, "max_output_tokens")?.unwrap_or_default(), ratio))
}
