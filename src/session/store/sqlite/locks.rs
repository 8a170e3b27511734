//! Makes locks hold, and checks whether the file is still the opened one.
//!
//! SQLite locks with `fcntl`, and such locks are the process's: when *any* descriptor of the file is closed in it, by another
//! copy of SQLite such as Python's `sqlite3`, all of them are gone, in the middle of a transaction too, and two processes
//! write at once. On Linux a lock can be the open file's instead (`F_OFD_SETLK`, since 3.15); SQLite lets its system calls
//! be replaced. Both kinds exclude each other, so other programs read and write the file as before.

use std::path::{Path, PathBuf};

/// Makes the locks of all files opened from now on independent of other descriptors of these files. Costs nothing later.
///
/// Elsewhere than on Linux nothing changes: Windows has no such problem, and other Unixes have no such locks.
pub fn outlive_other_descriptors() {
    #[cfg(target_os = "linux")]
    linux::replace_fcntl();
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // a table of function pointers in C, and a function for it
mod linux {
    use std::ffi::c_int;
    use std::sync::Once;

    use libc::flock;
    use rusqlite::ffi;

    static ONCE: Once = Once::new();

    pub fn replace_fcntl() {
        ONCE.call_once(|| {
            // Sandboxes that emulate Linux may lack them. Any file tells, and not one that others have locks on.
            let Ok(file) = std::fs::File::open("/dev/null") else { return };
            // SAFETY: zeros are a valid `flock`.
            let mut probe: flock = unsafe { std::mem::zeroed() };
            probe.l_type = i16::try_from(libc::F_RDLCK).unwrap_or_default();
            // SAFETY: the descriptor is open, and `probe` lives for the call.
            let has_them =
                unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), libc::F_OFD_GETLK, &raw mut probe) } == 0;
            if !has_them {
                return;
            }
            // SAFETY: SQLite casts the pointer back to `int (*)(int, int, ...)` and passes an `int` or a pointer as the third
            // argument. On Linux the first integer arguments of a variadic call are where those of any call are. All file
            // systems of SQLite share one table, and no file has been opened yet: whoever opens one calls this first.
            unsafe {
                let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
                if let Some(set) = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall) {
                    let function: unsafe extern "C" fn(c_int, c_int, *mut flock) -> c_int = fcntl;
                    let function = std::mem::transmute::<
                        unsafe extern "C" fn(c_int, c_int, *mut flock) -> c_int,
                        unsafe extern "C" fn(),
                    >(function);
                    set(vfs, c"fcntl".as_ptr(), Some(function));
                }
            }
        });
    }

    /// `fcntl`, with locks of the open file in place of the process's.
    unsafe extern "C" fn fcntl(file: c_int, operation: c_int, argument: *mut flock) -> c_int {
        let operation = match operation {
            libc::F_GETLK => libc::F_OFD_GETLK,
            libc::F_SETLK => libc::F_OFD_SETLK,
            libc::F_SETLKW => libc::F_OFD_SETLKW,
            // SAFETY: handed on as it came.
            other => return unsafe { libc::fcntl(file, other, argument) },
        };
        // SAFETY: with these operations SQLite passes a `flock` of its own stack.
        unsafe {
            // SQLite leaves it as it was; Linux wants a zero.
            (*argument).l_pid = 0;
            libc::fcntl(file, operation, argument)
        }
    }
}

/// Identities of the files of a path when it was opened: the database, its log and the log's index.
///
/// If one of them is deleted or replaced while it is open, by hand or to restore a backup, this process would write where
/// nobody looks.
#[derive(Debug)]
pub struct Identity {
    files: [(PathBuf, Option<(u64, u64)>); 3],
}

impl Identity {
    /// Returns what is at `path` now.
    pub fn of(path: &Path) -> Self {
        let paths = [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")];
        Self { files: paths.map(|path| (path.clone(), number(&path))) }
    }

    /// Returns whether it is there still. Some two microseconds.
    pub fn is_still(&self) -> bool {
        self.files.iter().all(|(path, known)| number(path) == *known)
    }
}

/// Returns the path of a file that SQLite keeps beside a database: beside the file that a link names.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let named = || path.read_link().map(|link| path.with_file_name("").join(link));
    let mut name = path.canonicalize().or_else(|_| named()).unwrap_or_else(|_| path.to_owned()).into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the device and the number of a file; `None` for one that is not there.
#[cfg(unix)]
fn number(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|data| (data.dev(), data.ino()))
}

/// An open file is neither deleted nor replaced on Windows.
#[cfg(not(unix))]
fn number(_: &Path) -> Option<(u64, u64)> {
    None
}
