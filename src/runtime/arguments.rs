//! What a launch is given: the kernel's arguments as bytes and addresses, and the grid's extents.

use smallvec::SmallVec;

use super::function::Function;
use super::value::Value;
use crate::hal::KernelLimits;
use crate::module::{ArgKind, GridFold, LaunchTag, check_dynamic_shared_memory};
use crate::{Error, Result};

/// The arguments of one launch of a function, checked against the function and a device's limits.
pub(crate) struct Arguments {
    /// The scalar block's bytes.
    pub(crate) scalars: SmallVec<[u8; 128]>,
    /// The buffer arguments' addresses, by rising binding.
    pub(crate) addresses: SmallVec<[u64; 8]>,
    extents: Extents,
}

/// The launch extents as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extents {
    grid: [u32; 3],
    threads: [u32; 3],
    dynamic_shared_memory: u32,
}

impl Arguments {
    /// `values` are the function's arguments, then one extent per launch tag, in the order of the
    /// tags; as many as the function takes.
    pub(crate) fn new(
        function: &Function,
        values: &[Value],
        limits: &KernelLimits,
    ) -> Result<Self> {
        let mut arguments = Self {
            scalars: SmallVec::from_elem(0, function.info().scalars.size() as usize),
            addresses: SmallVec::from_elem(0, function.buffers().len()),
            extents: Extents { grid: [1; 3], threads: [1; 3], dynamic_shared_memory: 0 },
        };
        for (index, &value) in values.iter().enumerate() {
            arguments.store(function, index, value)?;
        }
        arguments.check_extents(function, limits)?;
        Ok(arguments)
    }

    /// Replaces one argument or extent.
    pub(crate) fn set(
        &mut self,
        function: &Function,
        index: usize,
        value: Value,
        limits: &KernelLimits,
    ) -> Result<()> {
        let before = self.extents;
        self.store(function, index, value)?;
        self.check_extents(function, limits).inspect_err(|_| self.extents = before)
    }

    /// Whether there is nothing to run.
    pub(crate) fn is_empty(&self) -> bool {
        self.extents.grid.contains(&0)
    }

    fn store(&mut self, function: &Function, index: usize, value: Value) -> Result<()> {
        self.try_store(function, index, value)
            .map_err(|error| error.within(format_args!("argument {index}")))
    }

    fn try_store(&mut self, function: &Function, index: usize, value: Value) -> Result<()> {
        let Some(arg) = function.args().get(index) else {
            return self.store_extent(function, index - function.args().len(), value);
        };
        match (*arg, value) {
            (ArgKind::Buffer { .. }, Value::Address(address)) => {
                match function.buffer_place(index).and_then(|p| self.addresses.get_mut(p)) {
                    Some(slot) => *slot = address,
                    None => return Err(Error::internal("a buffer argument without a binding")),
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

    fn store_extent(&mut self, function: &Function, index: usize, value: Value) -> Result<()> {
        let tag = function.extent_tags().get(index);
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

    fn check_extents(&mut self, function: &Function, limits: &KernelLimits) -> Result<()> {
        let info = function.info();
        let local_size = info.local_size();
        for tag in function.extent_tags() {
            match *tag {
                LaunchTag::ThreadIdx(axis) if self.extents.threads[axis] != local_size[axis] => {
                    return Err(wrong_threads(axis, self.extents.threads[axis], local_size[axis]));
                }
                LaunchTag::BlockIdx(axis)
                    if self.extents.grid[axis] > limits.max_workgroup_count[axis]
                        && (axis > 0 || info.grid_fold.is_none()) =>
                {
                    let limit = limits.max_workgroup_count[axis];
                    return Err(too_many_groups(axis, self.extents.grid[axis], limit));
                }
                _ => {}
            }
        }
        if self.extents.dynamic_shared_memory > 0 {
            let bytes = u64::from(self.extents.dynamic_shared_memory);
            check_dynamic_shared_memory(info, bytes, limits)?;
        }
        self.groups(limits).map(|_| ())?;
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
    pub(crate) fn groups(&self, limits: &KernelLimits) -> Result<[u32; 3]> {
        let [x, y, z] = self.extents.grid;
        let limits = limits.max_workgroup_count;
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
}

const AXES: [&str; 3] = ["x", "y", "z"];

#[cold]
fn wrong_threads(axis: usize, given: u32, expected: u32) -> Error {
    let name = AXES[axis];
    Error::invalid(format!(
        "threadIdx.{name} is {given}, but the kernel was built for {expected} threads in {name}"
    ))
}

#[cold]
fn too_many_groups(axis: usize, given: u32, limit: u32) -> Error {
    let name = AXES[axis];
    Error::invalid(format!(
        "blockIdx.{name} is {given}, the device allows {limit} (maxComputeWorkGroupCount); split \
         the launch"
    ))
}
