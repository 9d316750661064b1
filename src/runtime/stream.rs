//! Streams: queues of work in order. A stream records commands into the open batch, submits batches
//! while more is recorded, and orders its work after that of other streams on the same memory.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::device::Device;
use super::memory::{AllocationState, Memory, Recent};
use super::profiler::{BatchTrace, HostWork, Label};
use super::staging::{Chunk, ChunkSize};
use super::timeline::{Point, Timeline, TimelineId};
use super::usage::Access;
use crate::hal::{
    Buffer, BufferRange, CommandBuffer, CommandBufferUsage, Deadline, Queue, SemaphorePoint,
    Stages, Submission,
};
use crate::{DlhalStatus, Error, Result};

/// A batch goes to the device at this many commands at the latest.
const LARGEST_BATCH: u32 = 256;
/// What a submission costs is worth while for as many commands, even where the device waits.
const SMALLEST_BATCH: u32 = 4;
/// How long a trim waits for a stream that is in use.
const PATIENCE: Duration = Duration::from_millis(1);
/// Batches in flight beyond this make recording wait for the oldest: the bound on the backlog.
const MAX_IN_FLIGHT: usize = 32;

/// A stream of one device. May be used from any thread.
pub struct Stream {
    device: Arc<Device>,
    queue: Arc<dyn Queue>,
    timeline: TimelineId,
    /// How far former streams had brought the timeline, on whatever queue.
    inherited: u64,
    recorder: Mutex<Recorder>,
    tag: AtomicUsize,
}

/// A command's use of an allocation.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    /// An address inside it.
    pub(crate) address: u64,
    /// Bytes from there on that must lie inside it.
    pub(crate) size: u64,
    /// Whether the command writes to it.
    pub(crate) writes: bool,
    /// The kernel's argument that names it, for messages.
    pub(crate) argument: Option<u32>,
}

impl Use {
    /// Says in a message which argument it is about.
    #[cold]
    pub(crate) fn tell(&self, error: Error) -> Error {
        match self.argument {
            Some(argument) => error.within(format_args!("argument {argument}")),
            None => error,
        }
    }
}

/// A use made concrete, as long as the allocation is held.
#[derive(Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) buffer: &'a Arc<dyn Buffer>,
    /// Bytes from the buffer's start to the use's address.
    pub(crate) offset: u64,
    /// Bytes from there to the end of what was allocated.
    pub(crate) available: u64,
    /// Bytes of the allocation's memory from there on, padding included.
    pub(crate) reserved: u64,
    /// The host sees it.
    is_mapped: bool,
}

impl<'a> Bound<'a> {
    /// The part from `skip` on as commands name it.
    pub(crate) fn range(&self, skip: u64, size: u64) -> BufferRange<'a> {
        BufferRange { buffer: self.buffer, offset: self.offset + skip, size }
    }
}

/// Where a command is recorded.
pub(crate) struct Recording<'a> {
    /// The open batch.
    pub(crate) commands: &'a mut dyn CommandBuffer,
    /// One for each use, in the order given.
    pub(crate) bound: &'a [Bound<'a>],
    /// Passed once the command is done.
    pub(crate) point: Point,
    /// The stages in which the command runs: at first those that it was announced with.
    pub(crate) stages: Stages,
    uploads: &'a mut Uploads,
    device: &'a Device,
    host_reads: bool,
    waits_for_company: bool,
}

#[derive(Default)]
struct Recorder {
    open: Option<Box<dyn CommandBuffer>>,
    /// Commands in the open batch.
    commands: u32,
    /// Commands since the stream was last idle as far as its user is concerned.
    burst: u32,
    /// Numbers the stream's commands.
    sequence: u64,
    /// The last command that a barrier stands behind.
    covered: u64,
    /// The stages used since that barrier.
    stages: Stages,
    /// The open batch writes memory that the host sees.
    host_reads: bool,
    /// What the open batch waits for.
    waits: Vec<SemaphorePoint>,
    /// How far the stream has waited for other timelines, by their number.
    seen: Vec<u64>,
    uploads: Uploads,
    recent: Recent,
    in_flight: VecDeque<Batch>,
    spare: Vec<Box<dyn CommandBuffer>>,
    /// The failure of an earlier submission, told at the next call that can tell it.
    failure: Option<Error>,
    /// How many commands the last [`Stream::tick`] saw.
    seen_by_tick: u64,
    /// What a profile keeps of the open batch.
    trace: Option<Box<BatchTrace>>,
}

struct Batch {
    value: u64,
    commands: Option<Box<dyn CommandBuffer>>,
    trace: Option<Box<BatchTrace>>,
}

/// Small pieces of host memory that commands of the open batch read.
#[derive(Default)]
struct Uploads {
    current: Option<Chunk>,
    used: u64,
    /// Chunks that the open batch uses and nobody will add to.
    full: Vec<Chunk>,
}

/// The allocations that a command uses, locked.
#[derive(Default)]
struct Held<'a> {
    /// Each allocation once.
    locks: SmallVec<[MutexGuard<'a, AllocationState>; 8]>,
    /// For each use, where its allocation's lock is.
    places: SmallVec<[usize; 8]>,
}

impl Stream {
    /// A new stream, on the queue whose turn it is.
    pub fn new(device: &Arc<Device>) -> Result<Arc<Self>> {
        device.check_health()?;
        let timeline = device.timelines().acquire(device.hal().as_ref())?;
        let stream = Arc::new(Self {
            device: device.clone(),
            queue: device.next_queue(),
            timeline,
            inherited: device.timelines().get(timeline)?.submitted(),
            recorder: Mutex::default(),
            tag: AtomicUsize::new(0),
        });
        device.enter_stream(&stream);
        Ok(stream)
    }

    /// The device that the stream belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// A number that the layer above keeps with the stream; 0 at first.
    pub fn tag(&self) -> usize {
        self.tag.load(Ordering::Relaxed)
    }

    /// See [`Self::tag`].
    pub fn set_tag(&self, tag: usize) {
        self.tag.store(tag, Ordering::Relaxed);
    }

    /// Records one command that uses `uses`, after everything that it must come after. It runs in
    /// `stages`, unless it says otherwise while it is recorded ([`Recording::stages`]). A profile shows
    /// it under `label`.
    pub(crate) fn record<R>(
        &self,
        uses: &[Use],
        stages: Stages,
        label: Label<'_>,
        command: impl FnOnce(&mut Recording<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut looked_up_anew = false;
        loop {
            let mut recorder = self.recorder.lock();
            self.check(&recorder)?;
            let mut held = Held::default();
            hold(uses, &mut recorder.recent, self.device.memory(), &mut held)?;
            let (mut bound, mut order) = (SmallVec::<[Bound<'_>; 8]>::new(), Order::default());
            if let Err(error) = self.place(&recorder, uses, &held, &mut bound, &mut order) {
                if looked_up_anew {
                    return Err(error);
                }
                // What was found earlier may have been freed, and another be there now.
                recorder.recent.clear();
                looked_up_anew = true;
                continue;
            }
            if let Some(point) = order.unsubmitted {
                // That work must be on its way before ours can wait for it, and its stream's lock
                // is not taken while ours is held.
                drop(bound);
                drop(held);
                drop(recorder);
                self.device.flush_timeline(point)?;
                continue;
            }
            self.open(&mut recorder)?;
            self.enter_waits(&mut recorder, &order.waits)?;
            let recorder = &mut *recorder;
            let Some(commands) = recorder.open.as_deref_mut() else {
                return Err(Error::internal("no open batch"));
            };
            if order.needs_barrier || (recorder.commands > 0 && self.device.barrier_always()) {
                commands.barrier(recorder.stages, Stages::ON_DEVICE)?;
                recorder.covered = recorder.sequence;
                recorder.stages = Stages::NONE;
            }
            let point = Point { timeline: self.timeline, value: self.open_value()? };
            let mut recording = Recording {
                commands,
                bound: &bound,
                point,
                stages,
                uploads: &mut recorder.uploads,
                device: &self.device,
                host_reads: false,
                waits_for_company: false,
            };
            let result = match self.device.profiler().session() {
                None => command(&mut recording),
                Some(session) => recorder.trace.get_or_insert_with(|| self.new_trace()).record(
                    &self.device,
                    session,
                    label,
                    &mut recording,
                    command,
                ),
            };
            let host_reads = recording.host_reads;
            let waits_for_company = recording.waits_for_company;
            // What a command that failed has recorded is unknown.
            let stages = if result.is_ok() { recording.stages } else { Stages::ON_DEVICE };
            let mapped = bound.iter().zip(uses).any(|(bound, used)| used.writes && bound.is_mapped);
            recorder.sequence += 1;
            recorder.commands += 1;
            recorder.burst = recorder.burst.saturating_add(1);
            recorder.stages |= stages;
            recorder.host_reads |= mapped || host_reads;
            drop(bound);
            let access = Access { point, sequence: recorder.sequence };
            for (used, &place) in uses.iter().zip(&held.places) {
                held.locks[place].usage.record(access, used.writes);
            }
            drop(held);
            if waits_for_company {
                recorder.burst = recorder.burst.max(2);
            }
            if self.is_due(recorder)? {
                self.submit(recorder)?;
            } else {
                self.device.wake_worker();
            }
            return result;
        }
    }

    /// Hands what was recorded to the device.
    pub fn flush(&self) -> Result<()> {
        let mut recorder = self.recorder.lock();
        self.check(&recorder)?;
        self.submit(&mut recorder)
    }

    /// Waits until all work of the stream is done.
    pub fn sync(&self, deadline: Deadline) -> Result<()> {
        let point = {
            let mut recorder = self.recorder.lock();
            if recorder.all_is_done() {
                recorder.burst = 0;
                drop(recorder);
                return self.device.check_health();
            }
            let submitted = self.submit(&mut recorder);
            if let Some(failure) = recorder.failure.take() {
                return Err(failure);
            }
            submitted?;
            self.submitted_point()?
        };
        self.device.wait(point, deadline)?;
        // Loss may be told by no call before this one; results read now would be undefined.
        self.device.check_health()?;
        let mut recorder = self.recorder.lock();
        recorder.burst = 0;
        self.recycle(&mut recorder)
    }

    /// Submits, and the point that is passed once all work of the stream so far is done.
    pub(crate) fn mark(&self) -> Result<Point> {
        let mut recorder = self.recorder.lock();
        self.check(&recorder)?;
        self.submit(&mut recorder)?;
        self.submitted_point()
    }

    /// Makes later work of the stream wait for a submitted point of the same device.
    pub(crate) fn wait_for(&self, point: Point) -> Result<()> {
        if self.is_own(point) {
            return Ok(());
        }
        let mut recorder = self.recorder.lock();
        self.check(&recorder)?;
        let mut waits = SmallVec::<[Point; 1]>::new();
        if recorder.seen(point.timeline) < point.value {
            waits.push(point);
        }
        self.enter_waits(&mut recorder, &waits)
    }

    /// The timeline that the stream's submissions count on.
    pub(crate) fn timeline_id(&self) -> TimelineId {
        self.timeline
    }

    /// Takes back what finished batches used, and submits work that nobody will submit: recorded
    /// before the last tick, and not added to since. Whether work is still to be submitted.
    pub(crate) fn tick(&self) -> bool {
        let Some(mut recorder) = self.recorder.try_lock() else { return true };
        if recorder.has_work() && recorder.seen_by_tick != recorder.sequence {
            // Its user is at it, and would wait for the lock: whoever submits recycles.
            recorder.seen_by_tick = recorder.sequence;
            return true;
        }
        // A failure of either is kept by the device or the recorder and told to the next caller.
        let _ = self.recycle(&mut recorder);
        if !recorder.has_work() {
            return false;
        }
        let failed = self.submit(&mut recorder).is_err();
        recorder.burst = 0;
        failed
    }

    /// Uploads a stream keeps between batches go with it.
    pub(crate) fn trim(&self) {
        // The worker holds it for a moment; a caller that runs out of memory while it records, on.
        let Some(mut recorder) = self.recorder.try_lock_for(PATIENCE) else { return };
        let idle = self.recycle(&mut recorder).is_ok() && recorder.in_flight.is_empty();
        if idle && !recorder.has_work() {
            if let Some(chunk) = recorder.uploads.current.take() {
                self.device.staging().give_back(chunk);
            }
            recorder.spare.clear();
        }
    }

    /// Hands all that was recorded to the profile that ends, once it is done. A failure of that work
    /// is told by the calls that are about it.
    pub(crate) fn finish_profile(&self) {
        let submitted = {
            let mut recorder = self.recorder.lock();
            let submitted = self.check(&recorder).and_then(|()| self.submit(&mut recorder));
            submitted.and_then(|()| self.submitted_point())
        };
        let _ = submitted.and_then(|point| self.device.wait(point, Deadline::Never));
        let mut recorder = self.recorder.lock();
        if self.recycle(&mut recorder).is_err() || self.device.check_health().is_err() {
            let open = recorder.trace.take();
            let in_flight = recorder.in_flight.iter_mut().filter_map(|batch| batch.trace.take());
            in_flight.chain(open).for_each(|trace| self.device.profiler().give_up(*trace));
        }
    }

    fn new_trace(&self) -> Box<BatchTrace> {
        BatchTrace::new(self.timeline, self.device.index_of(&self.queue))
    }

    fn check(&self, recorder: &Recorder) -> Result<()> {
        match &recorder.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    /// Whether a point is of this stream's work, rather than another's, former owners of the
    /// timeline included: barriers and the queue's order reach no further.
    fn is_own(&self, point: Point) -> bool {
        point.timeline == self.timeline && point.value > self.inherited
    }

    fn timeline(&self) -> Result<&Timeline> {
        self.device.timelines().get(self.timeline)
    }

    /// The value that the open batch will signal.
    fn open_value(&self) -> Result<u64> {
        Ok(self.timeline()?.submitted() + 1)
    }

    fn submitted_point(&self) -> Result<Point> {
        Ok(Point { timeline: self.timeline, value: self.timeline()?.submitted() })
    }

    /// Where the memory of a command is, and what the command must come after.
    #[inline]
    fn place<'a>(
        &self,
        recorder: &Recorder,
        uses: &[Use],
        held: &'a Held<'_>,
        bound: &mut SmallVec<[Bound<'a>; 8]>,
        order: &mut Order,
    ) -> Result<()> {
        for (used, &place) in uses.iter().zip(&held.places) {
            let state = &*held.locks[place];
            bound.push(bind(used, state).map_err(|error| used.tell(error))?);
            for access in state.usage.before(used.writes) {
                let point = access.point;
                if self.is_own(point) {
                    order.needs_barrier |= access.sequence > recorder.covered;
                } else if recorder.seen(point.timeline) < point.value {
                    if self.device.timelines().get(point.timeline)?.submitted() < point.value {
                        order.unsubmitted = Some(point);
                    }
                    order.wait_for(point);
                }
            }
        }
        Ok(())
    }

    /// Makes sure that a batch is open.
    fn open(&self, recorder: &mut Recorder) -> Result<()> {
        if recorder.open.is_some() {
            return Ok(());
        }
        if recorder.in_flight.len() >= MAX_IN_FLIGHT {
            if let Some(oldest) = recorder.in_flight.front() {
                self.timeline()?.wait(oldest.value, Deadline::Never)?;
            }
            self.recycle(recorder)?;
        }
        recorder.open = Some(match recorder.spare.pop() {
            Some(commands) => commands,
            None => {
                self.device.hal().create_command_buffer(&self.queue, CommandBufferUsage::OneTime)?
            }
        });
        Ok(())
    }

    /// Adds waits to the open batch, or to a new one if it has commands that they would hold up.
    fn enter_waits(&self, recorder: &mut Recorder, waits: &[Point]) -> Result<()> {
        if recorder.commands > 0 && !waits.iter().all(|&p| self.device.timelines().has_passed(p)) {
            self.submit(recorder)?;
            self.open(recorder)?;
        }
        for &point in waits {
            recorder.waits.push(self.device.timelines().semaphore_point(point)?);
            recorder.saw(point);
        }
        Ok(())
    }

    /// Whether the open batch should go to the device now.
    fn is_due(&self, recorder: &Recorder) -> Result<bool> {
        if recorder.commands >= LARGEST_BATCH {
            return Ok(true);
        }
        match self.device.early_submit() {
            Some(early) => Ok(early),
            None => Ok(recorder.is_worth_submitting() && self.is_idle(recorder)?),
        }
    }

    /// Whether the device has no batch of the stream left. Another one is no use before: between two
    /// batches a device pauses (H200: 10 µs), about as long as it takes to submit one.
    fn is_idle(&self, recorder: &Recorder) -> Result<bool> {
        let last = recorder.in_flight.back();
        last.map_or(Ok(true), |batch| self.timeline()?.is_complete(batch.value))
    }

    fn submit(&self, recorder: &mut Recorder) -> Result<()> {
        if !recorder.has_work() {
            return Ok(());
        }
        let value = self.open_value()?;
        let timeline = self.timeline()?;
        let mut commands = recorder.open.take();
        let mut trace = recorder.trace.take();
        if let Some(trace) = &mut trace {
            trace.submit();
        }
        let span = self.device.profiler().span(HostWork::Submit(recorder.commands));
        let result = self.hand_over(recorder, commands.as_deref_mut(), value);
        drop(span);
        if let Err(error) = &result {
            recorder.failure.get_or_insert(error.clone());
            if let Some(trace) = &mut trace {
                trace.refuse();
            }
            // Whoever waits for this point must not wait for ever. A lost device wakes them itself.
            if error.status() != DlhalStatus::DeviceLost {
                let _ = self.pass_without_work(recorder, value);
            }
        }
        recorder.waits.clear();
        recorder.commands = 0;
        recorder.host_reads = false;
        timeline.set_submitted(value);
        let point = Point { timeline: self.timeline, value };
        for chunk in recorder.uploads.full.drain(..) {
            self.device.staging().retire(chunk, point);
        }
        recorder.in_flight.push_back(Batch { value, commands, trace });
        self.recycle(recorder)?;
        result
    }

    /// Reaches `value` from the host, for a batch that was refused. To pass it says that all before
    /// it is done, what the batch was to wait for included, so that is awaited first.
    fn pass_without_work(&self, recorder: &mut Recorder, value: u64) -> Result<()> {
        // Neither the batch's waits nor its barriers were made.
        recorder.seen.clear();
        recorder.covered = 0;
        recorder.stages = Stages::ON_DEVICE;
        let timeline = self.timeline()?;
        timeline.wait(timeline.submitted(), Deadline::Never)?;
        for wait in &recorder.waits {
            wait.semaphore.wait(wait.value, Deadline::Never)?;
        }
        timeline.semaphore()?.signal(value)
    }

    fn hand_over(
        &self,
        recorder: &Recorder,
        commands: Option<&mut (dyn CommandBuffer + 'static)>,
        value: u64,
    ) -> Result<()> {
        let signal =
            self.device.timelines().semaphore_point(Point { timeline: self.timeline, value })?;
        let signals = std::slice::from_ref(&signal);
        let waits = &recorder.waits;
        let Some(commands) = commands.filter(|_| recorder.commands > 0) else {
            return self.queue.submit(&Submission { waits, command_buffers: &[], signals });
        };
        if recorder.host_reads {
            commands.barrier(Stages::ON_DEVICE, Stages::HOST)?;
        }
        commands.finish()?;
        self.queue.submit(&Submission { waits, command_buffers: &[&*commands], signals })
    }

    /// Takes back what finished batches used.
    fn recycle(&self, recorder: &mut Recorder) -> Result<()> {
        let timeline = self.timeline()?;
        while let Some(batch) = recorder.in_flight.front() {
            if !timeline.is_complete(batch.value)? {
                return Ok(());
            }
            let Some(batch) = recorder.in_flight.pop_front() else { return Ok(()) };
            if let Some(trace) = batch.trace {
                self.device.profiler().harvest(*trace);
            }
            if let Some(mut commands) = batch.commands {
                commands.reset()?;
                recorder.spare.push(commands);
            }
        }
        if recorder.commands == 0 {
            recorder.uploads.used = 0;
        }
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Work that was recorded is done, as it would be after a free of the stream in CUDA.
        let recorder = self.recorder.get_mut();
        let mut taken = std::mem::take(recorder);
        let _ = self.submit(&mut taken);
        let point = self.submitted_point();
        if let (Some(chunk), Ok(point)) = (taken.uploads.current.take(), point) {
            self.device.staging().retire(chunk, point);
        }
        for Batch { value, trace, .. } in taken.in_flight {
            if let Some(trace) = trace {
                let point = Point { timeline: self.timeline, value };
                self.device.profiler().adopt(&self.device, point, *trace);
            }
        }
        self.device.leave_stream(self);
        self.device.timelines().release(self.timeline);
    }
}

impl Recording<'_> {
    /// The host will read what the command writes, once its batch is done.
    pub(crate) fn host_will_read(&mut self) {
        self.host_reads = true;
    }

    /// The command is not submitted at once after a pause, but together with what comes next, be it
    /// only a synchronise: it is over before a second submission could follow, or measures the time
    /// between two.
    pub(crate) fn wait_for_company(&mut self) {
        self.waits_for_company = true;
    }

    /// Memory that the device sees, filled by `fill`, at a multiple of 256 bytes, for the command
    /// that is being recorded. At most [`ChunkSize::Small`].
    pub(crate) fn upload(
        &mut self,
        size: u64,
        fill: impl FnOnce(&mut [MaybeUninit<u8>]),
    ) -> Result<Upload> {
        let uploads = &mut *self.uploads;
        let full = uploads.used + size > ChunkSize::Small.bytes();
        if full && let Some(chunk) = uploads.current.take() {
            uploads.full.push(chunk);
        }
        let chunk = match &mut uploads.current {
            Some(chunk) => chunk,
            None => {
                uploads.used = 0;
                uploads.current.insert(self.device.staging().acquire(ChunkSize::Small)?)
            }
        };
        let offset = uploads.used;
        chunk.write(offset, size, fill)?;
        uploads.used = (offset + size).next_multiple_of(256);
        let range = chunk.range(offset, size);
        Ok(Upload { buffer: range.buffer.clone(), offset: range.offset, size })
    }
}

/// Bytes in memory that the device sees.
pub(crate) struct Upload {
    buffer: Arc<dyn Buffer>,
    offset: u64,
    size: u64,
}

impl Upload {
    /// The bytes as commands name them.
    pub(crate) fn range(&self) -> BufferRange<'_> {
        BufferRange { buffer: &self.buffer, offset: self.offset, size: self.size }
    }
}

impl Recorder {
    /// Whether the open batch may go to a device that has no work: one command after a pause,
    /// so that it starts at once; then more and more, so that submitting costs less and less, and
    /// what is left for the end stays a small part of the whole.
    fn is_worth_submitting(&self) -> bool {
        match self.burst {
            1 => true,
            burst => {
                let least = (burst / 4).clamp(SMALLEST_BATCH, LARGEST_BATCH / 2);
                self.commands >= least && self.commands.is_multiple_of(SMALLEST_BATCH)
            }
        }
    }

    /// Whether all work is done and nothing is left to tell.
    fn all_is_done(&self) -> bool {
        !self.has_work() && self.in_flight.is_empty() && self.failure.is_none()
    }

    fn has_work(&self) -> bool {
        self.commands > 0 || !self.waits.is_empty()
    }

    fn seen(&self, timeline: TimelineId) -> u64 {
        self.seen.get(timeline as usize).copied().unwrap_or(0)
    }

    fn saw(&mut self, point: Point) {
        let index = point.timeline as usize;
        if self.seen.len() <= index {
            self.seen.resize(index + 1, 0);
        }
        if let Some(seen) = self.seen.get_mut(index) {
            *seen = point.value.max(*seen);
        }
    }
}

#[derive(Default)]
struct Order {
    needs_barrier: bool,
    waits: SmallVec<[Point; 4]>,
    /// A point to wait for whose stream has not submitted it.
    unsubmitted: Option<Point>,
}

impl Order {
    /// Adds a wait; of two on one timeline the later covers both.
    fn wait_for(&mut self, point: Point) {
        match self.waits.iter_mut().find(|wait| wait.timeline == point.timeline) {
            Some(wait) => wait.value = wait.value.max(point.value),
            None => self.waits.push(point),
        }
    }
}

/// Locks every allocation used, each once, by rising number so that two streams cannot wait for each
/// other.
#[inline]
fn hold<'a>(
    uses: &[Use],
    recent: &mut Recent,
    memory: &'a Memory,
    held: &mut Held<'a>,
) -> Result<()> {
    let mut numbered = SmallVec::<[(u32, usize); 8]>::new();
    for (index, used) in uses.iter().enumerate() {
        let number = recent.find(used.address, memory).map_err(|error| used.tell(error))?;
        numbered.push((number, index));
    }
    if !numbered.is_sorted_by_key(|&(number, _)| number) {
        numbered.sort_unstable_by_key(|&(number, _)| number);
    }
    held.places = SmallVec::from_elem(0, uses.len());
    let mut last = None;
    for &(number, index) in &numbered {
        if last != Some(number) {
            held.locks.push(memory.record(number)?.lock());
            last = Some(number);
        }
        held.places[index] = held.locks.len() - 1;
    }
    Ok(())
}

#[inline]
fn bind<'a>(used: &Use, state: &'a AllocationState) -> Result<Bound<'a>> {
    let live = state.live_at(used.address)?;
    let available = live.check_range(used.address, used.size, used.writes)?;
    let skip = used.address - live.address;
    Ok(Bound {
        buffer: live.block.buffer(),
        offset: live.offset + skip,
        available,
        reserved: live.reserved - skip,
        is_mapped: live.block.is_mapped(),
    })
}
