//! Queues.

use std::any::Any;
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;

use super::command_buffer::CommandBuffer;
use super::fence::Fence;
use super::raw_device::RawDevice;
use super::recording::Recording;
use super::retire::InFlight;
use super::semaphore::Semaphore;
use super::shared::Shared;
use crate::hal::timestamps::SlotChanges;
use crate::hal::{self, Deadline, QueueRole, SemaphorePoint, Submission};
use crate::{Error, Result};

/// A queue, as the layers above hold it.
pub(super) struct Queue {
    shared: Arc<Shared>,
    lane: usize,
}

/// A `VkQueue` with what it has in flight.
pub(super) struct Lane {
    pub(super) index: usize,
    pub(super) family: u32,
    pub(super) role: QueueRole,
    vk: vk::Queue,
    /// A `VkQueue` is used by one thread at a time.
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    pub(super) in_flight: InFlight,
    last: Option<SemaphorePoint>,
    fences: Fences,
    scratch: Scratch,
}

/// Fences of a queue's submissions, where there are no timeline semaphores.
#[derive(Default)]
struct Fences {
    in_flight: std::collections::VecDeque<Arc<Fence>>,
    idle: Vec<Arc<Fence>>,
}

/// Arrays of one call, kept for the next.
#[derive(Default)]
struct Scratch {
    command_buffers: Vec<vk::CommandBuffer>,
    waits: Vec<vk::Semaphore>,
    wait_values: Vec<u64>,
    wait_stages: Vec<vk::PipelineStageFlags>,
    signals: Vec<vk::Semaphore>,
    signal_values: Vec<u64>,
}

impl Queue {
    pub(super) fn new(shared: &Arc<Shared>, lane: usize) -> Self {
        Self { shared: shared.clone(), lane }
    }

    /// The lane of a HAL queue, if it is one of this device.
    pub(super) fn lane_of<'a>(queue: &dyn hal::Queue, shared: &'a Arc<Shared>) -> Result<&'a Lane> {
        match queue.as_any().downcast_ref::<Self>() {
            Some(queue) if Arc::ptr_eq(&queue.shared, shared) => Ok(&shared.lanes[queue.lane]),
            _ => Err(Error::invalid("a queue of another device was given")),
        }
    }

    fn lane(&self) -> &Lane {
        &self.shared.lanes[self.lane]
    }
}

impl hal::Queue for Queue {
    fn role(&self) -> QueueRole {
        self.lane().role
    }

    fn submit(&self, submission: &Submission<'_>) -> Result<()> {
        let (shared, lane) = (&self.shared, self.lane());
        let raw = &shared.raw;
        raw.check()?;
        if submission.signals.is_empty() {
            return Err(Error::invalid("a submission signals nothing; it needs at least 1 point"));
        }
        for (index, command_buffer) in submission.command_buffers.iter().enumerate() {
            CommandBuffer::of(*command_buffer, shared)?.submittable(
                lane.family,
                submission,
                index,
            )?;
        }
        if raw.timeline.is_none() {
            wait_on_host(raw, submission)?;
        }
        lane.submit(raw, submission)?;
        shared.drain(lane);
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        self.shared.wait_lane_idle(self.lane())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Lane {
    pub(super) fn new(
        raw: &Arc<RawDevice>,
        index: usize,
        family: &super::plan::QueueFamilyPlan,
        queue: u32,
    ) -> Self {
        // SAFETY: VUID-vkGetDeviceQueue-queueFamilyIndex-00384, -queueIndex-00385: the device was
        // created with the plan's families and counts.
        let vk = unsafe { raw.vk.get_device_queue(family.family, queue) };
        let state = State {
            in_flight: InFlight::new(raw),
            last: None,
            fences: Fences::default(),
            scratch: Scratch::default(),
        };
        Self { index, family: family.family, role: family.role, vk, state: Mutex::new(state) }
    }

    /// The point of the last submission.
    pub(super) fn last(&self) -> Option<SemaphorePoint> {
        self.state.lock().last.clone()
    }

    /// Lets go of what has passed, but for one recording that is handed out: clearing it takes
    /// longer than the lock should be held.
    pub(super) fn land(&self) -> Option<Box<Recording>> {
        let mut state = self.state.lock();
        state.in_flight.land();
        state.fences.land();
        state.in_flight.take_passed()
    }

    fn submit(&self, raw: &Arc<RawDevice>, submission: &Submission<'_>) -> Result<()> {
        let mut state = self.state.lock();
        let State { in_flight, last, fences, scratch } = &mut *state;
        // Under the lock, because whoever fails a semaphore looks through the queues afterwards.
        scratch.fill(raw, submission)?;
        let timestamps = changes_of_timestamps(submission)?;
        if raw.timeline.is_some() {
            self.submit_timeline(raw, scratch)?;
        } else {
            let fence = fences.take(raw)?;
            if let Err(error) = self.submit_fence(raw, scratch, &fence) {
                fences.idle.push(fence);
                return Err(error);
            }
            for (index, point) in submission.signals.iter().enumerate() {
                // A point listed twice is signalled once.
                if !submission.signals[..index].iter().any(|p| same(p, point)) {
                    Semaphore::of(point, raw)?.signal_by(&fence, point.value);
                }
            }
            fences.in_flight.push_back(fence);
        }
        timestamps.keep();
        in_flight.submitted(submission.waits, submission.signals);
        let done = submission.signals.first();
        *last = done.cloned();
        for command_buffer in submission.command_buffers {
            if let (Some(command_buffer), Some(done)) =
                (command_buffer.as_any().downcast_ref::<CommandBuffer>(), done)
            {
                command_buffer.submitted(self.index, done);
            }
        }
        Ok(())
    }

    fn submit_timeline(&self, raw: &RawDevice, scratch: &Scratch) -> Result<()> {
        let mut values = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&scratch.wait_values)
            .signal_semaphore_values(&scratch.signal_values);
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&scratch.waits)
            .wait_dst_stage_mask(&scratch.wait_stages)
            .command_buffers(&scratch.command_buffers)
            .signal_semaphores(&scratch.signals)
            .push_next(&mut values);
        // SAFETY: VUID-vkQueueSubmit-pCommandBuffers-00070, -00071: finished recordings of this
        // queue's family that may run more than once at a time or run for the first time
        // (`CommandBuffer::submittable`); the queue is held by the lock.
        unsafe { raw.submit(self.vk, info, vk::Fence::null()) }
    }

    fn submit_fence(&self, raw: &RawDevice, scratch: &Scratch, fence: &Fence) -> Result<()> {
        let info = vk::SubmitInfo::default().command_buffers(&scratch.command_buffers);
        // SAFETY: VUID-vkQueueSubmit-fence-00063, -00064: the fence is reset and of no other
        // submission; the rest as in `submit_timeline`.
        unsafe { raw.submit(self.vk, info, fence.vk) }
    }
}

impl Fences {
    /// A fence that is reset and that nobody else holds.
    fn take(&mut self, raw: &Arc<RawDevice>) -> Result<Arc<Fence>> {
        while let Some(mut fence) = self.idle.pop() {
            if let Some(alone) = Arc::get_mut(&mut fence) {
                alone.reset()?;
                return Ok(fence);
            }
        }
        Fence::new(raw)
    }

    /// Takes back the fences that are signalled. Those that a semaphore still holds go with it.
    fn land(&mut self) {
        while let Some(fence) = self.in_flight.front() {
            if !fence.signalled().is_ok_and(|signalled| signalled) {
                return;
            }
            self.idle.extend(self.in_flight.pop_front().filter(|f| Arc::strong_count(f) == 1));
        }
    }
}

impl Scratch {
    fn fill(&mut self, raw: &Arc<RawDevice>, submission: &Submission<'_>) -> Result<()> {
        self.command_buffers.clear();
        self.waits.clear();
        self.wait_values.clear();
        self.wait_stages.clear();
        self.signals.clear();
        self.signal_values.clear();
        for command_buffer in submission.command_buffers {
            let command_buffer = command_buffer.as_any().downcast_ref::<CommandBuffer>();
            self.command_buffers.extend(command_buffer.and_then(CommandBuffer::vk));
        }
        for point in submission.waits {
            let semaphore = Semaphore::of(point, raw)?;
            semaphore.awaitable(point.value)?;
            self.waits.push(semaphore.vk());
            self.wait_values.push(point.value);
            self.wait_stages.push(vk::PipelineStageFlags::ALL_COMMANDS);
        }
        for point in submission.signals {
            let semaphore = Semaphore::of(point, raw)?;
            semaphore.signallable(point.value)?;
            self.signals.push(semaphore.vk());
            self.signal_values.push(point.value);
        }
        Ok(())
    }
}

/// What a submission does to timestamps; undone unless it is kept.
fn changes_of_timestamps(submission: &Submission<'_>) -> Result<SlotChanges> {
    let mut changes = SlotChanges::default();
    let Some(done) = submission.signals.first() else { return Ok(changes) };
    for command_buffer in submission.command_buffers {
        if let Some(command_buffer) = command_buffer.as_any().downcast_ref::<CommandBuffer>() {
            command_buffer.enter_timestamps(&mut changes, done)?;
        }
    }
    Ok(changes)
}

fn same(a: &SemaphorePoint, b: &SemaphorePoint) -> bool {
    Arc::ptr_eq(&a.semaphore, &b.semaphore) && a.value == b.value
}

/// Without timeline semaphores the device cannot wait: the host does, before it submits.
fn wait_on_host(raw: &Arc<RawDevice>, submission: &Submission<'_>) -> Result<()> {
    for point in submission.waits {
        Semaphore::of(point, raw)?;
        point.semaphore.wait(point.value, Deadline::Never)?;
    }
    Ok(())
}
