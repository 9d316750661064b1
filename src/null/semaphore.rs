//! Semaphores: a value, a failure, and a condition to sleep on.

use std::any::Any;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::timeline::Timeline;
use crate::hal::{self, Deadline};
use crate::{Error, Result};

/// A timeline semaphore.
pub struct Semaphore {
    id: u64,
    state: Mutex<State>,
    changed: Condvar,
    timeline: Arc<Timeline>,
}

struct State {
    value: u64,
    failure: Option<Error>,
}

impl Semaphore {
    /// The semaphore's number in order of creation, from 1, as the log names it.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn new(timeline: &Arc<Timeline>, id: u64, initial: u64) -> Arc<Self> {
        let state = Mutex::new(State { value: initial, failure: None });
        let semaphore =
            Arc::new(Self { id, state, changed: Condvar::new(), timeline: timeline.clone() });
        timeline.watch(&semaphore);
        semaphore
    }

    pub(super) fn of(semaphore: &dyn hal::Semaphore) -> Result<&Self> {
        semaphore.as_any().downcast_ref().ok_or_else(|| {
            Error::invalid("a semaphore of another driver was given to the null driver")
        })
    }

    /// Checks a value that a submission is to signal.
    pub(super) fn signallable(&self, value: u64) -> Result<()> {
        let reached = self.state.lock().value;
        if value <= reached { Err(only_grows(value, reached)) } else { Ok(()) }
    }

    /// Whether the device has reached the value, a failure or not.
    pub(super) fn has_reached(&self, value: u64) -> bool {
        self.state.lock().value >= value
    }

    /// Raises the value as the device does: lower values than the present one change nothing.
    pub(super) fn advance(&self, value: u64) {
        let mut state = self.state.lock();
        state.value = state.value.max(value);
        self.changed.notify_all();
    }

    /// Fails the semaphore, unless it has failed before: the first error is the root.
    pub(super) fn set_failure(&self, error: Error) {
        self.state.lock().failure.get_or_insert(error);
        self.changed.notify_all();
    }
}

impl hal::Semaphore for Semaphore {
    fn query(&self) -> Result<u64> {
        let state = self.state.lock();
        state.failure.clone().map_or(Ok(state.value), Err)
    }

    fn signal(&self, value: u64) -> Result<()> {
        self.timeline.health()?;
        {
            let mut state = self.state.lock();
            if let Some(error) = &state.failure {
                return Err(error.clone());
            }
            if value <= state.value {
                return Err(only_grows(value, state.value));
            }
            state.value = value;
            self.changed.notify_all();
        }
        self.timeline.advance_automatically();
        Ok(())
    }

    fn fail(&self, error: Error) {
        self.set_failure(error);
        self.timeline.advance_automatically();
    }

    fn wait(&self, value: u64, deadline: Deadline) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if let Some(error) = &state.failure {
                return Err(error.clone());
            }
            if state.value >= value {
                return Ok(());
            }
            let late = match deadline {
                Deadline::Now => true,
                Deadline::At(moment) => self.changed.wait_until(&mut state, moment).timed_out(),
                Deadline::Never => {
                    self.changed.wait(&mut state);
                    false
                }
            };
            if late && state.value < value && state.failure.is_none() {
                return Err(Error::deadline(format!(
                    "the semaphore is at {}, {value} was awaited",
                    state.value
                )));
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn only_grows(value: u64, reached: u64) -> Error {
    Error::invalid(format!(
        "semaphore signalled to {value}, but it has reached {reached}; values only grow"
    ))
}
