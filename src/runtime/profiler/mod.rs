//! Profiles: when a device ran what, and what the threads that use it did meanwhile. Off until it is
//! started; then every command of a launch or copy gets two timestamps of the device, and the
//! host's work around it is timed. What is kept becomes a trace ([`trace`]) once it is stopped.
//!
//! Off, a command costs one relaxed load. Everything below that load may allocate and lock.

mod batch;
mod clock;
mod gaps;
mod host;
mod kept;
mod label;
mod trace;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::device::Device;
use super::timeline::Point;
use crate::hal::{Deadline, Timestamps};
use crate::{Error, Result};

pub(crate) use batch::BatchTrace;
use clock::Clock;
pub(crate) use host::Span;
use kept::{Event, Kept};
pub(crate) use label::{Direction, HostWork, Label};

/// Events that a profile keeps where its starter does not say: some 30 MB of memory, and 100 of a
/// trace.
pub const MOST_EVENTS: usize = 1 << 18;

/// A device's profile.
#[derive(Default)]
pub(crate) struct Profiler {
    /// The number of the profile that runs; 0 while none does.
    session: AtomicU32,
    kept: Mutex<Kept>,
    /// Sets of slots that no batch uses.
    spare: Mutex<Vec<Arc<dyn Timestamps>>>,
    /// Batches of streams that were dropped before the device was done with them.
    orphans: Mutex<Vec<(Point, BatchTrace)>>,
    /// Held by whoever starts or stops.
    changing: Mutex<()>,
}

impl Profiler {
    /// The number of the profile that runs, if one does.
    pub(crate) fn session(&self) -> Option<u32> {
        match self.session.load(Ordering::Relaxed) {
            0 => None,
            session => Some(session),
        }
    }

    /// Times what the calling thread does until the span is dropped, if a profile runs.
    pub(crate) fn span(&self, work: HostWork) -> Option<Span<'_>> {
        self.session().map(|session| Span::begin(self, session, work))
    }

    fn turn_off(&self, device: i32) -> Result<()> {
        if self.session.swap(0, Ordering::Relaxed) == 0 {
            return Err(Error::precondition(format!(
                "device {device} is not profiled; start a profile before it is stopped"
            )));
        }
        Ok(())
    }

    /// Keeps the commands of a batch that has passed.
    pub(crate) fn harvest(&self, mut batch: BatchTrace) {
        let events = batch.passed();
        self.keep(events);
        self.spare.lock().extend(batch.into_sets());
    }

    /// Keeps the commands of a batch that will not pass any more.
    pub(crate) fn give_up(&self, mut batch: BatchTrace) {
        self.keep(batch.unfinished());
    }

    /// Takes over a batch of a dropped stream, which has passed at `point`.
    pub(crate) fn adopt(&self, device: &Device, point: Point, batch: BatchTrace) {
        self.orphans.lock().push((point, batch));
        self.harvest_orphans(device);
    }

    fn harvest_orphans(&self, device: &Device) {
        let passed: Vec<_> = self
            .orphans
            .lock()
            .extract_if(.., |(point, _)| device.timelines().has_passed(*point))
            .collect();
        passed.into_iter().for_each(|(_, batch)| self.harvest(batch));
    }

    fn finish_orphans(&self, device: &Device) {
        let left = std::mem::take(&mut *self.orphans.lock());
        for (point, batch) in left {
            match device.wait(point, Deadline::Never) {
                Ok(()) => self.harvest(batch),
                Err(_) => self.give_up(batch),
            }
        }
    }

    /// Keeps events, each with the number of its profile.
    fn keep(&self, events: impl IntoIterator<Item = (u32, Event)>) {
        let mut kept = self.kept.lock();
        events.into_iter().for_each(|(session, event)| kept.push(session, event));
    }

    /// A set of slots that no batch uses.
    fn take_set(&self, device: &Device) -> Result<Arc<dyn Timestamps>> {
        let spare = self.spare.lock().pop();
        spare.map_or_else(|| device.hal().create_timestamps(batch::SLOTS), Ok)
    }
}

impl Device {
    /// Starts a profile that keeps the latest `most_events` events. A former one is forgotten; one
    /// that runs starts anew. Waits for the work that the device's queues have, to compare its clock
    /// with the host's.
    pub fn start_profile(&self, most_events: usize) -> Result<()> {
        self.check_health()?;
        let profiler = self.profiler();
        let _changing = profiler.changing.lock();
        profiler.session.store(0, Ordering::Relaxed);
        let clocks = self
            .compute_queues()
            .iter()
            .map(|queue| Clock::start(self, queue))
            .collect::<Result<_>>()?;
        let session = profiler.kept.lock().begin(most_events, clocks);
        profiler.session.store(session, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a profile runs.
    pub fn is_profiled(&self) -> bool {
        self.profiler().session().is_some()
    }

    /// Ends the profile that runs, once the work that was recorded so far is done. Of a device that
    /// is lost, it keeps what it has.
    pub fn stop_profile(&self) -> Result<()> {
        let profiler = self.profiler();
        let _changing = profiler.changing.lock();
        profiler.turn_off(self.id())?;
        self.live_streams().iter().for_each(|stream| stream.finish_profile());
        profiler.finish_orphans(self);
        let ends: Vec<_> = self
            .compute_queues()
            .iter()
            .map(|queue| clock::read(self, queue).ok().flatten())
            .collect();
        profiler.kept.lock().end(ends);
        profiler.spare.lock().clear();
        Ok(())
    }

    /// Ends the profile that runs with what it has.
    pub(crate) fn cut_profile(&self) -> Result<()> {
        let profiler = self.profiler();
        let _changing = profiler.changing.lock();
        profiler.turn_off(self.id())?;
        profiler.kept.lock().end(Vec::new());
        Ok(())
    }

    /// The profile that was stopped last, as JSON in the Trace Event Format. It is kept until
    /// another is started.
    pub fn profile_trace(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_profile(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes [`Self::profile_trace`] to a file.
    pub fn save_profile(&self, path: &Path) -> Result<()> {
        let profiler = self.profiler();
        profiler.kept.lock().check_ended(self.id())?;
        let file = std::fs::File::create(path).map_err(|error| cannot_write(path, &error))?;
        let mut file = std::io::BufWriter::new(file);
        self.write_profile(&mut file)?;
        file.flush().map_err(|error| cannot_write(path, &error))
    }

    fn write_profile(&self, target: &mut dyn Write) -> Result<()> {
        let kept = self.profiler().kept.lock();
        kept.check_ended(self.id())?;
        trace::write(self, &kept, target)
            .map_err(|error| Error::io(format!("the trace cannot be written: {error}")))
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("{} cannot be written: {error}", path.display()))
}
