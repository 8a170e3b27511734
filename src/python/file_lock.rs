//! A lock on a file that processes take one after the other.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// A lock that is held until it is released, or until its process ends.
#[pyclass(frozen, module = "nanobot_context._core")]
pub struct FileLock {
    file: Mutex<Option<File>>,
}

#[pymethods]
impl FileLock {
    /// Let the next one have it.
    fn release(&self) {
        if let Some(file) = self.file.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Said, and not only closed: a process that was forked meanwhile has the file open, too.
            let _ = file.unlock();
        }
    }
}

/// Lock a file, which is made where there is none, for its owner alone; `None` where others have it all the while.
///
/// Where the file system knows no locks nothing is held. Lets other threads run while it waits. A file that cannot be
/// opened is an `OSError`.
#[pyfunction]
pub fn lock_file(py: Python<'_>, path: PathBuf, timeout_seconds: f64) -> PyResult<Option<FileLock>> {
    let timeout = Duration::try_from_secs_f64(timeout_seconds).unwrap_or_default();
    let file = py.detach(move || locked(&path, timeout))?;
    Ok(file.map(|file| FileLock { file: Mutex::new(Some(file)) }))
}

fn locked(path: &Path, timeout: Duration) -> std::io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) if timeout.is_zero() => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return Ok(Some(file)),
    }
    // The system hands it on in the order in which it was asked for, which asking again and again does not, and has no
    // time limit of its own. A thread that got it too late finds nobody to take it, and closes the file.
    let (give, take) = mpsc::channel();
    thread::Builder::new().name("file lock".to_owned()).spawn(move || {
        let _ = file.lock();
        let _ = give.send(file);
    })?;
    Ok(take.recv_timeout(timeout).ok())
}
