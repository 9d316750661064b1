//! Modules and their functions as the runtime holds them: pure data, plus what each device has made
//! ready of a function.

use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::device::Device;
use super::stream::Use;
use crate::hal::{BindingDesc, BindingKind, Executable, ExecutableDesc};
use crate::module::spirv::ScalarType;
use crate::module::{self, ArgKind, DataType, LaunchTag, Module, ScalarBlock, check_function};
use crate::{Error, Result};

/// Bytes of push constants that every device takes. A kernel of more gets them as a uniform buffer.
const PUSH_CONSTANTS_EVERYWHERE: u32 = 128;

/// A kernel that can be launched on any device that fulfils its needs. May be used from any thread;
/// it does not need its module to live on.
pub struct Function {
    info: Arc<module::Function>,
    /// As profiles keep it.
    name: Arc<str>,
    /// Its buffer arguments by rising binding, as uses of memory that a launch names.
    buffers: Vec<Use>,
    launch_args: Vec<LaunchArg>,
    bindings: Vec<BindingDesc>,
    /// What it was first made ready for, which most functions ever need.
    first: OnceLock<Arc<Ready>>,
    /// What another device asked for last.
    latest: ArcSwapOption<Ready>,
    all: Mutex<Vec<Arc<Ready>>>,
}

/// What an argument of a launch says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LaunchArg {
    /// Where the buffer is that has this place in [`Function::buffers`].
    Buffer(usize),
    /// A number: `size` bytes at `offset` in the scalar block, which the shader reads as `shader`.
    Scalar { dtype: DataType, shader: ScalarType, offset: u32, size: u32 },
    /// How many workgroups there are along an axis.
    Workgroups(usize),
    /// How many threads a workgroup has along an axis.
    Threads(usize),
    /// Bytes of workgroup memory beyond the kernel's own.
    DynamicSharedMemory,
}

/// A function made ready for one device.
pub(crate) struct Ready {
    device: Weak<Device>,
    pub(crate) executable: Arc<dyn Executable>,
}

impl Ready {
    fn is_for(&self, device: &Arc<Device>) -> bool {
        std::ptr::eq(self.device.as_ptr(), Arc::as_ptr(device))
    }
}

impl Function {
    /// The function called `name` of `module`.
    pub fn of(module: &Module, name: &str) -> Result<Self> {
        Ok(Self::new(module.named(name)?.clone()))
    }

    fn new(info: Arc<module::Function>) -> Self {
        let info = if info.scalars.push_constants() > PUSH_CONSTANTS_EVERYWHERE {
            // Where the scalars cannot move, a device that takes them may still run the kernel.
            info.with_uniform_scalars().map_or(info, Arc::new)
        } else {
            info
        };
        let mut buffers: Vec<_> = info.buffers().collect();
        buffers.sort_unstable_by_key(|&(_, binding, _)| binding);
        let place = |index| buffers.iter().position(|&(arg, ..)| arg == index);
        let own = info.args.iter().enumerate().filter_map(|(index, arg)| match *arg {
            ArgKind::Buffer { .. } => place(index).map(LaunchArg::Buffer),
            ArgKind::Scalar { dtype, offset, size, shader } => {
                Some(LaunchArg::Scalar { dtype, shader, offset, size })
            }
        });
        let extents = info.launch_tags.iter().filter_map(|tag| match *tag {
            LaunchTag::BlockIdx(axis) => Some(LaunchArg::Workgroups(axis)),
            LaunchTag::ThreadIdx(axis) => Some(LaunchArg::Threads(axis)),
            LaunchTag::DynSharedMemory => Some(LaunchArg::DynamicSharedMemory),
            LaunchTag::ParamWriteAccess(_) | LaunchTag::Hint | LaunchTag::Unknown(_) => None,
        });
        let launch_args = own.chain(extents).collect();
        let storage = buffers
            .iter()
            .map(|&(_, binding, _)| BindingDesc { binding, kind: BindingKind::StorageBuffer });
        let uniform = match info.scalars {
            ScalarBlock::Uniform { binding, .. } => {
                Some(BindingDesc { binding, kind: BindingKind::UniformBuffer })
            }
            ScalarBlock::None | ScalarBlock::PushConstants { .. } => None,
        };
        let mut bindings: Vec<_> = storage.chain(uniform).collect();
        bindings.sort_unstable_by_key(|desc| desc.binding);
        let buffers = buffers.iter().map(|&(arg, _, writes)| Use {
            address: 0,
            size: 0,
            writes,
            argument: Some(arg as u32),
        });
        let buffers = buffers.collect();
        let name = info.name().into();
        Self {
            info,
            name,
            buffers,
            launch_args,
            bindings,
            first: OnceLock::new(),
            latest: ArcSwapOption::empty(),
            all: Mutex::default(),
        }
    }

    /// What the module says of it.
    pub fn info(&self) -> &module::Function {
        &self.info
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The arguments of a launch: the function's own, then one extent per launch tag that takes one.
    pub(crate) fn launch_args(&self) -> &[LaunchArg] {
        &self.launch_args
    }

    /// How many arguments a launch takes.
    pub fn launch_arg_count(&self) -> usize {
        self.launch_args.len()
    }

    /// Fails unless a launch with `given` arguments has as many as it needs.
    pub(crate) fn check_arg_count(&self, given: usize) -> Result<()> {
        let expected = self.launch_arg_count();
        if given == expected {
            return Ok(());
        }
        let own = self.info.args.len();
        Err(Error::invalid(format!(
            "kernel `{}`: {given} arguments given, {expected} expected: {own} of the function and {} \
             extents",
            self.info.name(),
            expected - own
        )))
    }

    /// Its buffer arguments by rising binding; their addresses are to be set.
    pub(crate) fn buffers(&self) -> &[Use] {
        &self.buffers
    }

    /// The bindings in the order in which a dispatch lists them.
    pub(crate) fn bindings(&self) -> &[BindingDesc] {
        &self.bindings
    }

    /// The function made ready for `device`: checked against its limits and compiled, once.
    pub(crate) fn ready(&self, device: &Arc<Device>) -> Result<Arc<Ready>> {
        self.with_ready(device, |ready| Ok(ready.clone()))
    }

    /// As [`Self::ready`], for the length of `act`: threads that run the same function count nothing
    /// together.
    pub(crate) fn with_ready<R>(
        &self,
        device: &Arc<Device>,
        act: impl FnOnce(&Arc<Ready>) -> Result<R>,
    ) -> Result<R> {
        if let Some(first) = self.first.get().filter(|ready| ready.is_for(device)) {
            return act(first);
        }
        let latest = self.latest.load();
        match latest.as_ref().filter(|ready| ready.is_for(device)) {
            Some(ready) => act(ready),
            None => act(&self.ready_anew(device)?),
        }
    }

    #[cold]
    fn ready_anew(&self, device: &Arc<Device>) -> Result<Arc<Ready>> {
        // Held while compiling: a second thread that wants the same waits rather than compiles.
        let mut all = self.all.lock();
        all.retain(|ready| ready.device.strong_count() > 0);
        let ready = match all.iter().find(|ready| ready.is_for(device)) {
            Some(ready) => ready.clone(),
            None => {
                let ready = Arc::new(self.make_ready(device)?);
                all.push(ready.clone());
                ready
            }
        };
        self.first.get_or_init(|| ready.clone());
        self.latest.store(Some(ready.clone()));
        Ok(ready)
    }

    fn make_ready(&self, device: &Arc<Device>) -> Result<Ready> {
        let limits = &device.properties().kernel;
        let reduced = self.info.without_optional(limits)?;
        let info = reduced.as_ref().unwrap_or(&self.info);
        check_function(info, limits)?;
        let push_constant_bytes = match info.scalars {
            ScalarBlock::PushConstants { size } => size,
            ScalarBlock::None | ScalarBlock::Uniform { .. } => 0,
        };
        let executable = device.hal().create_executable(&ExecutableDesc {
            name: info.name(),
            spirv: &info.spirv,
            entry_point: &info.entry.name,
            bindings: &self.bindings,
            push_constant_bytes,
            required_subgroup_size: info.entry.subgroup_size,
        })?;
        Ok(Ready { device: Arc::downgrade(device), executable })
    }
}
