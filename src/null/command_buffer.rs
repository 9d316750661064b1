//! Command buffers: a list of commands that can be compared, and what they keep alive.

use std::any::Any;
use std::cell::Cell;
use std::ops;
use std::sync::Arc;

use super::timeline::Timeline;
use super::{Buffer, Event, Executable, KernelCall, Timestamps};
use crate::hal::timestamps::SlotUse;
use crate::hal::{
    self, BufferRange, CommandBufferUsage, CopyRegion, Dispatch, KernelLimits, QueueRole, Stages,
    validate,
};
use crate::{Error, Result};

/// A range of a buffer, which is named by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// [`Buffer::id`].
    pub buffer: u64,
    /// Bytes from the buffer's start.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// A recorded command; objects are named by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// See [`hal::CommandBuffer::copy`].
    Copy {
        /// Source buffer.
        src: u64,
        /// Target buffer.
        dst: u64,
        /// What is copied.
        regions: Vec<CopyRegion>,
    },
    /// See [`hal::CommandBuffer::fill`].
    Fill {
        /// Target.
        dst: Range,
        /// Repeated value.
        pattern: u32,
    },
    /// See [`hal::CommandBuffer::update`].
    Update {
        /// Target buffer.
        dst: u64,
        /// Bytes from its start.
        offset: u64,
        /// New contents.
        data: Vec<u8>,
    },
    /// See [`hal::CommandBuffer::dispatch`].
    Dispatch {
        /// The executable's name.
        kernel: String,
        /// One range per binding.
        bindings: Vec<Range>,
        /// Push constants.
        constants: Vec<u8>,
        /// Workgroups.
        groups: [u32; 3],
    },
    /// See [`hal::CommandBuffer::barrier`].
    Barrier {
        /// What comes first.
        before: Stages,
        /// What waits.
        after: Stages,
    },
    /// See [`hal::CommandBuffer::signal_event`].
    SignalEvent {
        /// [`Event::id`].
        event: u64,
        /// What comes first.
        before: Stages,
    },
    /// See [`hal::CommandBuffer::wait_event`].
    WaitEvent {
        /// [`Event::id`].
        event: u64,
        /// What comes first.
        before: Stages,
        /// What waits.
        after: Stages,
    },
    /// See [`hal::CommandBuffer::reset_event`].
    ResetEvent {
        /// [`Event::id`].
        event: u64,
        /// What comes first.
        before: Stages,
    },
    /// See [`hal::CommandBuffer::reset_timestamps`].
    ResetTimestamps {
        /// [`Timestamps::id`].
        timestamps: u64,
        /// The slots.
        slots: ops::Range<u32>,
    },
    /// See [`hal::CommandBuffer::write_timestamp`].
    WriteTimestamp {
        /// [`Timestamps::id`].
        timestamps: u64,
        /// The slot.
        slot: u32,
    },
}

/// A recording.
pub struct CommandBuffer {
    pub(super) recording: Arc<Recording>,
    pub(super) finished: bool,
    pub(super) usage: CommandBufferUsage,
    /// Since the recording began. A submission has no exclusive access.
    pub(super) was_submitted: Cell<bool>,
    role: QueueRole,
    limits: Arc<KernelLimits>,
    timestamp_valid_bits: u32,
}

/// Commands with the objects that they name; shared with the submissions that run them.
#[derive(Clone, Default)]
pub(super) struct Recording {
    pub(super) commands: Vec<Command>,
    buffers: Vec<Arc<dyn hal::Buffer>>,
    executables: Vec<Arc<dyn hal::Executable>>,
    events: Vec<Arc<dyn hal::Event>>,
    timestamps: Vec<Arc<dyn hal::Timestamps>>,
    pub(super) slot_uses: Vec<SlotUse>,
}

impl CommandBuffer {
    /// What has been recorded.
    pub fn commands(&self) -> &[Command] {
        &self.recording.commands
    }

    pub(super) fn new(
        role: QueueRole,
        usage: CommandBufferUsage,
        limits: Arc<KernelLimits>,
        timestamp_valid_bits: u32,
    ) -> Self {
        Self {
            recording: Arc::default(),
            finished: false,
            usage,
            was_submitted: Cell::new(false),
            role,
            limits,
            timestamp_valid_bits,
        }
    }

    fn record(&mut self) -> Result<&mut Recording> {
        if self.finished {
            return Err(Error::precondition("the command buffer is finished; reset it to record"));
        }
        Ok(Arc::make_mut(&mut self.recording))
    }
}

impl hal::CommandBuffer for CommandBuffer {
    fn copy(
        &mut self,
        src: &Arc<dyn hal::Buffer>,
        dst: &Arc<dyn hal::Buffer>,
        regions: &[CopyRegion],
    ) -> Result<()> {
        let recording = self.record()?;
        validate::copy(&**src, &**dst, regions)?;
        let (src, dst) = (recording.keep(src)?, recording.keep(dst)?);
        recording.commands.push(Command::Copy { src, dst, regions: regions.to_vec() });
        Ok(())
    }

    fn fill(&mut self, dst: &BufferRange, pattern: u32) -> Result<()> {
        let recording = self.record()?;
        validate::fill(dst)?;
        let dst = recording.keep_range(dst)?;
        recording.commands.push(Command::Fill { dst, pattern });
        Ok(())
    }

    fn update(&mut self, dst: &Arc<dyn hal::Buffer>, offset: u64, data: &[u8]) -> Result<()> {
        let recording = self.record()?;
        validate::update(&**dst, offset, data)?;
        let dst = recording.keep(dst)?;
        recording.commands.push(Command::Update { dst, offset, data: data.to_vec() });
        Ok(())
    }

    fn dispatch(&mut self, dispatch: &Dispatch<'_>) -> Result<()> {
        let (limits, role) = (self.limits.clone(), self.role);
        let recording = self.record()?;
        validate::dispatch(dispatch, role, &limits)?;
        for (bound, expected) in dispatch.bindings.iter().zip(dispatch.executable.bindings()) {
            validate::binding(bound, bound.buffer.size(), expected, &limits)
                .map_err(|error| error.within(dispatch.executable.name()))?;
        }
        if !dispatch.executable.as_any().is::<Executable>() {
            return Err(foreign("an executable"));
        }
        let bindings =
            dispatch.bindings.iter().map(|b| recording.keep_range(b)).collect::<Result<_>>()?;
        recording.executables.push(dispatch.executable.clone());
        recording.commands.push(Command::Dispatch {
            kernel: dispatch.executable.name().to_owned(),
            bindings,
            constants: dispatch.constants.to_vec(),
            groups: dispatch.groups,
        });
        Ok(())
    }

    fn barrier(&mut self, before: Stages, after: Stages) -> Result<()> {
        self.record()?.commands.push(Command::Barrier { before, after });
        Ok(())
    }

    fn signal_event(&mut self, event: &Arc<dyn hal::Event>, before: Stages) -> Result<()> {
        let recording = self.record()?;
        let event = recording.keep_event(event)?;
        recording.commands.push(Command::SignalEvent { event, before });
        Ok(())
    }

    fn wait_event(
        &mut self,
        event: &Arc<dyn hal::Event>,
        before: Stages,
        after: Stages,
    ) -> Result<()> {
        let recording = self.record()?;
        let event = recording.keep_event(event)?;
        recording.commands.push(Command::WaitEvent { event, before, after });
        Ok(())
    }

    fn reset_event(&mut self, event: &Arc<dyn hal::Event>, before: Stages) -> Result<()> {
        let recording = self.record()?;
        let event = recording.keep_event(event)?;
        recording.commands.push(Command::ResetEvent { event, before });
        Ok(())
    }

    fn reset_timestamps(
        &mut self,
        timestamps: &Arc<dyn hal::Timestamps>,
        slots: ops::Range<u32>,
    ) -> Result<()> {
        let role = self.role;
        let recording = self.record()?;
        let set = Timestamps::of(&**timestamps)?;
        validate::reset_timestamps(set, &slots, role)?;
        recording.slot_uses.push(SlotUse::reset(&set.slots, slots.clone()));
        let timestamps = recording.keep_timestamps(timestamps, set.id());
        recording.commands.push(Command::ResetTimestamps { timestamps, slots });
        Ok(())
    }

    fn write_timestamp(&mut self, timestamps: &Arc<dyn hal::Timestamps>, slot: u32) -> Result<()> {
        let (role, valid_bits) = (self.role, self.timestamp_valid_bits);
        let recording = self.record()?;
        let set = Timestamps::of(&**timestamps)?;
        validate::write_timestamp(set, slot, role, valid_bits)?;
        recording.slot_uses.push(SlotUse::write(&set.slots, slot));
        let timestamps = recording.keep_timestamps(timestamps, set.id());
        recording.commands.push(Command::WriteTimestamp { timestamps, slot });
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.record()?;
        self.finished = true;
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        self.recording = Arc::default();
        self.finished = false;
        self.was_submitted.set(false);
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Recording {
    /// Does what the commands say.
    pub(super) fn run(&self, timeline: &Timeline) -> Result<()> {
        for command in &self.commands {
            match command {
                Command::Copy { src, dst, regions } => {
                    let (src, dst) = (self.buffer(*src)?, self.buffer(*dst)?);
                    for region in regions {
                        let (from, to) = (src.at(region.src_offset), dst.at(region.dst_offset));
                        // SAFETY: both ranges were checked when the copy was recorded, and the
                        // recording keeps both buffers.
                        unsafe { std::ptr::copy(from, to, region.size as usize) };
                    }
                }
                Command::Fill { dst, pattern } => {
                    let bytes = pattern.to_ne_bytes().repeat((dst.size / 4) as usize);
                    self.buffer(dst.buffer)?.write(dst.offset, &bytes)?;
                }
                Command::Update { dst, offset, data } => {
                    self.buffer(*dst)?.write(*offset, data)?;
                }
                Command::Dispatch { kernel: name, bindings, constants, groups } => {
                    if let Some(kernel) = &timeline.options.kernel {
                        let bindings = bindings
                            .iter()
                            .map(|range| Ok((self.buffer(range.buffer)?, *range)))
                            .collect::<Result<_>>()?;
                        kernel(&KernelCall { name, constants, groups: *groups, bindings })?;
                    }
                }
                Command::WriteTimestamp { timestamps, slot } => {
                    self.timestamps(*timestamps)?.write(*slot, timeline.ticks());
                }
                Command::Barrier { .. }
                | Command::SignalEvent { .. }
                | Command::WaitEvent { .. }
                | Command::ResetEvent { .. }
                | Command::ResetTimestamps { .. } => {}
            }
            timeline.command_ran();
        }
        Ok(())
    }

    fn keep(&mut self, buffer: &Arc<dyn hal::Buffer>) -> Result<u64> {
        let id = Buffer::of(&**buffer).ok_or_else(|| foreign("a buffer"))?.id();
        if !self.buffers.iter().any(|kept| kept.native_handle() == id) {
            self.buffers.push(buffer.clone());
        }
        Ok(id)
    }

    fn keep_range(&mut self, range: &BufferRange) -> Result<Range> {
        let buffer = self.keep(range.buffer)?;
        Ok(Range { buffer, offset: range.offset, size: range.size })
    }

    fn keep_event(&mut self, event: &Arc<dyn hal::Event>) -> Result<u64> {
        let id = event.as_any().downcast_ref::<Event>().ok_or_else(|| foreign("an event"))?.id();
        self.events.push(event.clone());
        Ok(id)
    }

    fn keep_timestamps(&mut self, timestamps: &Arc<dyn hal::Timestamps>, id: u64) -> u64 {
        if self.timestamps(id).is_err() {
            self.timestamps.push(timestamps.clone());
        }
        id
    }

    fn timestamps(&self, id: u64) -> Result<&Timestamps> {
        self.timestamps
            .iter()
            .filter_map(|timestamps| Timestamps::of(&**timestamps).ok())
            .find(|timestamps| timestamps.id() == id)
            .ok_or_else(|| Error::internal(format!("recording lost its timestamps {id}")))
    }

    fn buffer(&self, id: u64) -> Result<&Buffer> {
        self.buffers
            .iter()
            .filter_map(|buffer| Buffer::of(&**buffer))
            .find(|buffer| buffer.id() == id)
            .ok_or_else(|| Error::internal(format!("recording lost its buffer {id}")))
    }
}

fn foreign(what: &str) -> Error {
    Error::invalid(format!("{what} of another driver was given to the null driver"))
}
