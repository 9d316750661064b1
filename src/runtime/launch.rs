//! Launches: arguments checked and turned into bindings, constants and a grid, once; then recorded
//! into a stream any number of times.

use std::sync::Arc;

use smallvec::SmallVec;

use super::arguments::Arguments;
use super::device::Device;
use super::function::{Function, Ready};
use super::memory::Allocation;
use super::profiler::Label;
use super::stream::{Bound, Recording, Stream, Use};
use super::value::Value;
use crate::hal::{BindingKind, BufferRange, CopyRegion, Dispatch, MemoryKind, Stages};
use crate::module::ScalarBlock;
use crate::{Error, Result};

/// Threads from which on a kernel is likely to run longer than its submission takes.
const WORTH_SUBMITTING: u64 = 1 << 16;

/// A launch with its arguments, for one device. Making it checks everything that does not depend on
/// what is allocated when it runs; running it is cheap, so keep one for a hot loop.
pub struct Launch {
    function: Arc<Function>,
    device: Arc<Device>,
    ready: Arc<Ready>,
    arguments: Arguments,
}

/// Runs `function` once on `stream`'s device, in its order. Returns before it has run. `args` are as
/// for [`Launch::new`], and are asked for one after the other.
pub fn launch(
    function: &Function,
    args: impl ExactSizeIterator<Item = Result<Value>>,
    stream: &Arc<Stream>,
) -> Result<()> {
    let device = stream.device();
    function.with_ready(device, |ready| {
        let mut arguments = Arguments::unset(function);
        set_all(&mut arguments, function, device, args)?;
        Call { function, device, ready, arguments: &arguments }.run(stream)
    })
}

impl Launch {
    /// A launch of `function` on `device`: `args` are the function's arguments, then one extent per
    /// launch tag, in the order of the tags.
    pub fn new(
        function: &Arc<Function>,
        device: &Arc<Device>,
        args: impl ExactSizeIterator<Item = Result<Value>>,
    ) -> Result<Self> {
        let ready = function.ready(device)?;
        let mut arguments = Arguments::unset(function);
        set_all(&mut arguments, function, device, args)?;
        Ok(Self { function: function.clone(), device: device.clone(), ready, arguments })
    }

    /// The device that it is for.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Replaces one argument or extent.
    pub fn set_arg(&mut self, index: usize, value: Value) -> Result<()> {
        let limits = &self.device.properties().kernel;
        self.arguments
            .set(&self.function, index, value, limits)
            .map_err(|error| in_kernel(&self.function, error))
    }

    /// Runs the kernel in `stream`'s order. Returns before it has run.
    pub fn run(&self, stream: &Arc<Stream>) -> Result<()> {
        let Self { function, device, ready, arguments } = self;
        Call { function, device, ready, arguments }.run(stream)
    }
}

fn set_all(
    arguments: &mut Arguments,
    function: &Function,
    device: &Device,
    args: impl ExactSizeIterator<Item = Result<Value>>,
) -> Result<()> {
    arguments
        .set_all(function, args, &device.properties().kernel)
        .map_err(|error| in_kernel(function, error))
}

/// A launch that is about to run.
struct Call<'a> {
    function: &'a Function,
    device: &'a Arc<Device>,
    ready: &'a Ready,
    arguments: &'a Arguments,
}

impl Call<'_> {
    fn run(&self, stream: &Arc<Stream>) -> Result<()> {
        if !Arc::ptr_eq(stream.device(), self.device) {
            return Err(Error::invalid(format!(
                "the stream belongs to device {}, the launch to device {}",
                stream.device().id(),
                self.device.id()
            )));
        }
        if self.arguments.is_empty() {
            return Ok(());
        }
        self.record(stream).map_err(|error| in_kernel(self.function, error))
    }

    fn record(&self, stream: &Arc<Stream>) -> Result<()> {
        let uses = &self.arguments.uses;
        let alignment = self.device.properties().kernel.storage_buffer_alignment;
        // Blocks start where both address and offset are aligned, so this settles most launches.
        if uses.iter().all(|used| used.address != 0 && used.address & (alignment - 1) == 0) {
            return self.record_with(stream, uses);
        }
        match self.misaligned(uses, alignment)? {
            misaligned if misaligned.is_empty() => self.record_with(stream, uses),
            misaligned => self.record_through_scratch(stream, uses, &misaligned),
        }
    }

    fn record_with(&self, stream: &Arc<Stream>, uses: &[Use]) -> Result<()> {
        stream.record(uses, Stages::COMPUTE, self.label(), |recording| {
            let bound = recording.bound;
            self.dispatch(recording, bound)
        })
    }

    fn label(&self) -> Label<'_> {
        Label::Kernel(self.function.name())
    }

    fn dispatch(&self, recording: &mut Recording<'_>, bound: &[Bound<'_>]) -> Result<()> {
        let groups = self.arguments.groups;
        let limit = self.device.properties().kernel.max_storage_buffer_range;
        let sizes = groups.into_iter().chain(self.function.info().local_size());
        if sizes.fold(1, |threads: u64, size| threads.saturating_mul(size.into()))
            < WORTH_SUBMITTING
        {
            recording.wait_for_company();
        }
        let uniform = match self.function.info().scalars {
            ScalarBlock::Uniform { .. } => {
                Some(recording.upload(self.arguments.scalars.len() as u64, |target| {
                    target.write_copy_of_slice(&self.arguments.scalars);
                })?)
            }
            ScalarBlock::None | ScalarBlock::PushConstants { .. } => None,
        };
        let mut storage = bound.iter().map(|bound| storage_range(bound, limit));
        let mut ranges = SmallVec::<[BufferRange<'_>; 8]>::new();
        for desc in self.function.bindings() {
            let range = match desc.kind {
                BindingKind::StorageBuffer => storage.next(),
                BindingKind::UniformBuffer => uniform.as_ref().map(|upload| upload.range()),
            };
            ranges.push(range.ok_or_else(|| Error::internal("a binding without a buffer"))?);
        }
        recording.commands.dispatch(&Dispatch {
            executable: &self.ready.executable,
            bindings: &ranges,
            constants: if uniform.is_some() { &[] } else { &self.arguments.scalars },
            groups,
        })
    }

    fn allocation(&self, used: &Use) -> Result<&Allocation> {
        self.device.memory().find(used.address).map_err(|error| used.tell(error))
    }

    /// The buffers whose offset the device cannot bind. None of them may be null.
    #[cold]
    fn misaligned(&self, uses: &[Use], alignment: u64) -> Result<SmallVec<[usize; 2]>> {
        if let Some(null) = uses.iter().find(|used| used.address == 0) {
            let error = Error::invalid("the buffer is null, and the grid is not empty");
            return Err(null.tell(error));
        }
        let mut misaligned = SmallVec::new();
        for (index, used) in uses.iter().enumerate() {
            if used.address & (alignment - 1) == 0 {
                continue;
            }
            let state = self.allocation(used)?.lock();
            let live = state.live_at(used.address)?;
            if !(live.offset + (used.address - live.address)).is_multiple_of(alignment) {
                misaligned.push(index);
            }
        }
        Ok(misaligned)
    }

    /// Buffers at offsets that the device cannot bind are copied to scratch memory, and back if the
    /// kernel writes to them. All of it is one step of the stream: what others write to the rest of
    /// an allocation meanwhile would be undone by the copy back.
    #[cold]
    fn record_through_scratch(
        &self,
        stream: &Arc<Stream>,
        uses: &[Use],
        misaligned: &[usize],
    ) -> Result<()> {
        let mut uses = SmallVec::<[Use; 8]>::from_slice(uses);
        let mut scratch = Scratch { device: self.device, addresses: SmallVec::new() };
        for &index in misaligned {
            self.check_alone(&uses, index)?;
            let used = &uses[index];
            let size = {
                let state = self.allocation(used)?.lock();
                let live = state.live_at(used.address)?;
                live.size - (used.address - live.address)
            };
            let address = self.device.allocate(size.max(1), 256, MemoryKind::Device)?;
            scratch.addresses.push(address);
            uses.push(Use { address, size: 0, writes: true, argument: None });
        }
        stream.record(&uses, Stages::ON_DEVICE, self.label(), |recording| {
            let (own, scratch) = recording.bound.split_at(self.arguments.uses.len());
            let mut bound = SmallVec::<[Bound<'_>; 8]>::from_slice(own);
            for (&index, scratch) in misaligned.iter().zip(scratch) {
                copy_all(recording, &own[index], scratch)?;
                bound[index] = *scratch;
            }
            recording.commands.barrier(Stages::TRANSFER, Stages::COMPUTE)?;
            self.dispatch(recording, &bound)?;
            recording.commands.barrier(Stages::COMPUTE, Stages::TRANSFER)?;
            for (&index, scratch) in misaligned.iter().zip(scratch) {
                if uses[index].writes {
                    copy_all(recording, scratch, &own[index])?;
                }
            }
            Ok(())
        })
    }

    /// Copying a part of an allocation back must not undo what the kernel wrote to another.
    fn check_alone(&self, uses: &[Use], index: usize) -> Result<()> {
        let used = &uses[index];
        let allocation = self.allocation(used)?;
        let mut shared = false;
        for (other, candidate) in uses.iter().enumerate() {
            shared |= other != index
                && (candidate.writes || used.writes)
                && std::ptr::eq(self.allocation(candidate)?, allocation);
        }
        if !shared {
            return Ok(());
        }
        Err(used.tell(Error::unsupported(format!(
            "address {:#x} is no multiple of {} (minStorageBufferOffsetAlignment), and another \
             argument lies in the same allocation; copy it to memory of its own",
            used.address,
            self.device.properties().kernel.storage_buffer_alignment
        ))))
    }
}

/// Scratch memory, given back when the launch is recorded: whoever gets it comes after.
struct Scratch<'a> {
    device: &'a Arc<Device>,
    addresses: SmallVec<[u64; 2]>,
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        for &address in &self.addresses {
            // It was allocated by this launch alone, so this cannot fail.
            let _ = self.device.free(address);
        }
    }
}

/// Copies as many bytes as both have.
fn copy_all(recording: &mut Recording<'_>, from: &Bound<'_>, to: &Bound<'_>) -> Result<()> {
    let size = from.available.min(to.available);
    if size == 0 {
        return Ok(());
    }
    let region = CopyRegion { src_offset: from.offset, dst_offset: to.offset, size };
    recording.commands.copy(from.buffer, to.buffer, &[region])
}

/// What a kernel sees of a buffer: to the end of its allocation, whole words, as far as the device
/// can bind.
fn storage_range<'a>(bound: &Bound<'a>, limit: u64) -> BufferRange<'a> {
    let size = bound.available.next_multiple_of(4).max(4);
    bound.range(0, size.min(bound.reserved).min(limit))
}

fn in_kernel(function: &Function, error: Error) -> Error {
    error.within(format_args!("kernel `{}`", function.info().name()))
}
