//! Modules and their functions as the runtime holds them: pure data, plus what each device has made
//! ready of a function.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::device::Device;
use crate::hal::{BindingDesc, BindingKind, Executable, ExecutableDesc};
use crate::module::{self, ArgKind, LaunchTag, Module, ScalarBlock, check_function};
use crate::{Error, Result};

/// Bytes of push constants that every device takes. A kernel of more gets them as a uniform buffer.
const PUSH_CONSTANTS_EVERYWHERE: u32 = 128;

/// A kernel that can be launched on any device that fulfils its needs. May be used from any thread;
/// it does not need its module to live on.
pub struct Function {
    info: Arc<module::Function>,
    /// As profiles keep it.
    name: Arc<str>,
    /// Its buffer arguments by rising binding.
    buffers: Vec<BufferArg>,
    /// For each argument, its place in `buffers`.
    buffer_places: Vec<Option<usize>>,
    /// The launch tags that take an extent, in order.
    extent_tags: Vec<LaunchTag>,
    bindings: Vec<BindingDesc>,
    latest: ArcSwapOption<Ready>,
    all: Mutex<Vec<Arc<Ready>>>,
}

/// One buffer argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferArg {
    /// The argument's index.
    pub(crate) arg: usize,
    /// Where the shader finds it.
    pub(crate) binding: u32,
    /// Whether the kernel may write to it.
    pub(crate) written: bool,
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
        let mut buffers: Vec<_> = info
            .buffers()
            .map(|(arg, binding, written)| BufferArg { arg, binding, written })
            .collect();
        buffers.sort_unstable_by_key(|buffer| buffer.binding);
        let place = |arg| buffers.iter().position(|buffer| buffer.arg == arg);
        let buffer_places = (0..info.args.len()).map(place).collect();
        let extent_tags = info.launch_args().cloned().collect();
        let storage = buffers.iter().map(|buffer| BindingDesc {
            binding: buffer.binding,
            kind: BindingKind::StorageBuffer,
        });
        let uniform = match info.scalars {
            ScalarBlock::Uniform { binding, .. } => {
                Some(BindingDesc { binding, kind: BindingKind::UniformBuffer })
            }
            ScalarBlock::None | ScalarBlock::PushConstants { .. } => None,
        };
        let mut bindings: Vec<_> = storage.chain(uniform).collect();
        bindings.sort_unstable_by_key(|desc| desc.binding);
        let name = info.name().into();
        Self {
            info,
            name,
            buffers,
            buffer_places,
            extent_tags,
            bindings,
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

    /// Arguments of a launch: the function's own, then one extent per launch tag.
    pub fn launch_arg_count(&self) -> usize {
        self.info.args.len() + self.extent_tags.len()
    }

    /// Fails unless a launch with `given` arguments has as many as it needs.
    pub fn check_arg_count(&self, given: usize) -> Result<()> {
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

    pub(crate) fn args(&self) -> &[ArgKind] {
        &self.info.args
    }

    pub(crate) fn buffers(&self) -> &[BufferArg] {
        &self.buffers
    }

    /// The place of the argument `arg` in [`Self::buffers`].
    pub(crate) fn buffer_place(&self, arg: usize) -> Option<usize> {
        self.buffer_places.get(arg).copied().flatten()
    }

    /// The launch tags that take an extent, in order.
    pub(crate) fn extent_tags(&self) -> &[LaunchTag] {
        &self.extent_tags
    }

    /// The bindings in the order in which a dispatch lists them.
    pub(crate) fn bindings(&self) -> &[BindingDesc] {
        &self.bindings
    }

    /// The function made ready for `device`: checked against its limits and compiled, once.
    pub(crate) fn ready(&self, device: &Arc<Device>) -> Result<Arc<Ready>> {
        if let Some(ready) = self.latest.load().as_ref()
            && ready.is_for(device)
        {
            return Ok(ready.clone());
        }
        self.ready_anew(device)
    }

    /// As [`Self::ready`], for the length of `act`: threads that run the same function count nothing
    /// together.
    pub(crate) fn with_ready<R>(
        &self,
        device: &Arc<Device>,
        act: impl FnOnce(&Ready) -> Result<R>,
    ) -> Result<R> {
        let latest = self.latest.load();
        match latest.as_ref().filter(|ready| ready.is_for(device)) {
            Some(ready) => act(ready),
            None => act(&*self.ready_anew(device)?),
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
