//! The commands of one batch: around each, a pair of timestamps, read once the batch has passed.

use std::sync::Arc;

use super::kept::{Command, DeviceTime, Event, What};
use super::{Label, host};
use crate::Result;
use crate::hal::{CommandBuffer, Timestamps};
use crate::runtime::device::Device;
use crate::runtime::stream::Recording;
use crate::runtime::timeline::TimelineId;

/// Pairs in one set of the HAL; the whole set is reset at once.
const PAIRS: u32 = 64;
/// Slots of a set.
pub(super) const SLOTS: u32 = 2 * PAIRS;

/// A batch that is recorded or in flight.
pub(crate) struct BatchTrace {
    track: TimelineId,
    queue: usize,
    sets: Vec<Arc<dyn Timestamps>>,
    pairs_used: u32,
    commands: Vec<Traced>,
    submitted: u64,
    refused: bool,
}

struct Traced {
    session: u32,
    what: What,
    thread: u32,
    recorded: u64,
    recorded_until: u64,
    /// The set and the slot of the first of its timestamps.
    slots: Option<(usize, u32)>,
}

impl BatchTrace {
    /// A batch of the stream with the timeline `track`, for the compute queue with that index.
    pub(crate) fn new(track: TimelineId, queue: usize) -> Box<Self> {
        Box::new(Self {
            track,
            queue,
            sets: Vec::new(),
            pairs_used: 0,
            commands: Vec::new(),
            submitted: 0,
            refused: false,
        })
    }

    /// Records a command between two timestamps. A device that has none, or no more, leaves the
    /// command without.
    pub(crate) fn record<R>(
        &mut self,
        device: &Device,
        session: u32,
        label: Label<'_>,
        recording: &mut Recording<'_>,
        command: impl FnOnce(&mut Recording<'_>) -> Result<R>,
    ) -> Result<R> {
        let what = match label {
            Label::Kernel(name) => What::Kernel(name.clone()),
            Label::Copy(direction, bytes) => What::Copy(direction, bytes),
            Label::Hidden => return command(recording),
        };
        let recorded = host::now();
        let slots = self.begin(device, &mut *recording.commands);
        // What a command that failed has recorded is unknown: it is left out.
        let result = command(recording)?;
        let slots = slots.filter(|&(set, first)| {
            let set = self.sets.get(set);
            set.is_some_and(|set| recording.commands.write_timestamp(set, first + 1).is_ok())
        });
        let recorded_until = host::now();
        let thread = host::thread();
        self.commands.push(Traced { session, what, thread, recorded, recorded_until, slots });
        Ok(result)
    }

    /// The batch is being handed to the device.
    pub(crate) fn submit(&mut self) {
        self.submitted = host::now();
    }

    /// The device did not take it: what its slots hold is of their former use.
    pub(crate) fn refuse(&mut self) {
        self.refused = true;
    }

    /// Writes the first timestamp of the next pair.
    fn begin(&mut self, device: &Device, commands: &mut dyn CommandBuffer) -> Option<(usize, u32)> {
        if device.properties().fallbacks.no_timestamps {
            return None;
        }
        let first = 2 * (self.pairs_used % PAIRS);
        if first == 0 {
            let set = device.profiler().take_set(device).ok()?;
            commands.reset_timestamps(&set, 0..SLOTS).ok()?;
            self.sets.push(set);
        }
        let set = self.sets.last()?;
        commands.write_timestamp(set, first).ok()?;
        self.pairs_used += 1;
        Some((self.sets.len() - 1, first))
    }

    /// The commands of a batch that has passed, each with the profile that it belongs to.
    pub(super) fn passed(&mut self) -> Vec<(u32, Event)> {
        let refused = self.refused;
        self.finish(|set, first| if refused { DeviceTime::Refused } else { read(set, first) })
    }

    /// The commands of a batch that will not pass any more.
    pub(super) fn unfinished(&mut self) -> Vec<(u32, Event)> {
        self.finish(|_, _| DeviceTime::Unfinished)
    }

    /// The sets that it used, to be used again once it has passed.
    pub(super) fn into_sets(self) -> Vec<Arc<dyn Timestamps>> {
        self.sets
    }

    fn finish(&mut self, time: impl Fn(&dyn Timestamps, u32) -> DeviceTime) -> Vec<(u32, Event)> {
        let sets = &self.sets;
        let (track, queue, submitted) = (self.track, self.queue, self.submitted);
        let finish_one = |traced: Traced| {
            let set = traced.slots.and_then(|(set, first)| Some((sets.get(set)?, first)));
            let time = set.map_or(DeviceTime::Unmeasured, |(set, first)| time(set.as_ref(), first));
            let command = Command {
                number: 0,
                what: traced.what,
                track,
                queue,
                thread: traced.thread,
                recorded: traced.recorded,
                recorded_until: traced.recorded_until,
                submitted,
                time,
            };
            (traced.session, Event::Command(command))
        };
        self.commands.drain(..).map(finish_one).collect()
    }
}

fn read(set: &dyn Timestamps, first: u32) -> DeviceTime {
    let mut ticks = [0; 2];
    match set.read(first, &mut ticks) {
        Ok(()) => DeviceTime::Ticks(ticks),
        Err(_) => DeviceTime::Unmeasured,
    }
}
