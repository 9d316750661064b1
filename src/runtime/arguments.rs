//! What a launch is given: the kernel's arguments as bytes and uses of memory, and the grid.

use smallvec::SmallVec;

use super::function::{Function, LaunchArg};
use super::stream::Use;
use super::value::Value;
use crate::hal::KernelLimits;
use crate::module::{GridFold, check_dynamic_shared_memory};
use crate::{Error, Result};

/// The arguments of one launch of a function, checked against the function and a device's limits.
pub(crate) struct Arguments {
    /// The scalar block's bytes.
    pub(crate) scalars: SmallVec<[u8; 128]>,
    /// The buffer arguments, by rising binding.
    pub(crate) uses: SmallVec<[Use; 8]>,
    /// The workgroups asked for.
    grid: [u32; 3],
    /// The workgroups to dispatch: x folded into z where it is over the limit and the kernel knows
    /// how.
    pub(crate) groups: [u32; 3],
}

impl Arguments {
    /// Those of `function` before they are set, by [`Self::set_all`].
    #[inline]
    pub(crate) fn unset(function: &Function) -> Self {
        let scalars = SmallVec::from_elem(0, function.info().scalars.size() as usize);
        let uses = SmallVec::from_slice(function.buffers());
        Self { scalars, uses, grid: [1; 3], groups: [1; 3] }
    }

    /// Sets all: `values` are the function's arguments, then one extent per launch tag, in the order
    /// of the tags.
    #[inline]
    pub(crate) fn set_all(
        &mut self,
        function: &Function,
        mut values: impl ExactSizeIterator<Item = Result<Value>>,
        limits: &KernelLimits,
    ) -> Result<()> {
        function.check_arg_count(values.len())?;
        // Not zipped: the pairs would go through memory.
        for (index, arg) in function.launch_args().iter().enumerate() {
            let Some(value) = values.next() else { break };
            value
                .and_then(|value| self.store(function, arg, value, limits))
                .map_err(|error| in_argument(index, error))?;
        }
        self.fold(function, limits)
    }

    /// Replaces one argument or extent.
    pub(crate) fn set(
        &mut self,
        function: &Function,
        index: usize,
        value: Value,
        limits: &KernelLimits,
    ) -> Result<()> {
        let before = self.grid;
        function
            .launch_args()
            .get(index)
            .ok_or_else(|| Error::invalid("the launch has no such argument"))
            .and_then(|arg| self.store(function, arg, value, limits))
            .map_err(|error| in_argument(index, error))?;
        self.fold(function, limits).inspect_err(|_| self.grid = before)
    }

    /// Whether there is nothing to run.
    pub(crate) fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }

    /// On failure nothing has changed. Inlined so that the value stays in registers on its way here.
    #[inline(always)]
    fn store(
        &mut self,
        function: &Function,
        arg: &LaunchArg,
        value: Value,
        limits: &KernelLimits,
    ) -> Result<()> {
        match *arg {
            LaunchArg::Buffer(place) => {
                let Value::Address(address) = value else { return Err(no_buffer(value)) };
                self.uses[place].address = address;
            }
            LaunchArg::Scalar { dtype, shader, offset, size } => {
                value.store(dtype, shader, self.scalar(offset, size)?)?;
            }
            LaunchArg::Workgroups(axis) => {
                let given = value.as_extent()?;
                let limit = limits.max_workgroup_count[axis];
                if given > limit && (axis > 0 || function.info().grid_fold.is_none()) {
                    return Err(too_many_groups(axis, given, limit));
                }
                self.grid[axis] = given;
            }
            LaunchArg::Threads(axis) => {
                let (given, built_for) = (value.as_extent()?, function.info().local_size()[axis]);
                if given != built_for {
                    return Err(wrong_threads(axis, given, built_for));
                }
            }
            LaunchArg::DynamicSharedMemory => match value.as_extent()? {
                0 => {}
                bytes => check_dynamic_shared_memory(function.info(), bytes.into(), limits)?,
            },
        }
        Ok(())
    }

    /// Makes `groups` of `grid`.
    #[inline]
    fn fold(&mut self, function: &Function, limits: &KernelLimits) -> Result<()> {
        self.groups = folded(self.grid, limits.max_workgroup_count)?;
        if let Some(GridFold::HiddenExtent { offset }) = function.info().grid_fold {
            // Workgroups whose index exceeds the value leave at once: the last one is x - 1.
            let last = self.grid[0].saturating_sub(1);
            self.scalar(offset, 4)?.copy_from_slice(&last.to_le_bytes());
        }
        Ok(())
    }

    #[inline]
    fn scalar(&mut self, offset: u32, size: u32) -> Result<&mut [u8]> {
        let range = offset as usize..offset as usize + size as usize;
        self.scalars
            .get_mut(range)
            .ok_or_else(|| Error::internal("a scalar argument outside its block"))
    }
}

fn folded([x, y, z]: [u32; 3], limits: [u32; 3]) -> Result<[u32; 3]> {
    if x <= limits[0] {
        return Ok([x, y, z]);
    }
    let layers = x.div_ceil(limits[0]);
    if z > 1 || layers > limits[2] {
        return Err(Error::invalid(format!(
            "blockIdx.x is {x} with blockIdx.z {z}, the device allows {limits:?} \
             (maxComputeWorkGroupCount), and x can be folded into z only where z is 1; split the \
             launch"
        )));
    }
    Ok([x.div_ceil(layers), y, layers])
}

const AXES: [&str; 3] = ["x", "y", "z"];

#[cold]
fn in_argument(index: usize, error: Error) -> Error {
    error.within(format_args!("argument {index}"))
}

#[cold]
fn no_buffer(given: Value) -> Error {
    Error::invalid(format!("a buffer is expected, {given} was given"))
}

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
