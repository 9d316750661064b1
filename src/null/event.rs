//! Events: only their numbers, for the log.

use std::any::Any;

use crate::hal;

/// An event.
pub struct Event {
    pub(super) id: u64,
}

impl Event {
    /// The event's number in order of creation, from 1, as commands in the log name it.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl hal::Event for Event {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
