//! The Python binding: converts, maps errors, lets other threads run while much is counted; decides nothing.

// What users read of a class or function here is a Python docstring.
#![allow(clippy::doc_markdown)]

mod apply;
mod archive;
mod arguments;
mod caches;
mod call;
mod compressor;
mod convert;
mod errors;
#[cfg(feature = "evaluation")]
mod evaluation;
mod file_lock;
mod functions;
mod lock;
mod overflow;
mod receipt;
mod recovery;
mod sessions;
mod summary;
mod tokens;
mod unchanged;
mod view;

/// The compiled half of the package `nanobot_context`.
#[pyo3::pymodule(name = "_core", gil_used = false)]
mod core_module {
    use pyo3::prelude::*;
    use pyo3::types::{PyCFunction, PyDict};

    use crate::checkpoint;

    #[pymodule_export]
    use super::archive::{archive_directory, archive_name};
    #[pymodule_export]
    use super::arguments::{check_whole, mask_credentials, without_credentials};
    #[pymodule_export]
    use super::caches::{cache_limit_bytes, cache_sizes, clear_caches, set_cache_limit};
    #[pymodule_export]
    use super::compressor::Compressor;
    #[pymodule_export]
    use super::errors::format_value;
    #[pymodule_export]
    use super::file_lock::{FileLock, lock_file};
    #[pymodule_export]
    use super::functions::{
        classify_message, compress_messages, compress_with_receipt, count_tokens, emergency_compress,
        find_last_user_index, find_safe_cut_point, fit_messages, fits, get_context_window, get_output_limit,
        list_changes, listed_window, loaded_vocabularies, prevailing_script, reduce_messages, rules_left_out,
        select_history, spoken_language, standing_rules, superseded, token_bound, trim_tool_result,
    };
    #[pymodule_export]
    use super::overflow::{Overflow, classify_error, classify_usage, silently_cut};
    #[pymodule_export]
    use super::receipt::{Cut, Fitted, Lost, Receipt};
    #[pymodule_export]
    use super::recovery::{Recovery, Repair, answer_reserve, reserve_tokens, window_for};
    #[pymodule_export]
    use super::sessions::{SessionStoreHandle, filter_key_belongs};
    #[pymodule_export]
    use super::summary::{
        SummaryCall, SummaryDraft, SummaryPolicy, SummaryRun, Trigger, format_structured, keep_last_cut,
        merge_structured, parse_structured, rolling_cut, static_buffer_cut, summary_due, summary_section, wrap_summary,
    };

    /// Lets forks wait for work that runs without the interpreter.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        // Set, not exported: `__all__` is that of a release.
        #[cfg(feature = "evaluation")]
        {
            use super::evaluation::{fit_without, usage_examples};
            module.setattr("_fit_without", wrap_pyfunction!(fit_without, module)?)?;
            module.setattr("_usage_examples", wrap_pyfunction!(usage_examples, module)?)?;
        }
        let os = py.import("os")?;
        if !os.hasattr("register_at_fork")? {
            return Ok(());
        }
        let hook = |hook: fn()| PyCFunction::new_closure(py, None, None, move |_, _| hook());
        let hooks = PyDict::new(py);
        hooks.set_item("before", hook(checkpoint::before_fork)?)?;
        hooks.set_item("after_in_parent", hook(checkpoint::after_fork)?)?;
        hooks.set_item("after_in_child", hook(checkpoint::after_fork_in_child)?)?;
        os.call_method("register_at_fork", (), Some(&hooks))?;
        Ok(())
    }

    #[pymodule_export]
    const MAX_WHOLE: u64 = crate::error::MAX_WHOLE;

    #[pymodule_export]
    const ESSENTIAL_TOKENS: u64 = crate::overflow::ESSENTIAL_TOKENS.0;

    #[pymodule_export]
    const MIN_OUTPUT_TOKENS: u64 = crate::overflow::MIN_OUTPUT_TOKENS.0;

    #[pymodule_export]
    const NO_REASONING: &str = crate::compress::NO_REASONING;

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python's own name for it
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
