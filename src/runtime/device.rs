//! A device as the runtime sees it: the HAL's device with its memory, staging, timelines and
//! streams, and the housekeeping between them.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::copiers::CopyThreads;
use super::copy_kernel::{CopyKernel, Shaders};
use super::deferred::Deferred;
use super::memory::{Counters, Disowned, Import, Memory, Request};
use super::profiler::{HostWork, Profiler};
use super::staging::Staging;
use super::stream::Stream;
use super::timeline::{Point, Timelines};
use super::timestamps::TimestampPool;
use super::tuning::Tuning;
use super::worker::{Rounds, Worker};
use super::workspace::InUse;
use super::{process, thread};
use crate::hal::{self, Deadline, DeviceProperties, DeviceType, MemoryKind, Queue, QueueRole};
use crate::{DlhalStatus, Error, Result};

/// One device. May be used from any thread; lives until the last object made from it is gone.
pub struct Device {
    id: i32,
    hal: Arc<dyn hal::Device>,
    memory: Arc<Memory>,
    timelines: Arc<Timelines>,
    staging: Staging,
    timestamps: TimestampPool,
    profiler: Profiler,
    streams: Mutex<Vec<Weak<Stream>>>,
    compute_queues: Vec<Arc<dyn Queue>>,
    next_queue: AtomicUsize,
    deferred: Deferred,
    closed: AtomicBool,
    workspaces_in_use: InUse,
    worker: Worker,
    copy_kernel: CopyKernel,
    copy_threads: CopyThreads,
    mapped_up_to: u64,
    pinned_from: u64,
    early_submit: Option<bool>,
    barrier_always: bool,
    spin: Duration,
}

/// How long a wait looks at the device before it sleeps: about twice what a sleep and its wake-up cost
/// (H200: 45 µs), so that a small model's run is awaited without one.
const SPIN: Duration = Duration::from_micros(100);

/// From here on the device fetches from and writes to pinned memory of the host in place.
const PINNED_FROM: u64 = 64 << 10;

/// What a device's memory is used for; bytes. See [`Device::memory_statistics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// Asked for by live allocations.
    pub live_bytes: u64,
    /// Live allocations.
    pub live_allocations: u64,
    /// The highest `live_bytes` so far.
    pub peak_bytes: u64,
    /// Held from the driver.
    pub reserved_bytes: u64,
    /// Memory objects of the driver.
    pub memory_objects: u64,
    /// Held from the driver, and used by nothing: what a trim gives back.
    pub unused_bytes: u64,
    /// Pinned host memory for copies in flight.
    pub staging_bytes: u64,
}

/// What lies behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressInfo {
    /// The allocation's first address.
    pub allocation_base: u64,
    /// Bytes of the allocation.
    pub allocation_size: u64,
    /// Bytes from the allocation's first address to this one.
    pub offset: u64,
    /// The driver's buffer that the allocation lies in.
    pub native_buffer: u64,
    /// Bytes from the start of that buffer.
    pub native_offset: u64,
}

impl Device {
    /// Wraps a device of the HAL as the runtime's device number `id`, tuned as the environment says.
    pub fn new(id: i32, hal: Arc<dyn hal::Device>) -> Result<Arc<Self>> {
        Self::tuned(id, hal, &Tuning::from_env())
    }

    /// As [`Self::new`], tuned as `tuning` says.
    pub fn tuned(id: i32, hal: Arc<dyn hal::Device>, tuning: &Tuning) -> Result<Arc<Self>> {
        let memory = Arc::new(Memory::new(&hal)?);
        let timelines = Arc::new(Timelines::new());
        let staging = Staging::new(memory.clone(), timelines.clone());
        let is_compute = |queue: &&Arc<dyn Queue>| queue.role() == QueueRole::Compute;
        let compute_queues: Vec<_> = hal.queues().iter().filter(is_compute).cloned().collect();
        if compute_queues.is_empty() {
            return Err(Error::unsupported("the device has no queue for kernels"));
        }
        Ok(Arc::new(Self {
            copy_kernel: CopyKernel::new(tuning.copy_kernel, hal.as_ref()),
            copy_threads: CopyThreads::new(tuning),
            spin: tuning.spin.unwrap_or_else(|| spin_for(hal.as_ref())),
            mapped_up_to: tuning.mapped_up_to.unwrap_or(u64::MAX),
            pinned_from: tuning.pinned_from.unwrap_or(PINNED_FROM),
            early_submit: tuning.early_submit,
            barrier_always: tuning.barrier_always.unwrap_or(false),
            id,
            hal,
            memory,
            timelines,
            staging,
            timestamps: TimestampPool::default(),
            profiler: Profiler::default(),
            streams: Mutex::default(),
            compute_queues,
            next_queue: AtomicUsize::new(0),
            deferred: Deferred::default(),
            closed: AtomicBool::new(false),
            workspaces_in_use: InUse::default(),
            worker: Worker::default(),
        }))
    }

    /// Its number, the `device_id` of `DLDevice`.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// What it is and can do.
    pub fn properties(&self) -> &DeviceProperties {
        self.hal.properties()
    }

    /// The device below.
    pub fn hal(&self) -> &Arc<dyn hal::Device> {
        &self.hal
    }

    /// Creates a stream. Dropping it never waits: its work is done all the same.
    pub fn create_stream(self: &Arc<Self>) -> Result<Arc<Stream>> {
        Stream::new(self)
    }

    /// Allocates `size` bytes at a multiple of `alignment`; the address of the first. Zero bytes
    /// get an address of their own.
    pub fn allocate(&self, size: u64, alignment: u64, kind: MemoryKind) -> Result<u64> {
        self.check_health()?;
        let request = Request { size, alignment, kind };
        match self.memory.allocate(&request) {
            Err(error) if error.status() == DlhalStatus::OutOfMemory => {
                self.trim();
                self.memory.allocate(&request).map_err(|error| {
                    error.within(format_args!(
                        "{size} bytes on device {} with {} bytes in {} live allocations",
                        self.id,
                        self.counters().live_bytes,
                        self.counters().live_allocations
                    ))
                })
            }
            other => other,
        }
    }

    /// Frees the allocation that starts at `address`. Never waits: work in flight on it is done as
    /// if it were not freed.
    pub fn free(self: &Arc<Self>, address: u64) -> Result<()> {
        if let Some(disowned) = self.memory.free(address)? {
            self.deferred.push(disowned);
            self.run_deferred();
            if self.deferred.is_pending() {
                self.wake_worker();
            }
        }
        Ok(())
    }

    /// Where the host sees `address` of pinned memory.
    pub fn host_pointer(&self, address: u64) -> Result<*mut u8> {
        let allocation = self.memory.find(address)?.lock();
        let live = allocation.live_at(address)?;
        let mapping = live.block.buffer().mapping().filter(|_| live.kind == MemoryKind::Host);
        let mapping = mapping.ok_or_else(|| {
            Error::unsupported(format!(
                "address {address:#x} is device memory, which the host does not see; allocate it \
                 with memory scope \"host\""
            ))
        })?;
        let offset = live.offset + (address - live.address);
        Ok(mapping.ptr.as_ptr().wrapping_add(offset as usize))
    }

    /// What lies behind `address`.
    pub fn resolve(&self, address: u64) -> Result<AddressInfo> {
        let allocation = self.memory.find(address)?.lock();
        let live = allocation.live_at(address)?;
        let offset = address - live.address;
        Ok(AddressInfo {
            allocation_base: live.address,
            allocation_size: live.size,
            offset,
            native_buffer: live.block.buffer().native_handle(),
            native_offset: live.offset + offset,
        })
    }

    /// Drops `owner` once the uses that the allocation at `address` has now are over; at once where
    /// there is none.
    pub(crate) fn drop_after_uses(self: &Arc<Self>, address: u64, owner: Box<dyn Any + Send>) {
        let points = match self.memory.find(address) {
            Ok(allocation) => allocation.lock().usage.points(),
            Err(_) => Vec::new(),
        };
        self.deferred.push(Disowned { owner, points, block: None });
        self.run_deferred();
        if self.deferred.is_pending() {
            self.wake_worker();
        }
    }

    /// Waits until all work on the device is done.
    pub fn sync(&self) -> Result<()> {
        for stream in self.live_streams() {
            stream.sync(Deadline::Never)?;
        }
        // A stream that is being dropped submits what it has; then its work is awaited here.
        while self.streams.lock().iter().any(|stream| stream.strong_count() == 0) {
            self.check_health()?;
            std::thread::yield_now();
        }
        self.finish_submitted(Deadline::Never)?;
        self.run_deferred();
        Ok(())
    }

    /// Gives cached memory back to the driver; how many bytes.
    pub fn trim(&self) -> u64 {
        // It frees what was allocated for that purpose alone, so it cannot fail.
        let _ = thread::trim_workspaces(self);
        self.live_streams().iter().for_each(|stream| stream.trim());
        self.staging.trim();
        let released = self.memory.trim();
        self.hal.trim();
        released
    }

    /// What the memory is used for.
    pub fn memory_statistics(&self) -> MemoryStatistics {
        let counters = self.counters();
        let staging_bytes = self.staging.bytes();
        MemoryStatistics {
            live_bytes: counters.live_bytes,
            live_allocations: counters.live_allocations,
            peak_bytes: counters.peak_bytes,
            reserved_bytes: counters.block_bytes,
            memory_objects: counters.blocks,
            unused_bytes: counters.unused_bytes,
            staging_bytes,
        }
    }

    /// Bytes that can still be allocated: what the driver says, or what our own allocations leave
    /// of the total. Never more than the total.
    pub fn available_memory(&self) -> u64 {
        let budget = self.hal.memory_budget();
        let device = self.memory.counters(MemoryKind::Device);
        let own = budget.total.saturating_sub(device.block_bytes);
        // Blocks that hold nothing are the caller's for the asking.
        let unused = device.unused_bytes;
        budget.available.unwrap_or(own).saturating_add(unused).min(budget.total)
    }

    /// Fails once the device is lost, and in a forked child.
    pub fn check_health(&self) -> Result<()> {
        process::check()?;
        self.hal.health()
    }

    /// Workspaces that threads have taken.
    pub(crate) fn workspaces_in_use(&self) -> &InUse {
        &self.workspaces_in_use
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn timelines(&self) -> &Timelines {
        &self.timelines
    }

    pub(crate) fn staging(&self) -> &Staging {
        &self.staging
    }

    pub(crate) fn timestamps(&self) -> &TimestampPool {
        &self.timestamps
    }

    pub(crate) fn profiler(&self) -> &Profiler {
        &self.profiler
    }

    /// The kernel for a copy of `size` bytes within the device; `None` where the copy command is to
    /// do it.
    pub(crate) fn copy_kernel_for(&self, size: u64) -> Option<&Shaders> {
        self.copy_kernel.for_copy_of(size, self.hal.as_ref())
    }

    /// The threads that copy host memory.
    pub(crate) fn copy_threads(&self) -> &CopyThreads {
        &self.copy_threads
    }

    /// Writes of more bytes than this go through staging, even where the host sees the memory.
    pub(crate) fn mapped_up_to(&self) -> u64 {
        self.mapped_up_to
    }

    /// Copies of so many bytes and more use pinned memory of the host in place.
    pub(crate) fn pinned_from(&self) -> u64 {
        self.pinned_from
    }

    /// Whether every command goes to the device at once, or only full batches do; `None` where the
    /// stream decides.
    pub(crate) fn early_submit(&self) -> Option<bool> {
        self.early_submit
    }

    /// Whether a barrier stands between any two commands, needed or not.
    pub(crate) fn barrier_always(&self) -> bool {
        self.barrier_always
    }

    /// Makes imported host memory an allocation; its address.
    pub(crate) fn adopt(&self, import: Import) -> Result<u64> {
        self.memory.adopt(import)
    }

    /// Waits for a point that has been submitted.
    pub(crate) fn wait(&self, point: Point, deadline: Deadline) -> Result<()> {
        let timeline = self.timelines.get(point.timeline)?;
        let _span = self.profiler.span(HostWork::Wait);
        if timeline.is_complete(point.value)? {
            return Ok(());
        }
        let spin = deadline.remaining().map_or(self.spin, |left| left.min(self.spin));
        if !spin.is_zero() {
            let end = Instant::now() + spin;
            while !timeline.is_complete(point.value)? && Instant::now() < end {
                std::hint::spin_loop();
            }
        }
        timeline.wait(point.value, deadline)
    }

    /// Waits for all that has been submitted, and leaves alone what has not.
    pub(crate) fn finish_submitted(&self, deadline: Deadline) -> Result<()> {
        self.timelines.all().try_for_each(|timeline| timeline.wait(timeline.submitted(), deadline))
    }

    /// Submits a point that another stream has recorded but not submitted.
    pub(crate) fn flush_timeline(&self, point: Point) -> Result<()> {
        let on_timeline = |stream: &Arc<Stream>| stream.timeline_id() == point.timeline;
        match self.live_streams().into_iter().find(on_timeline) {
            Some(stream) => stream.flush(),
            // The stream is being dropped, which submits.
            None => {
                std::thread::yield_now();
                Ok(())
            }
        }
    }

    /// As [`Self::flush_timeline`], until the point is submitted.
    pub(crate) fn flush_timeline_up_to(&self, point: Point) -> Result<()> {
        while self.timelines.get(point.timeline)?.submitted() < point.value {
            self.flush_timeline(point)?;
        }
        Ok(())
    }

    /// How long a wait looks at the device before it sleeps.
    pub(crate) fn spin(&self) -> Duration {
        self.spin
    }

    pub(crate) fn compute_queues(&self) -> &[Arc<dyn Queue>] {
        &self.compute_queues
    }

    /// Where a stream's queue is among [`Self::compute_queues`].
    pub(crate) fn index_of(&self, queue: &Arc<dyn Queue>) -> usize {
        self.compute_queues.iter().position(|own| Arc::ptr_eq(own, queue)).unwrap_or(0)
    }

    /// The queue for a new stream: each in turn.
    pub(crate) fn next_queue(&self) -> Arc<dyn Queue> {
        let turn = self.next_queue.fetch_add(1, Ordering::Relaxed);
        let index = turn % self.compute_queues.len();
        self.compute_queues[index].clone()
    }

    pub(crate) fn enter_stream(&self, stream: &Arc<Stream>) {
        self.streams.lock().push(Arc::downgrade(stream));
    }

    /// Called by a stream that is dropped, once its work is submitted.
    pub(crate) fn leave_stream(&self, stream: &Stream) {
        self.streams.lock().retain(|other| !std::ptr::eq(other.as_ptr(), stream));
    }

    /// Lets the worker know that a stream has work which its user may leave unsubmitted.
    pub(crate) fn wake_worker(self: &Arc<Self>) {
        self.worker.wake(self);
    }

    /// One round of housekeeping; whether another is needed soon.
    pub(crate) fn tick(&self) -> bool {
        let mut busy = false;
        for stream in self.live_streams() {
            busy |= stream.tick();
        }
        self.run_deferred();
        if self.deferred.is_pending() && self.hal.health().is_err() {
            // No point passes any more, and nothing runs once the driver has given up.
            let _ = self.hal.wait_idle();
            self.deferred.run_all();
        }
        busy || self.deferred.is_pending()
    }

    /// Finishes everything and runs what was deferred. Called at shutdown; what is deferred by calls
    /// that are under way meanwhile is run by the worker or when the device goes.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for stream in self.live_streams() {
            let _ = stream.sync(Deadline::Never);
        }
        let idle = self.hal.wait_idle();
        self.trim();
        match idle {
            Ok(()) => self.deferred.run_idle(|point| self.timelines.has_passed(point)),
            Err(_) => self.deferred.run_all(),
        }
    }

    /// Whether the device was not shut down.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::SeqCst)
    }

    /// Fails once the device was shut down.
    pub(crate) fn check_open(&self) -> Result<()> {
        if !self.is_open() {
            return Err(Error::precondition(format!(
                "device {} was shut down meanwhile; its next use by number opens it anew",
                self.id
            )));
        }
        Ok(())
    }

    /// The worker's rounds, each of which holds the device for a moment.
    pub(crate) fn worker_rounds(&self) -> Rounds {
        self.worker.rounds()
    }

    fn counters(&self) -> Counters {
        let device = self.memory.counters(MemoryKind::Device);
        let host = self.memory.counters(MemoryKind::Host);
        device.plus(host)
    }

    pub(crate) fn live_streams(&self) -> Vec<Arc<Stream>> {
        self.streams.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn run_deferred(&self) {
        self.deferred.run_passed(|point| self.timelines.has_passed(point));
    }
}

fn spin_for(device: &dyn hal::Device) -> Duration {
    match device.properties().device_type {
        // Whoever spins takes the processor from the device.
        DeviceType::Software => Duration::ZERO,
        _ => SPIN,
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.worker.stop();
        let _ = self.hal.wait_idle();
        self.deferred.run_all();
    }
}
