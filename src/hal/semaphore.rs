//! Timeline semaphores: counters that only grow, signalled and awaited by device and host.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// When a wait gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// At once: a wait is a query.
    Now,
    /// At this moment.
    At(Instant),
    /// Never.
    Never,
}

impl Deadline {
    /// `timeout` from now; one too long for the clock is never.
    pub fn after(timeout: Duration) -> Self {
        Instant::now().checked_add(timeout).map_or(Self::Never, Self::At)
    }

    /// What is left: `None` without a deadline, zero once it is past.
    pub fn remaining(self) -> Option<Duration> {
        match self {
            Self::Now => Some(Duration::ZERO),
            Self::At(moment) => Some(moment.saturating_duration_since(Instant::now())),
            Self::Never => None,
        }
    }
}

/// A timeline semaphore.
pub trait Semaphore: Send + Sync + 'static {
    /// The value reached so far; fails with the root error if the semaphore was failed.
    fn query(&self) -> Result<u64>;
    /// Advances the value from the host; it must be greater than the present one.
    fn signal(&self, value: u64) -> Result<()>;
    /// Fails the semaphore: present and later queries and waits return `error`.
    fn fail(&self, error: Error);
    /// Waits until the value is reached. A value already reached succeeds even when the deadline is
    /// past; otherwise `DeadlineExceeded`. The host sleeps, it does not spin.
    fn wait(&self, value: u64, deadline: Deadline) -> Result<()>;
    /// For the driver to find its own type again.
    fn as_any(&self) -> &dyn Any;
}

/// A value on a semaphore's timeline.
#[derive(Clone)]
pub struct SemaphorePoint {
    /// The timeline.
    pub semaphore: Arc<dyn Semaphore>,
    /// The value.
    pub value: u64,
}
