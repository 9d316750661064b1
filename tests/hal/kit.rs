//! Set-up that the conformance tests share; what is asserted stands in the tests.

use std::sync::Arc;
use std::time::Duration;

use dlhal::hal::{
    BindingDesc, BindingKind, Buffer, BufferDesc, BufferRange, CommandBuffer, CommandBufferUsage,
    CopyRegion, Deadline, Device, Dispatch, Executable, ExecutableDesc, MemoryKind, Queue,
    Semaphore, SemaphorePoint, Stages, Submission,
};
use dlhal::{Error, Result, null};

/// What a test gets.
pub(crate) struct Context<'a> {
    /// The device under test.
    pub(crate) device: &'a Arc<dyn Device>,
    /// Makes another device of the same kind.
    pub(crate) another: &'a dyn Fn() -> Arc<dyn Device>,
}

/// Longer than anything here takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Rounds of the `spin` kernel that keep a software device busy for some milliseconds.
pub(crate) const SPIN: u32 = 3_000_000;

pub(crate) fn device_buffer(device: &Arc<dyn Device>, size: u64) -> Arc<dyn Buffer> {
    device.create_buffer(&BufferDesc { size, memory: MemoryKind::Device }).unwrap()
}

pub(crate) fn host_buffer(device: &Arc<dyn Device>, size: u64) -> Arc<dyn Buffer> {
    device.create_buffer(&BufferDesc { size, memory: MemoryKind::Host }).unwrap()
}

/// A device buffer with contents.
pub(crate) fn filled(device: &Arc<dyn Device>, bytes: &[u8]) -> Arc<dyn Buffer> {
    let buffer = device_buffer(device, bytes.len() as u64);
    write(device, &buffer, bytes);
    buffer
}

/// A device buffer of words.
pub(crate) fn words(device: &Arc<dyn Device>, words: &[u32]) -> Arc<dyn Buffer> {
    filled(device, &words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<_>>())
}

/// Writes a whole host buffer through its mapping.
pub(crate) fn write_mapped(buffer: &Arc<dyn Buffer>, bytes: &[u8]) {
    let mapping = buffer.mapping().expect("host buffers are mapped");
    assert!(bytes.len() as u64 <= buffer.size());
    // SAFETY: the mapping covers the buffer; no work that uses it is in flight.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), mapping.ptr.as_ptr(), bytes.len()) };
    buffer.flush(0..bytes.len() as u64).unwrap();
}

/// Reads a whole host buffer through its mapping.
pub(crate) fn read_mapped(buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    buffer.invalidate(0..buffer.size()).unwrap();
    let mapping = buffer.mapping().expect("host buffers are mapped");
    let mut bytes = vec![0; buffer.size() as usize];
    // SAFETY: the mapping covers the buffer; no work that uses it is in flight.
    unsafe {
        std::ptr::copy_nonoverlapping(mapping.ptr.as_ptr(), bytes.as_mut_ptr(), bytes.len());
    }
    bytes
}

pub(crate) fn write(device: &Arc<dyn Device>, buffer: &Arc<dyn Buffer>, bytes: &[u8]) {
    let staging = host_buffer(device, bytes.len() as u64);
    write_mapped(&staging, bytes);
    let all = CopyRegion { src_offset: 0, dst_offset: 0, size: bytes.len() as u64 };
    run(device, |commands| commands.copy(&staging, buffer, &[all]));
}

pub(crate) fn read(device: &Arc<dyn Device>, buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    let staging = host_buffer(device, buffer.size());
    let all = CopyRegion { src_offset: 0, dst_offset: 0, size: buffer.size() };
    run(device, |commands| {
        commands.copy(buffer, &staging, &[all])?;
        commands.barrier(Stages::TRANSFER, Stages::HOST)
    });
    read_mapped(&staging)
}

pub(crate) fn read_words(device: &Arc<dyn Device>, buffer: &Arc<dyn Buffer>) -> Vec<u32> {
    read(device, buffer)
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

/// A command buffer for the first queue, to be submitted any number of times.
pub(crate) fn command_buffer(device: &Arc<dyn Device>) -> Box<dyn CommandBuffer> {
    device.create_command_buffer(&device.queues()[0], CommandBufferUsage::Repeated).unwrap()
}

/// Records commands for the first queue, behind a barrier against everything before.
pub(crate) fn record(
    device: &Arc<dyn Device>,
    commands: impl FnOnce(&mut dyn CommandBuffer) -> Result<()>,
) -> Box<dyn CommandBuffer> {
    let mut buffer = command_buffer(device);
    buffer.barrier(all(), all()).unwrap();
    commands(&mut *buffer).unwrap();
    buffer.finish().unwrap();
    buffer
}

/// Everything that the device does.
pub(crate) fn all() -> Stages {
    Stages::TRANSFER | Stages::COMPUTE
}

/// Runs commands on the first queue and waits for them.
pub(crate) fn run(
    device: &Arc<dyn Device>,
    commands: impl FnOnce(&mut dyn CommandBuffer) -> Result<()>,
) {
    let recording = record(device, commands);
    let done = device.create_semaphore(0).unwrap();
    submit(&device.queues()[0], &[], &[&*recording], &[(&done, 1)]).unwrap();
    done.wait(1, Deadline::after(LONG)).unwrap();
}

pub(crate) fn submit(
    queue: &Arc<dyn Queue>,
    waits: &[(&Arc<dyn Semaphore>, u64)],
    command_buffers: &[&dyn CommandBuffer],
    signals: &[(&Arc<dyn Semaphore>, u64)],
) -> Result<()> {
    let points = |list: &[(&Arc<dyn Semaphore>, u64)]| -> Vec<_> {
        list.iter()
            .map(|(semaphore, value)| SemaphorePoint {
                semaphore: (*semaphore).clone(),
                value: *value,
            })
            .collect()
    };
    queue.submit(&Submission { waits: &points(waits), command_buffers, signals: &points(signals) })
}

pub(crate) fn whole(buffer: &Arc<dyn Buffer>) -> BufferRange<'_> {
    BufferRange { buffer, offset: 0, size: buffer.size() }
}

/// Records one dispatch with whole buffers.
pub(crate) fn dispatch(
    commands: &mut dyn CommandBuffer,
    executable: &Arc<dyn Executable>,
    buffers: &[&Arc<dyn Buffer>],
    constants: &[u32],
    groups: [u32; 3],
) -> Result<()> {
    let bindings: Vec<_> = buffers.iter().map(|buffer| whole(buffer)).collect();
    let constants: Vec<u8> = constants.iter().flat_map(|word| word.to_ne_bytes()).collect();
    commands.dispatch(&Dispatch { executable, bindings: &bindings, constants: &constants, groups })
}

/// The kernels of `tests/data/shaders`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    Saxpy,
    Echo,
    Index,
    Reduce,
    Scale,
    Add3,
    Spin,
}

impl Kernel {
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub(crate) fn spirv(self) -> Vec<u32> {
        // The variable lets a test binary run on a machine that did not build it.
        let root = std::env::var("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
        let path = format!("{root}/tests/data/shaders/{}.spv", self.name());
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// Binding numbers with their kinds, and bytes of push constants.
    pub(crate) fn interface(self) -> (Vec<BindingDesc>, u32) {
        use BindingKind::{StorageBuffer as S, UniformBuffer as U};
        let (bindings, bytes): (&[(u32, BindingKind)], u32) = match self {
            Self::Saxpy => (&[(0, S), (1, S)], 8),
            Self::Echo => (&[(3, S)], 64),
            Self::Index => (&[(0, S)], 4),
            Self::Reduce => (&[(0, S), (1, S)], 0),
            Self::Scale => (&[(0, S), (1, U), (2, S)], 0),
            Self::Add3 => (&[(0, S), (1, S), (2, S)], 4),
            Self::Spin => (&[(0, S)], 8),
        };
        (bindings.iter().map(|&(binding, kind)| BindingDesc { binding, kind }).collect(), bytes)
    }

    pub(crate) fn load(self, device: &Arc<dyn Device>) -> Arc<dyn Executable> {
        let (bindings, push_constant_bytes) = self.interface();
        device
            .create_executable(&ExecutableDesc {
                name: &self.name(),
                spirv: &self.spirv(),
                entry_point: "main",
                bindings: &bindings,
                push_constant_bytes,
                required_subgroup_size: None,
            })
            .unwrap()
    }
}

/// The kernels for the null driver.
pub(crate) fn on_the_host(call: &null::KernelCall<'_>) -> Result<()> {
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at * 4..at * 4 + 4).map_or(0, |b| u32::from_ne_bytes(b.try_into().unwrap()))
    };
    let constant = |at| number(call.constants, at);
    let load = |index| -> Result<Vec<u32>> {
        Ok(call.read(index)?.chunks_exact(4).map(|b| number(b, 0)).collect())
    };
    let store = |index, words: Vec<u32>| {
        call.write(index, 0, &words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<_>>())
    };
    match call.name {
        "saxpy" => {
            let (x, mut y) = (load(0)?, load(1)?);
            for i in 0..constant(1) as usize {
                let product = f32::from_bits(constant(0)) * f32::from_bits(x[i]);
                y[i] = (f32::from_bits(y[i]) + product).to_bits();
            }
            store(1, y)
        }
        "echo" => store(0, (0..16).map(constant).chain(call.groups).collect()),
        "index" => {
            let threads = call.groups[0] as usize * 32;
            let mut out = load(0)?;
            for (i, word) in out.iter_mut().take(threads).enumerate() {
                *word = constant(0) + i as u32;
            }
            store(0, out)
        }
        "reduce" => store(1, load(0)?.chunks(64).map(|group| group.iter().sum()).collect()),
        "scale" => {
            let parameters = load(1)?;
            store(2, load(0)?.iter().map(|word| word * parameters[0] + parameters[1]).collect())
        }
        "add3" => {
            let (a, b, mut c) = (load(0)?, load(1)?, load(2)?);
            for term in [a[0], b[0], constant(0)] {
                c[0] = c[0].wrapping_add(term);
            }
            store(2, c)
        }
        "spin" => store(0, vec![constant(1)]),
        other => Err(Error::not_found(format!("no kernel {other}"))),
    }
}
