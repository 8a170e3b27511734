//! The caches of the process, as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cache::{self, CONVERSATIONS, STRINGS, Share};
use crate::compress;

use super::arguments::whole;
use super::view::detached_whole;
use super::{unchanged, view};

/// The caches of the binding: they hold objects of the interpreter.
const OF_BINDING: [(&Share, Size, Clear); 2] =
    [(&STRINGS, view::strings_bytes, view::clear_strings), (&CONVERSATIONS, unchanged::bytes, unchanged::clear)];

type Size = fn(Python<'_>) -> usize;
type Clear = fn(Python<'_>);

fn sizes(py: Python<'_>) -> impl Iterator<Item = (&'static str, usize)> {
    let core = compress::caches().into_iter().map(|(share, cache)| (share.name, cache.bytes()));
    core.chain(OF_BINDING.iter().map(move |(share, bytes, _)| (share.name, bytes(py))))
}

/// Return how many bytes each cache of this process takes, by its name.
#[pyfunction]
pub fn cache_sizes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    for (name, bytes) in sizes(py) {
        found.set_item(name, bytes)?;
    }
    Ok(found)
}

/// Return how many bytes the caches of this process may take together.
#[pyfunction]
pub fn cache_limit_bytes() -> usize {
    cache::limit_bytes()
}

/// Empty every cache of this process and return how many bytes they took.
#[pyfunction]
pub fn clear_caches(py: Python<'_>) -> usize {
    let bytes = sizes(py).map(|(_, bytes)| bytes).sum();
    detached_whole(py, || {
        for (_, cache) in compress::caches() {
            cache.clear();
        }
    });
    for (_, _, clear) in OF_BINDING {
        clear(py);
    }
    bytes
}

/// Set how many megabytes the caches of this process may take together; one that has more than its share is emptied.
///
/// Raises:
///     InvalidArgumentError: `megabytes` is no number of them.
#[pyfunction]
pub fn set_cache_limit(py: Python<'_>, megabytes: &Bound<'_, PyAny>) -> PyResult<()> {
    let megabytes = whole(megabytes, "megabytes")?;
    detached_whole(py, || {
        cache::set_limit_mb(usize::try_from(megabytes).unwrap_or(usize::MAX));
        for (share, cache) in compress::caches() {
            if cache.bytes() > share.max_bytes() {
                cache.clear();
            }
        }
    });
    for (share, bytes, clear) in OF_BINDING {
        if bytes(py) > share.max_bytes() {
            clear(py);
        }
    }
    Ok(())
}
