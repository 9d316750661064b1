//! The host's side of a profile: its time, its threads, and what they do.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Instant;

use super::kept::Event;
use super::{HostWork, Profiler};

/// Nanoseconds since the process first asked; the same for all devices.
pub(super) fn now() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let elapsed = ORIGIN.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// The kernel's number of the calling thread.
pub(super) fn thread() -> u32 {
    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        // SAFETY: `gettid` has no preconditions.
        let number = unsafe { libc::gettid() };
        NUMBER.set(number.unsigned_abs());
    }
    NUMBER.get()
}

/// A thread's name, if it still exists.
pub(super) fn thread_name(thread: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
    name.map_or_else(|_| format!("thread {thread}"), |name| name.trim_end().to_owned())
}

/// Work of a thread, over a stretch of the host's time.
pub(super) struct HostSpan {
    pub(super) work: HostWork,
    pub(super) thread: u32,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Work that is under way. Dropped when it ends, on the same thread.
pub(crate) struct Span<'a> {
    profiler: &'a Profiler,
    session: u32,
    work: HostWork,
    start: u64,
}

impl<'a> Span<'a> {
    pub(super) fn begin(profiler: &'a Profiler, session: u32, work: HostWork) -> Self {
        Self { profiler, session, work, start: now() }
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        let (work, start) = (self.work, self.start);
        let span = HostSpan { work, thread: thread(), start, end: now() };
        self.profiler.keep([(self.session, Event::Host(span))]);
    }
}
