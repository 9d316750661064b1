//! What a profile keeps: the latest events, up to a limit, and how the clocks compare.

use std::collections::VecDeque;
use std::sync::Arc;

use super::clock::{Clock, Reading};
use super::host::{self, HostSpan};
use super::label::Direction;
use crate::runtime::timeline::TimelineId;
use crate::{Error, Result};

/// One event.
pub(super) enum Event {
    Command(Command),
    Host(HostSpan),
}

/// A command of the device. Times are the host's, in nanoseconds, unless they are ticks.
pub(super) struct Command {
    /// Tells it apart from others; set when it is kept.
    pub(super) number: u64,
    pub(super) what: What,
    pub(super) track: TimelineId,
    /// The index of its compute queue.
    pub(super) queue: usize,
    /// Who recorded it.
    pub(super) thread: u32,
    pub(super) recorded: u64,
    pub(super) recorded_until: u64,
    pub(super) submitted: u64,
    pub(super) time: DeviceTime,
}

pub(super) enum What {
    Kernel(Arc<str>),
    Copy(Direction, u64),
}

/// When the device ran a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceTime {
    /// From and to these ticks of its queue's clock.
    Ticks([u64; 2]),
    /// It ran, with no timestamps that could be had.
    Unmeasured,
    /// Its submission failed.
    Refused,
    /// The device was lost before it was seen to end.
    Unfinished,
}

#[derive(Default)]
enum State {
    #[default]
    Never,
    Running,
    Ended,
}

/// The events of the profile that was started last.
#[derive(Default)]
pub(super) struct Kept {
    session: u32,
    state: State,
    most: usize,
    pub(super) events: VecDeque<Event>,
    /// Events beyond the limit, which were older than those kept.
    pub(super) dropped: u64,
    /// One for each compute queue.
    pub(super) clocks: Vec<Clock>,
    pub(super) started: u64,
    pub(super) ended: u64,
}

impl Kept {
    /// Forgets everything; the number of the profile that begins.
    pub(super) fn begin(&mut self, most: usize, clocks: Vec<Clock>) -> u32 {
        let session = self.session.checked_add(1).unwrap_or(1);
        let (state, started) = (State::Running, host::now());
        *self = Self { session, state, most, clocks, started, ..Self::default() };
        session
    }

    /// Nothing is added any more.
    pub(super) fn end(&mut self, ends: Vec<Option<Reading>>) {
        self.state = State::Ended;
        self.ended = host::now();
        for (clock, end) in self.clocks.iter_mut().zip(ends) {
            clock.end = end;
        }
    }

    /// Adds an event of a profile, if it is the one that runs.
    pub(super) fn push(&mut self, session: u32, mut event: Event) {
        if session != self.session || !matches!(self.state, State::Running) {
            return;
        }
        if self.events.len() >= self.most {
            self.dropped += 1;
            if self.events.pop_front().is_none() {
                return;
            }
        }
        if let Event::Command(command) = &mut event {
            command.number = self.dropped + self.events.len() as u64;
        }
        self.events.push_back(event);
    }

    /// Fails unless a profile was started and stopped.
    pub(super) fn check_ended(&self, device: i32) -> Result<()> {
        Err(Error::precondition(match self.state {
            State::Ended => return Ok(()),
            State::Never => format!("device {device} was not profiled; start and stop a profile"),
            State::Running => {
                format!("device {device} is still profiled; stop the profile before it is saved")
            }
        }))
    }

    pub(super) fn commands(&self) -> impl Iterator<Item = &Command> {
        self.events.iter().filter_map(|event| match event {
            Event::Command(command) => Some(command),
            Event::Host(_) => None,
        })
    }
}
