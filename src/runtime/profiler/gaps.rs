//! A stream's work in the order of its time, and the gaps in it: how long the device had nothing to
//! do for the stream, and whom it waited for.

use serde::Serialize;

use super::kept::{Command, DeviceTime, Kept};

/// A command and when it ran, in nanoseconds of the host's time.
pub(super) struct Ran<'a> {
    pub(super) command: &'a Command,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The gap before it, unless it is the stream's first.
    pub(super) gap: Option<Gap>,
}

/// The time between two commands of a stream, divided by what the later one was waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) start: u64,
    /// The host had not recorded it.
    pub(super) unrecorded: u64,
    /// It was recorded, and not submitted.
    pub(super) unsubmitted: u64,
    /// It was submitted: the device's own time between commands, and waits for other streams.
    pub(super) submitted: u64,
}

/// Sums over a stream, in nanoseconds.
#[derive(Default, Serialize)]
pub(super) struct Summary {
    pub(super) stream: u32,
    commands: u64,
    kernels: u64,
    busy_ns: u64,
    idle_ns: u64,
    idle_until_recorded_ns: u64,
    idle_until_submitted_ns: u64,
    idle_after_submission_ns: u64,
}

/// The commands of the stream `track` that the device has timed.
pub(super) fn of_stream(kept: &Kept, track: u32) -> Vec<Ran<'_>> {
    let mut ran: Vec<Ran<'_>> = kept
        .commands()
        .filter(|command| command.track == track)
        .filter_map(|command| {
            let DeviceTime::Ticks([start, end]) = command.time else { return None };
            let clock = kept.clocks.get(command.queue)?;
            let start = clock.host_time(start, command.submitted)?;
            let end = clock.host_time(end, command.submitted)?;
            Some(Ran { command, start, end, gap: None })
        })
        .collect();
    ran.sort_by_key(|ran| ran.start);
    let mut done = None;
    for ran in &mut ran {
        // Slices of one track may not overlap, and a rounded tick may.
        if let Some(done) = done {
            ran.start = ran.start.max(done);
            ran.gap = Some(gap(done, ran.start, ran.command));
        }
        ran.end = ran.end.max(ran.start);
        done = Some(ran.end);
    }
    ran
}

fn gap(start: u64, end: u64, next: &Command) -> Gap {
    let recorded = next.recorded_until.clamp(start, end);
    let submitted = next.submitted.clamp(recorded, end);
    Gap {
        start,
        unrecorded: recorded - start,
        unsubmitted: submitted - recorded,
        submitted: end - submitted,
    }
}

impl Gap {
    pub(super) fn length(&self) -> u64 {
        self.unrecorded + self.unsubmitted + self.submitted
    }

    /// What took the most of it.
    pub(super) fn name(&self) -> &'static str {
        let most = self.unrecorded.max(self.unsubmitted).max(self.submitted);
        if most == self.unrecorded {
            "idle: nothing recorded"
        } else if most == self.unsubmitted {
            "idle: not submitted"
        } else {
            "idle: between commands"
        }
    }
}

impl Summary {
    pub(super) fn new(stream: u32, ran: &[Ran<'_>]) -> Self {
        let mut sums = Self { stream, commands: ran.len() as u64, ..Self::default() };
        for ran in ran {
            sums.kernels += u64::from(ran.command.is_kernel());
            sums.busy_ns += ran.end - ran.start;
            let Some(gap) = &ran.gap else { continue };
            sums.idle_ns += gap.length();
            sums.idle_until_recorded_ns += gap.unrecorded;
            sums.idle_until_submitted_ns += gap.unsubmitted;
            sums.idle_after_submission_ns += gap.submitted;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::profiler::Direction;
    use crate::runtime::profiler::kept::What;

    fn command(recorded_until: u64, submitted: u64) -> Command {
        Command {
            number: 0,
            what: What::Copy(Direction::OnDevice, 4),
            track: 0,
            queue: 0,
            thread: 1,
            recorded: 0,
            recorded_until,
            submitted,
            time: DeviceTime::Unmeasured,
        }
    }

    #[test]
    fn a_gap_is_divided_by_what_was_missing() {
        let parts = |recorded, submitted| {
            let gap = gap(100, 200, &command(recorded, submitted));
            assert_eq!(gap.length(), 100);
            (gap.unrecorded, gap.unsubmitted, gap.submitted, gap.name())
        };
        assert_eq!(parts(50, 60), (0, 0, 100, "idle: between commands"));
        assert_eq!(parts(160, 180), (60, 20, 20, "idle: nothing recorded"));
        assert_eq!(parts(50, 180), (0, 80, 20, "idle: not submitted"));
        // The clocks do not agree to the nanosecond.
        assert_eq!(parts(250, 260), (100, 0, 0, "idle: nothing recorded"));
    }
}
