//! Command buffers.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use ash::vk;

use super::event::Event;
use super::executable::Executable;
use super::layout::Layout;
use super::queue::Lane;
use super::raw_device::RawDevice;
use super::recording::Recording;
use super::shared::Shared;
use super::timestamps::Timestamps;
use super::{conv, error};
use crate::hal::timestamps::{SlotChanges, SlotUse};
use crate::hal::{
    self, BufferRange, CommandBufferUsage, CopyRegion, Dispatch, KernelLimits, QueueRole,
    SemaphorePoint, Stages, Submission, validate,
};
use crate::{Error, Result};

/// What an event orders: signal and wait must name the same stages
/// (VUID-vkCmdWaitEvents-srcStageMask-01158), and the wait does not know the signal's.
const EVENT_STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::TRANSFER.as_raw() | vk::PipelineStageFlags::COMPUTE_SHADER.as_raw(),
);

/// A command buffer.
pub(super) struct CommandBuffer {
    shared: Arc<Shared>,
    lane: usize,
    role: QueueRole,
    usage: CommandBufferUsage,
    state: State,
    /// Borrowed for moments only: by a submission, which has no exclusive access, and through
    /// `get_mut` by everything else. `None` after a reset that failed.
    recording: RefCell<Option<Box<Recording>>>,
    bound: Bound,
    regions: Vec<vk::BufferCopy>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Recording,
    Finished,
    /// Recording or resetting failed; a reset may help.
    Broken,
}

/// What the recording has bound so far, so that it is not bound again.
#[derive(Default)]
struct Bound {
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    constants: Vec<u8>,
    buffers: Vec<vk::DescriptorBufferInfo>,
    /// The descriptors of the dispatch in hand.
    next: Vec<vk::DescriptorBufferInfo>,
}

impl CommandBuffer {
    pub(super) fn create(
        shared: &Arc<Shared>,
        lane: &Lane,
        usage: CommandBufferUsage,
    ) -> Result<Self> {
        shared.raw.check()?;
        shared.drain(lane);
        let recording = shared.idle.take(&shared.raw, lane.family)?;
        recording.begin(usage)?;
        Ok(Self {
            shared: shared.clone(),
            lane: lane.index,
            role: lane.role,
            usage,
            state: State::Recording,
            recording: RefCell::new(Some(recording)),
            bound: Bound::default(),
            regions: Vec::new(),
        })
    }

    /// The command buffer behind a HAL command buffer, if it is one of this device.
    pub(super) fn of<'a>(
        command_buffer: &'a dyn hal::CommandBuffer,
        shared: &Arc<Shared>,
    ) -> Result<&'a Self> {
        match command_buffer.as_any().downcast_ref::<Self>() {
            Some(ours) if Arc::ptr_eq(&ours.shared, shared) => Ok(ours),
            _ => Err(Error::invalid("a command buffer of another device was given")),
        }
    }

    /// Whether it, which is at `index` of the submission's list, can be submitted to a queue of the
    /// family.
    pub(super) fn submittable(
        &self,
        family: u32,
        submission: &Submission<'_>,
        index: usize,
    ) -> Result<()> {
        if self.state != State::Finished {
            return Err(Error::precondition(
                "a command buffer was submitted before it was finished",
            ));
        }
        let recording = self.recording.borrow();
        let was_submitted = recording.as_ref().is_some_and(|recording| recording.was_submitted());
        validate::submission_of(self.usage, was_submitted, submission, index)?;
        let own = recording.as_ref().map(|recording| recording.family());
        if own != Some(family) {
            return Err(Error::invalid(format!(
                "a command buffer made for queue family {own:?} was submitted to a queue of family \
                 {family}"
            )));
        }
        Ok(())
    }

    /// The driver's handle.
    pub(super) fn vk(&self) -> Option<vk::CommandBuffer> {
        self.recording.borrow().as_ref().map(|recording| recording.vk)
    }

    /// Enters what it does to timestamps, for a submission that has passed at `done`.
    pub(super) fn enter_timestamps(
        &self,
        changes: &mut SlotChanges,
        done: &SemaphorePoint,
    ) -> Result<()> {
        match self.recording.borrow().as_ref() {
            Some(recording) => changes.enter(&recording.slot_uses, done),
            None => Ok(()),
        }
    }

    /// Notes a submission to the queue `lane` that has passed at `point`.
    pub(super) fn submitted(&self, lane: usize, point: &SemaphorePoint) {
        if let Some(recording) = self.recording.borrow_mut().as_mut() {
            recording.submitted(lane, point);
        }
    }

    /// The open recording and what is beside it.
    #[inline]
    fn open(&mut self) -> Result<Open<'_>> {
        self.shared.raw.check()?;
        let recording = match self.recording.get_mut() {
            Some(recording) if self.state == State::Recording => recording,
            _ => return Err(not_recording(self.state)),
        };
        Ok(Open {
            raw: &self.shared.raw,
            limits: &self.shared.properties.kernel,
            role: self.role,
            recording,
            bound: &mut self.bound,
            regions: &mut self.regions,
        })
    }

    /// Gives the recording away: to its queue if it is in flight, else for reuse.
    fn release(&mut self) {
        let Some(recording) = self.recording.get_mut().take() else { return };
        if recording.in_flight() {
            let lane = recording.lane();
            self.shared.lanes[lane].state.lock().in_flight.retire(recording);
        } else {
            self.shared.idle.give_back(recording);
        }
    }

    fn restart(&mut self) -> Result<()> {
        let in_flight = self.recording.get_mut().as_ref().is_none_or(|r| r.in_flight());
        if in_flight {
            self.release();
            let lane = &self.shared.lanes[self.lane];
            self.shared.drain(lane);
            let fresh = self.shared.idle.take(&self.shared.raw, lane.family)?;
            *self.recording.get_mut() = Some(fresh);
        } else if let Some(recording) = self.recording.get_mut() {
            recording.clear()?;
        }
        match self.recording.get_mut() {
            Some(recording) => recording.begin(self.usage),
            None => Err(Error::internal("a command buffer has no recording")),
        }
    }
}

/// A command buffer's parts while a command is recorded.
struct Open<'a> {
    raw: &'a Arc<RawDevice>,
    limits: &'a KernelLimits,
    role: QueueRole,
    recording: &'a mut Recording,
    bound: &'a mut Bound,
    regions: &'a mut Vec<vk::BufferCopy>,
}

impl hal::CommandBuffer for CommandBuffer {
    fn copy(
        &mut self,
        src: &Arc<dyn hal::Buffer>,
        dst: &Arc<dyn hal::Buffer>,
        regions: &[CopyRegion],
    ) -> Result<()> {
        let open = self.open()?;
        validate::copy(&**src, &**dst, regions)?;
        let (from, to) = (open.recording.keep_buffer(src)?, open.recording.keep_buffer(dst)?);
        open.regions.clear();
        open.regions.extend(regions.iter().map(conv::region));
        // SAFETY: VUID-vkCmdCopyBuffer-size-00115, -00116, -pRegions-00117: every region lies in
        // both buffers and does not overlap itself (`validate::copy`).
        unsafe {
            open.raw.vk.cmd_copy_buffer(open.recording.vk, from.vk, to.vk, open.regions);
        }
        Ok(())
    }

    fn fill(&mut self, dst: &BufferRange, pattern: u32) -> Result<()> {
        let open = self.open()?;
        validate::fill(dst)?;
        let to = open.recording.keep_buffer(dst.buffer)?;
        // SAFETY: VUID-vkCmdFillBuffer-dstOffset-00024 to -size-00028: words inside the buffer
        // (`validate::fill`).
        unsafe {
            open.raw.vk.cmd_fill_buffer(open.recording.vk, to.vk, dst.offset, dst.size, pattern);
        }
        Ok(())
    }

    fn update(&mut self, dst: &Arc<dyn hal::Buffer>, offset: u64, data: &[u8]) -> Result<()> {
        let open = self.open()?;
        validate::update(&**dst, offset, data)?;
        let to = open.recording.keep_buffer(dst)?;
        // SAFETY: VUID-vkCmdUpdateBuffer-dstOffset-00036, -dataSize-00037, -00038: words inside
        // the buffer, 65,536 bytes at most (`validate::update`).
        unsafe { open.raw.vk.cmd_update_buffer(open.recording.vk, to.vk, offset, data) };
        Ok(())
    }

    fn dispatch(&mut self, dispatch: &Dispatch<'_>) -> Result<()> {
        validate::dispatch(dispatch, self.role, &self.shared.properties.kernel)?;
        let mut open = self.open()?;
        let executable = Executable::of(&**dispatch.executable, open.raw)?;
        open.recording.keep_executable(dispatch.executable);
        open.bound.next.clear();
        for (bound, expected) in dispatch.bindings.iter().zip(&executable.bindings) {
            let buffer = open.recording.keep_buffer(bound.buffer)?;
            validate::binding(bound, buffer.size, expected, open.limits)
                .map_err(|error| error.within(&executable.name))?;
            let (buffer, offset, range) = (buffer.vk, bound.offset, bound.size);
            open.bound.next.push(vk::DescriptorBufferInfo { buffer, offset, range });
        }
        open.bind_pipeline(executable);
        open.bind_descriptors(&executable.layout)?;
        open.push_constants(&executable.layout, dispatch.constants);
        let [x, y, z] = dispatch.groups;
        // SAFETY: VUID-vkCmdDispatch-groupCountX-00386 to -groupCountZ-00388 (`validate::dispatch`);
        // -None-08600: every binding of the pipeline is bound.
        unsafe { open.raw.vk.cmd_dispatch(open.recording.vk, x, y, z) };
        Ok(())
    }

    fn barrier(&mut self, before: Stages, after: Stages) -> Result<()> {
        let open = self.open()?;
        open.barrier(before, after);
        Ok(())
    }

    fn signal_event(&mut self, event: &Arc<dyn hal::Event>, before: Stages) -> Result<()> {
        let mut open = self.open()?;
        let vk = open.event(event, before)?;
        if open.role == QueueRole::Compute {
            // SAFETY: VUID-vkCmdSetEvent-commandBuffer-cmdpool: a family that computes.
            unsafe { open.raw.vk.cmd_set_event(open.recording.vk, vk, EVENT_STAGES) };
        }
        Ok(())
    }

    fn wait_event(
        &mut self,
        event: &Arc<dyn hal::Event>,
        before: Stages,
        after: Stages,
    ) -> Result<()> {
        let mut open = self.open()?;
        let vk = open.event(event, before)?;
        if open.role != QueueRole::Compute {
            // Copy engines have no events; a barrier orders more, not less.
            open.barrier(before, after);
            return Ok(());
        }
        let (_, src_access) = conv::before(before, open.role);
        let (dst_stages, dst_access) = conv::after(after, open.role);
        let barrier =
            vk::MemoryBarrier::default().src_access_mask(src_access).dst_access_mask(dst_access);
        // SAFETY: VUID-vkCmdWaitEvents-srcStageMask-01158: signalled with the same stages;
        // -srcAccessMask-02815: the accesses are those of the stages.
        unsafe {
            open.raw.vk.cmd_wait_events(
                open.recording.vk,
                &[vk],
                EVENT_STAGES,
                dst_stages,
                &[barrier],
                &[],
                &[],
            );
        }
        Ok(())
    }

    fn reset_event(&mut self, event: &Arc<dyn hal::Event>, before: Stages) -> Result<()> {
        let mut open = self.open()?;
        let vk = open.event(event, before)?;
        if open.role == QueueRole::Compute {
            // SAFETY: VUID-vkCmdResetEvent-commandBuffer-cmdpool: a family that computes.
            unsafe { open.raw.vk.cmd_reset_event(open.recording.vk, vk, EVENT_STAGES) };
        }
        Ok(())
    }

    fn reset_timestamps(
        &mut self,
        timestamps: &Arc<dyn hal::Timestamps>,
        slots: Range<u32>,
    ) -> Result<()> {
        let open = self.open()?;
        let set = Timestamps::of(&**timestamps, open.raw)?;
        validate::reset_timestamps(set, &slots, open.role)?;
        open.recording.keep_timestamps(timestamps);
        open.recording.slot_uses.push(SlotUse::reset(&set.slots, slots.clone()));
        let (first, count) = (slots.start, slots.end - slots.start);
        // SAFETY: VUID-vkCmdResetQueryPool-firstQuery-09436, -09437: inside the pool
        // (`validate::reset_timestamps`), in a family that computes.
        unsafe { open.raw.vk.cmd_reset_query_pool(open.recording.vk, set.vk, first, count) };
        Ok(())
    }

    fn write_timestamp(&mut self, timestamps: &Arc<dyn hal::Timestamps>, slot: u32) -> Result<()> {
        let valid_bits = self.shared.properties.timestamp_valid_bits(self.role);
        let open = self.open()?;
        let set = Timestamps::of(&**timestamps, open.raw)?;
        validate::write_timestamp(set, slot, open.role, valid_bits)?;
        open.recording.keep_timestamps(timestamps);
        open.recording.slot_uses.push(SlotUse::write(&set.slots, slot));
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        // SAFETY: VUID-vkCmdWriteTimestamp-query-04904: inside the pool; -timestampValidBits-00829:
        // a family with timestamps (`validate::write_timestamp`); -None-00830: submitted only after
        // a reset (`SlotChanges::enter`).
        unsafe { open.raw.vk.cmd_write_timestamp(open.recording.vk, stage, set.vk, slot) };
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let open = self.open()?;
        // SAFETY: VUID-vkEndCommandBuffer-commandBuffer-00059: it is recording.
        let ended = unsafe { open.raw.vk.end_command_buffer(open.recording.vk) };
        self.state = if ended.is_ok() { State::Finished } else { State::Broken };
        ended.map_err(|result| error::memory("vkEndCommandBuffer", result))
    }

    fn reset(&mut self) -> Result<()> {
        self.shared.raw.check()?;
        self.bound.forget();
        self.state = State::Broken;
        self.restart()?;
        self.state = State::Recording;
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CommandBuffer {
    fn drop(&mut self) {
        self.release();
    }
}

impl Open<'_> {
    #[inline]
    fn bind_pipeline(&mut self, executable: &Executable) {
        if self.bound.layout != executable.layout.pipeline {
            self.bound.layout = executable.layout.pipeline;
            self.bound.buffers.clear();
            self.bound.constants.clear();
        }
        if self.bound.pipeline != executable.pipeline {
            self.bound.pipeline = executable.pipeline;
            let point = vk::PipelineBindPoint::COMPUTE;
            // SAFETY: VUID-vkCmdBindPipeline-pipelineBindPoint-00779: a compute pipeline, in a
            // family that computes (`validate::dispatch`).
            unsafe {
                self.raw.vk.cmd_bind_pipeline(self.recording.vk, point, executable.pipeline);
            }
        }
    }

    #[inline]
    fn bind_descriptors(&mut self, layout: &Layout) -> Result<()> {
        if same_buffers(&self.bound.next, &self.bound.buffers) {
            return Ok(());
        }
        let infos = self.bound.next.as_ptr().cast();
        match self.raw.push_descriptors {
            Some(push) if layout.push => {
                // SAFETY: VUID-vkCmdPushDescriptorSetWithTemplateKHR-pData-01686: one info for each
                // entry of the template, which was made for set 0 of this layout.
                unsafe {
                    push(self.recording.vk, layout.template, layout.pipeline, 0, infos);
                }
            }
            _ => self.bind_set(layout, infos)?,
        }
        std::mem::swap(&mut self.bound.next, &mut self.bound.buffers);
        Ok(())
    }

    fn bind_set(&mut self, layout: &Layout, infos: *const std::ffi::c_void) -> Result<()> {
        let set = self.recording.descriptors.allocate(layout)?;
        // SAFETY: VUID-vkUpdateDescriptorSetWithTemplate-pData-01685: one info for each entry of
        // the template; the set is new, so no recording uses it yet.
        unsafe { self.raw.vk.update_descriptor_set_with_template(set, layout.template, infos) };
        // SAFETY: VUID-vkCmdBindDescriptorSets-pDescriptorSets-00358: allocated with the layout.
        unsafe {
            self.raw.vk.cmd_bind_descriptor_sets(
                self.recording.vk,
                vk::PipelineBindPoint::COMPUTE,
                layout.pipeline,
                0,
                &[set],
                &[],
            );
        }
        Ok(())
    }

    #[inline]
    fn push_constants(&mut self, layout: &Layout, constants: &[u8]) {
        if self.bound.constants == constants {
            return;
        }
        self.bound.constants.clear();
        self.bound.constants.extend_from_slice(constants);
        // SAFETY: VUID-vkCmdPushConstants-offset-01795: the layout's range is as long as the
        // constants (`validate::dispatch`).
        unsafe {
            self.raw.vk.cmd_push_constants(
                self.recording.vk,
                layout.pipeline,
                vk::ShaderStageFlags::COMPUTE,
                0,
                constants,
            );
        }
    }

    #[inline]
    fn barrier(&self, before: Stages, after: Stages) {
        let (src_stages, src_access) = conv::before(before, self.role);
        let (dst_stages, dst_access) = conv::after(after, self.role);
        let barrier =
            vk::MemoryBarrier::default().src_access_mask(src_access).dst_access_mask(dst_access);
        // SAFETY: VUID-vkCmdPipelineBarrier-srcStageMask-06461, -srcAccessMask-02815: stages of
        // the queue's family, with their own accesses (conv.rs).
        unsafe {
            self.raw.vk.cmd_pipeline_barrier(
                self.recording.vk,
                src_stages,
                dst_stages,
                vk::DependencyFlags::empty(),
                &[barrier],
                &[],
                &[],
            );
        }
    }

    /// An event's handle, after keeping the event.
    fn event(&mut self, event: &Arc<dyn hal::Event>, before: Stages) -> Result<vk::Event> {
        if before.contains(Stages::HOST) {
            return Err(Error::invalid(
                "an event cannot order accesses of the host (VUID-vkCmdSetEvent-stageMask-01149); \
                 use a barrier",
            ));
        }
        let vk = Event::of(&**event, self.raw)?.vk;
        self.recording.keep_event(event);
        Ok(vk)
    }
}

impl Bound {
    /// Nothing is bound in a new recording.
    fn forget(&mut self) {
        self.pipeline = vk::Pipeline::null();
        self.layout = vk::PipelineLayout::null();
        self.constants.clear();
        self.buffers.clear();
    }
}

#[inline]
fn same_buffers(a: &[vk::DescriptorBufferInfo], b: &[vk::DescriptorBufferInfo]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a.buffer == b.buffer && a.offset == b.offset && a.range == b.range)
}

#[cold]
fn not_recording(state: State) -> Error {
    Error::precondition(match state {
        State::Recording | State::Finished => {
            "the command buffer is finished; reset it to record again"
        }
        State::Broken => "recording failed before; reset the command buffer",
    })
}
