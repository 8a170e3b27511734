//! Places in long work where it can be stopped, and where a fork finds no lock held.
//!
//! Who runs the work says how it looks for a reason to stop; the work itself only marks the ends of its pieces. A child
//! process has only the thread that forked: a lock that another thread held stays held there for ever. So a fork waits
//! until all work is at such a place.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks for a reason to stop: a look can take 5 ms where Python threads are busy.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Ends of pieces between two looks at the clock, since some pieces take less time than such a look.
const PIECES: u32 = 16;

static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// Threads that are about to fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static WORK: Cell<Option<Work>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct Work {
    must_stop: fn() -> bool,
    looked: Instant,
    pieces: u32,
}

/// What unwinds the stack of work that must stop.
struct Stopped;

/// Counts a thread as running while it lives.
struct Running;

impl Running {
    fn begin() -> Self {
        loop {
            RUNNING.fetch_add(1, SeqCst);
            if FORKING.load(SeqCst) == 0 {
                return Self;
            }
            RUNNING.fetch_sub(1, SeqCst);
            while FORKING.load(SeqCst) > 0 {
                thread::yield_now();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, SeqCst);
    }
}

/// Counts a thread as not running while it lives: what looks for a reason to stop may fork, or another thread waits to.
struct Away;

impl Away {
    fn begin() -> Self {
        RUNNING.fetch_sub(1, SeqCst);
        Self
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        std::mem::forget(Running::begin());
    }
}

/// Runs `work`; `None` where `must_stop`, asked now and then at the ends of its pieces, returned true.
///
/// `must_stop` may run any code, and this function again.
pub fn run<T>(must_stop: fn() -> bool, work: impl FnOnce() -> T) -> Option<T> {
    let outer = WORK.replace(Some(Work { must_stop, looked: Instant::now(), pieces: 0 }));
    let done = catch_unwind(AssertUnwindSafe(|| {
        let _running = Running::begin();
        work()
    }));
    WORK.set(outer);
    match done {
        Ok(done) => Some(done),
        Err(payload) if payload.is::<Stopped>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Marks the end of a piece. No lock may be held, and nothing be half-changed that outlives the work.
pub fn reached() {
    let Some(mut work) = WORK.get() else { return };
    work.pieces += 1;
    if work.pieces < PIECES && FORKING.load(SeqCst) == 0 {
        WORK.set(Some(work));
        return;
    }
    work.pieces = 0;
    let must_look = work.looked.elapsed() >= LOOK_EVERY;
    let mut must_stop = false;
    if must_look || FORKING.load(SeqCst) > 0 {
        WORK.set(None);
        let _away = Away::begin();
        if must_look {
            must_stop = (work.must_stop)();
            work.looked = Instant::now();
        }
    }
    WORK.set(Some(work));
    if must_stop {
        resume_unwind(Box::new(Stopped));
    }
}

/// Waits until no work is running, and lets none go on until [`after_fork`].
///
/// Never waits for another thread that forks: both have Python's lock, one after the other.
pub fn before_fork() {
    FORKING.fetch_add(1, SeqCst);
    while RUNNING.load(SeqCst) > 0 {
        thread::sleep(Duration::from_micros(50));
    }
}

/// Lets work go on in the parent.
pub fn after_fork() {
    FORKING.fetch_sub(1, SeqCst);
}

/// Lets work go on in the child, which no other thread of the parent came along to: not those that were about to begin.
pub fn after_fork_in_child() {
    RUNNING.store(0, SeqCst);
    FORKING.store(0, SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// They share the state of the process.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn pieces(number: usize) -> usize {
        for _ in 0..number {
            thread::sleep(Duration::from_millis(1));
            reached();
        }
        number
    }

    #[test]
    fn work_that_must_stop_ends_at_a_piece() {
        let _one = ONE_AT_A_TIME.lock();
        assert_eq!(run(|| false, || pieces(200)), Some(200));
        let done = Cell::new(0);
        let endless = || {
            loop {
                done.set(done.get() + pieces(1));
            }
        };
        assert_eq!(run::<()>(|| true, endless), None);
        assert!(done.get() > 0);
        assert_eq!(RUNNING.load(SeqCst), 0);
    }

    #[test]
    fn a_panic_of_the_work_comes_through() {
        let _one = ONE_AT_A_TIME.lock();
        let caught = catch_unwind(|| run(|| false, || resume_unwind(Box::new("broken"))));
        assert_eq!(
            caught.map_err(|payload| payload.downcast_ref::<&str>().copied()),
            Err::<Option<()>, _>(Some("broken"))
        );
        assert_eq!(RUNNING.load(SeqCst), 0);
    }

    #[test]
    fn a_fork_waits_for_the_end_of_a_piece_and_work_waits_for_the_fork() {
        let _one = ONE_AT_A_TIME.lock();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                run(|| false, || pieces(300));
                is_done.store(true, SeqCst);
            });
            while RUNNING.load(SeqCst) == 0 {
                thread::yield_now();
            }
            before_fork();
            assert_eq!(RUNNING.load(SeqCst), 0);
            assert!(!is_done.load(SeqCst));
            after_fork();
        });
        assert!(is_done.load(SeqCst));
    }

    #[test]
    fn a_child_forgets_the_threads_that_were_about_to_begin() {
        let _one = ONE_AT_A_TIME.lock();
        before_fork();
        RUNNING.fetch_add(1, SeqCst);
        after_fork_in_child();
        before_fork();
        after_fork();
    }

    #[test]
    fn what_looks_for_a_reason_may_fork_and_work_itself() {
        fn forks() -> bool {
            before_fork();
            after_fork();
            run(|| false, || pieces(1)).is_none()
        }
        let _one = ONE_AT_A_TIME.lock();
        assert_eq!(run(forks, || pieces(250)), Some(250));
    }
}
