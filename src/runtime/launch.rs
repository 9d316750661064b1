//! Launches: arguments checked and turned into bindings, constants and a grid, once; then recorded
//! into a stream any number of times.

use std::sync::Arc;

use smallvec::SmallVec;

use super::copy::copy_bytes;
use super::device::Device;
use super::function::{Function, Ready};
use super::profiler::Label;
use super::stream::{Bound, Recording, Stream, Use};
use super::value::Value;
use crate::hal::{BindingKind, BufferRange, Dispatch, MemoryKind, Stages};
use crate::module::{ArgKind, GridFold, LaunchTag, ScalarBlock, check_dynamic_shared_memory};
use crate::{Error, Result};

/// A launch with its arguments, for one device. Making it checks everything that does not depend on
/// what is allocated when it runs; running it is cheap, so keep one for a hot loop.
pub struct Launch {
    function: Arc<Function>,
    device: Arc<Device>,
    ready: Arc<Ready>,
    /// The scalar block's bytes.
    scalars: SmallVec<[u8; 128]>,
    /// The buffer arguments' addresses, by rising binding.
    addresses: SmallVec<[u64; 8]>,
    extents: Extents,
}

/// The launch extents as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extents {
    grid: [u32; 3],
    threads: [u32; 3],
    dynamic_shared_memory: u32,
}

impl Launch {
    /// A launch of `function` on `device`: `args` are the function's arguments, then one extent per
    /// launch tag, in the order of the tags.
    pub fn new(function: &Arc<Function>, device: &Arc<Device>, args: &[Value]) -> Result<Self> {
        let ready = function.ready(device)?;
        function.check_arg_count(args.len())?;
        let mut launch = Self {
            function: function.clone(),
            device: device.clone(),
            ready,
            scalars: SmallVec::from_elem(0, function.info().scalars.size() as usize),
            addresses: SmallVec::from_elem(0, function.buffers().len()),
            extents: Extents { grid: [1; 3], threads: [1; 3], dynamic_shared_memory: 0 },
        };
        for (index, &value) in args.iter().enumerate() {
            launch.store(index, value)?;
        }
        launch.check_extents().map_err(|error| in_kernel(function, error))?;
        Ok(launch)
    }

    /// The device that it is for.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Replaces one argument or extent.
    pub fn set_arg(&mut self, index: usize, value: Value) -> Result<()> {
        let before = self.extents;
        self.store(index, value)?;
        self.check_extents().map_err(|error| {
            self.extents = before;
            in_kernel(&self.function, error)
        })
    }

    /// Runs the kernel in `stream`'s order. Returns before it has run.
    pub fn run(&self, stream: &Arc<Stream>) -> Result<()> {
        if !Arc::ptr_eq(stream.device(), &self.device) {
            return Err(Error::invalid(format!(
                "the stream belongs to device {}, the launch to device {}",
                stream.device().id(),
                self.device.id()
            )));
        }
        if self.extents.grid.contains(&0) {
            return Ok(());
        }
        self.record(stream).map_err(|error| in_kernel(&self.function, error))
    }

    fn store(&mut self, index: usize, value: Value) -> Result<()> {
        self.try_store(index, value).map_err(|error| {
            in_kernel(&self.function, error.within(format_args!("argument {index}")))
        })
    }

    fn try_store(&mut self, index: usize, value: Value) -> Result<()> {
        let function = &self.function;
        let Some(arg) = function.args().get(index) else {
            return self.store_extent(index - function.args().len(), value);
        };
        match (*arg, value) {
            (ArgKind::Buffer { .. }, Value::Address(address)) => {
                let place = function.buffers().iter().position(|buffer| buffer.arg == index);
                if let Some(slot) = place.and_then(|place| self.addresses.get_mut(place)) {
                    *slot = address;
                }
                Ok(())
            }
            (ArgKind::Buffer { .. }, _) => {
                Err(Error::invalid(format!("a buffer is expected, {value} was given")))
            }
            (ArgKind::Scalar { dtype, offset, size, shader }, _) => {
                let range = offset as usize..(offset + size) as usize;
                match self.scalars.get_mut(range) {
                    Some(target) => value.store(dtype, shader, target),
                    None => Err(Error::internal("a scalar outside its block")),
                }
            }
        }
    }

    fn store_extent(&mut self, index: usize, value: Value) -> Result<()> {
        let tag = self.function.info().launch_args().nth(index);
        let tag = tag.ok_or_else(|| Error::invalid("the launch has no such argument"))?;
        let target = match *tag {
            LaunchTag::BlockIdx(axis) => self.extents.grid.get_mut(axis),
            LaunchTag::ThreadIdx(axis) => self.extents.threads.get_mut(axis),
            LaunchTag::DynSharedMemory => Some(&mut self.extents.dynamic_shared_memory),
            LaunchTag::ParamWriteAccess(_) | LaunchTag::Hint | LaunchTag::Unknown(_) => None,
        };
        match target {
            Some(target) => *target = value.as_extent()?,
            None => return Err(Error::internal("an extent for a tag that takes none")),
        }
        Ok(())
    }

    fn check_extents(&mut self) -> Result<()> {
        let info = self.function.info();
        let limits = &self.device.properties().kernel;
        let local_size = info.local_size();
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            let given = self.extents.threads[axis];
            let tagged = info.launch_tags.contains(&LaunchTag::ThreadIdx(axis));
            if tagged && given != local_size[axis] {
                return Err(Error::invalid(format!(
                    "threadIdx.{name} is {given}, but the kernel was built for {} threads in {name}",
                    local_size[axis]
                )));
            }
            let limit = limits.max_workgroup_count[axis];
            let folds = axis == 0 && info.grid_fold.is_some();
            if self.extents.grid[axis] > limit && !folds {
                return Err(Error::invalid(format!(
                    "blockIdx.{name} is {}, the device allows {limit} (maxComputeWorkGroupCount); \
                     split the launch",
                    self.extents.grid[axis]
                )));
            }
        }
        if self.extents.dynamic_shared_memory > 0 {
            let bytes = u64::from(self.extents.dynamic_shared_memory);
            check_dynamic_shared_memory(info, bytes, limits)?;
        }
        self.groups().map(|_| ())?;
        if let Some(GridFold::HiddenExtent { offset }) = info.grid_fold {
            // Workgroups whose index exceeds the value leave at once: the last one is x - 1.
            let last = self.extents.grid[0].saturating_sub(1);
            let range = offset as usize..offset as usize + 4;
            match self.scalars.get_mut(range) {
                Some(target) => target.copy_from_slice(&last.to_le_bytes()),
                None => return Err(Error::internal("the grid's extent outside the scalar block")),
            }
        }
        Ok(())
    }

    /// The grid to dispatch: x folded into z where it is over the limit and the kernel knows how.
    fn groups(&self) -> Result<[u32; 3]> {
        let [x, y, z] = self.extents.grid;
        let limits = self.device.properties().kernel.max_workgroup_count;
        if x <= limits[0] {
            return Ok([x, y, z]);
        }
        let layers = x.div_ceil(limits[0]);
        if z > 1 || layers > limits[2] {
            return Err(Error::invalid(format!(
                "blockIdx.x is {x} with blockIdx.z {z}, the device allows {limits:?} \
                 (maxComputeWorkGroupCount), and x can be folded into z only where z is 1; split \
                 the launch"
            )));
        }
        Ok([x.div_ceil(layers), y, layers])
    }

    fn record(&self, stream: &Arc<Stream>) -> Result<()> {
        let uses = self.uses(&self.addresses)?;
        match self.misaligned(&uses)? {
            misaligned if misaligned.is_empty() => self.record_with(stream, &uses),
            misaligned => self.record_through_scratch(stream, &uses, &misaligned),
        }
    }

    fn uses<'a>(&'a self, addresses: &[u64]) -> Result<SmallVec<[Use<'a>; 8]>> {
        let make = |(buffer, &address): (&super::function::BufferArg, &u64)| {
            let found = if address == 0 {
                Err(Error::invalid("the buffer is null, and the grid is not empty"))
            } else {
                self.device.memory().find(address)
            };
            let allocation =
                found.map_err(|error| error.within(format_args!("argument {}", buffer.arg)))?;
            Ok(Use { allocation, address, size: 0, writes: buffer.written })
        };
        self.function.buffers().iter().zip(addresses).map(make).collect()
    }

    fn record_with(&self, stream: &Arc<Stream>, uses: &[Use<'_>]) -> Result<()> {
        let groups = self.groups()?;
        let limit = self.device.properties().kernel.max_storage_buffer_range;
        let label = Label::Kernel(self.function.name());
        stream.record(uses, Stages::COMPUTE, label, |recording| {
            let uniform = match self.function.info().scalars {
                ScalarBlock::Uniform { .. } => {
                    Some(recording.upload(self.scalars.len() as u64, |target| {
                        target.write_copy_of_slice(&self.scalars);
                    })?)
                }
                ScalarBlock::None | ScalarBlock::PushConstants { .. } => None,
            };
            let Recording { commands, bound, .. } = recording;
            let mut storage = bound.iter().map(|bound| storage_range(bound, limit));
            let mut ranges = SmallVec::<[BufferRange<'_>; 8]>::new();
            for desc in self.function.bindings() {
                let range = match desc.kind {
                    BindingKind::StorageBuffer => storage.next(),
                    BindingKind::UniformBuffer => uniform.as_ref().map(|upload| upload.range()),
                };
                ranges.push(range.ok_or_else(|| Error::internal("a binding without a buffer"))?);
            }
            commands.dispatch(&Dispatch {
                executable: &self.ready.executable,
                bindings: &ranges,
                constants: if uniform.is_some() { &[] } else { &self.scalars },
                groups,
            })
        })
    }

    /// The buffers whose offset the device cannot bind.
    fn misaligned(&self, uses: &[Use<'_>]) -> Result<SmallVec<[usize; 2]>> {
        let alignment = self.device.properties().kernel.storage_buffer_alignment;
        let mut misaligned = SmallVec::new();
        for (index, used) in uses.iter().enumerate() {
            // Blocks start where both address and offset are aligned, so this settles most.
            if used.address.is_multiple_of(alignment) {
                continue;
            }
            let state = used.allocation.lock();
            let live = state.live_at(used.address)?;
            if !(live.offset + (used.address - live.address)).is_multiple_of(alignment) {
                misaligned.push(index);
            }
        }
        Ok(misaligned)
    }

    /// Buffers at offsets that the device cannot bind are copied to scratch memory, and back if the
    /// kernel writes to them. All of it happens in the stream's order.
    #[cold]
    fn record_through_scratch(
        &self,
        stream: &Arc<Stream>,
        uses: &[Use<'_>],
        misaligned: &[usize],
    ) -> Result<()> {
        for &index in misaligned {
            self.check_alone(uses, index)?;
        }
        let mut scratch = Scratch { device: &self.device, moved: SmallVec::new() };
        let mut addresses = self.addresses.clone();
        for &index in misaligned {
            let used = &uses[index];
            let size = {
                let state = used.allocation.lock();
                let live = state.live_at(used.address)?;
                live.size - (used.address - live.address)
            };
            let address = self.device.allocate(size.max(1), 256, MemoryKind::Device)?;
            let moved = Moved { own: used.address, scratch: address, size };
            scratch.moved.push((moved, used.writes));
            addresses[index] = address;
            copy_bytes(&self.device, stream, moved.own, moved.scratch, size)?;
        }
        self.record_with(stream, &self.uses(&addresses)?)?;
        for &(moved, written) in &scratch.moved {
            if written {
                copy_bytes(&self.device, stream, moved.scratch, moved.own, moved.size)?;
            }
        }
        Ok(())
    }

    /// Copying a part of an allocation back must not undo what the kernel wrote to another.
    fn check_alone(&self, uses: &[Use<'_>], index: usize) -> Result<()> {
        let used = &uses[index];
        let shares = |(other, candidate): (usize, &Use<'_>)| {
            other != index
                && std::ptr::eq(candidate.allocation, used.allocation)
                && (candidate.writes || used.writes)
        };
        if !uses.iter().enumerate().any(shares) {
            return Ok(());
        }
        let arg = self.function.buffers()[index].arg;
        Err(Error::unsupported(format!(
            "argument {arg} at address {:#x} is no multiple of {} (minStorageBufferOffsetAlignment) \
             and another argument lies in the same allocation; copy it to memory of its own",
            used.address,
            self.device.properties().kernel.storage_buffer_alignment
        )))
    }
}

#[derive(Clone, Copy)]
struct Moved {
    own: u64,
    scratch: u64,
    size: u64,
}

/// Scratch memory, given back when the launch is recorded: whoever gets it comes after.
struct Scratch<'a> {
    device: &'a Arc<Device>,
    moved: SmallVec<[(Moved, bool); 2]>,
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        for (moved, _) in &self.moved {
            // It was allocated by this launch alone, so this cannot fail.
            let _ = self.device.free(moved.scratch);
        }
    }
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
