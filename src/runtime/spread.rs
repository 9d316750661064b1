//! Spreads threads over parts of what they would otherwise share, so that they do not contend.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many parts there are; more threads than these share some.
pub(crate) const PARTS: usize = 64;

const UNKNOWN: usize = usize::MAX;

thread_local! {
    static PART: Cell<usize> = const { Cell::new(UNKNOWN) };
}

/// The calling thread's part.
#[inline]
pub(crate) fn part() -> usize {
    match PART.get() {
        UNKNOWN => assign(),
        part => part,
    }
}

#[cold]
fn assign() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let part = NEXT.fetch_add(1, Ordering::Relaxed) % PARTS;
    PART.set(part);
    part
}
