//! What the device and the host can do with nothing of the runtime's in the way: buffers, recordings
//! and submissions of the HAL, made beforehand and used again.

use std::sync::Arc;

use dlhal::hal::{
    BindingDesc, BindingKind, Buffer, BufferDesc, BufferRange, CommandBuffer, CopyRegion, Deadline,
    Device, Dispatch, Executable, ExecutableDesc, MemoryKind, Queue, Semaphore, SemaphorePoint,
    Stages, Submission,
};

use super::{measure, report, report_bytes};

const SIZE: usize = 256 << 20;
/// Copies in one recording, each after the one before, so that waiting does not count.
const REPEATS: usize = 10;

pub(crate) fn print(device: &Arc<dyn Device>) {
    let limits = Limits {
        queue: device.queues()[0].clone(),
        semaphore: device.create_semaphore(0).unwrap(),
        device: device.clone(),
    };
    limits.host_memory();
    limits.copies();
    limits.waits();
}

struct Limits {
    device: Arc<dyn Device>,
    queue: Arc<dyn Queue>,
    semaphore: Arc<dyn Semaphore>,
}

impl Limits {
    fn host_memory(&self) {
        let pinned = self.buffer(MemoryKind::Host);
        let pinned = pinned.mapping().unwrap().ptr.as_ptr();
        let mut own = vec![1u8; SIZE];
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        for threads in [1, 2, 4, 8, 16].into_iter().filter(|count| *count <= cores.max(2)) {
            let part = SIZE / threads;
            let to = measure(5, || {
                let pinned = pinned as usize;
                std::thread::scope(|scope| {
                    for (index, source) in own.chunks(part).enumerate() {
                        // SAFETY: the parts lie in the buffer and apart from each other.
                        scope.spawn(move || unsafe {
                            let target = (pinned + index * part) as *mut u8;
                            target.copy_from_nonoverlapping(source.as_ptr(), source.len());
                        });
                    }
                });
            });
            report_bytes(&format!("memcpy to pinned memory, {threads} threads"), to, SIZE);
            let from = measure(5, || {
                let pinned = pinned as usize;
                std::thread::scope(|scope| {
                    for (index, target) in own.chunks_mut(part).enumerate() {
                        // SAFETY: as above.
                        scope.spawn(move || unsafe {
                            let source = (pinned + index * part) as *const u8;
                            source.copy_to_nonoverlapping(target.as_mut_ptr(), target.len());
                        });
                    }
                });
            });
            report_bytes(&format!("memcpy from pinned memory, {threads} threads"), from, SIZE);
        }
    }

    fn copies(&self) {
        let [a, b] = [0; 2].map(|_| self.buffer(MemoryKind::Device));
        let pinned = self.buffer(MemoryKind::Host);
        for (name, from, to) in [
            ("pinned memory to device", &pinned, &a),
            ("device to pinned memory", &a, &pinned),
            ("device to device", &a, &b),
        ] {
            let copy = self.recording(REPEATS, |commands| {
                let region = CopyRegion { src_offset: 0, dst_offset: 0, size: SIZE as u64 };
                commands.copy(from, to, &[region]).unwrap();
            });
            let times = measure(3, || self.run(&*copy));
            report_bytes(&format!("{name}, copy command"), times, REPEATS * SIZE);
        }
        let kernel = self.copy_kernel();
        let most = self.device.properties().kernel.max_storage_buffer_range;
        let size = (SIZE as u64).min(most) / 16 * 16;
        let count = (size / 16) as u32;
        let constants: Vec<u8> = [0, count].into_iter().flat_map(u32::to_le_bytes).collect();
        for groups in [528, 1056, 2112, 4224, 8448, 16_896, 32_768] {
            let copy = self.recording(REPEATS, |commands| {
                let whole = |buffer| BufferRange { buffer, offset: 0, size };
                commands
                    .dispatch(&Dispatch {
                        executable: &kernel,
                        bindings: &[whole(&a), whole(&b)],
                        constants: &constants,
                        groups: [groups, 1, 1],
                    })
                    .unwrap();
            });
            let times = measure(3, || self.run(&*copy));
            report_bytes(
                &format!("device to device, kernel, {groups} groups"),
                times,
                REPEATS * size as usize,
            );
        }
    }

    fn waits(&self) {
        let empty = self.recording(0, |_| ());
        report("empty submission, sleeping wait", measure(500, || self.run(&*empty)), 1);
        let polled = measure(500, || {
            let value = self.submit(&*empty);
            while self.semaphore.query().unwrap() < value {
                std::hint::spin_loop();
            }
        });
        report("empty submission, polled", polled, 1);
    }

    fn buffer(&self, memory: MemoryKind) -> Arc<dyn Buffer> {
        self.device.create_buffer(&BufferDesc { size: SIZE as u64, memory }).unwrap()
    }

    /// The kernel that the runtime copies with, for tensors that lie alike.
    fn copy_kernel(&self) -> Arc<dyn Executable> {
        let words = include_bytes!("../../src/runtime/copy_kernel_aligned.spv").chunks_exact(4);
        let words = words.map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        let storage = |binding| BindingDesc { binding, kind: BindingKind::StorageBuffer };
        self.device
            .create_executable(&ExecutableDesc {
                name: "copy",
                spirv: &words.collect::<Vec<_>>(),
                entry_point: "main",
                bindings: &[storage(0), storage(1)],
                push_constant_bytes: 8,
                required_subgroup_size: None,
            })
            .unwrap()
    }

    fn recording(
        &self,
        repeats: usize,
        mut record: impl FnMut(&mut dyn CommandBuffer),
    ) -> Box<dyn CommandBuffer> {
        let mut commands = self.device.create_command_buffer(&self.queue).unwrap();
        for _ in 0..repeats {
            record(&mut *commands);
            commands.barrier(Stages::ON_DEVICE, Stages::ON_DEVICE).unwrap();
        }
        commands.finish().unwrap();
        commands
    }

    fn submit(&self, commands: &dyn CommandBuffer) -> u64 {
        let value = self.semaphore.query().unwrap() + 1;
        let signal = SemaphorePoint { semaphore: self.semaphore.clone(), value };
        let submission =
            Submission { waits: &[], command_buffers: &[commands], signals: &[signal] };
        self.queue.submit(&submission).unwrap();
        value
    }

    fn run(&self, commands: &dyn CommandBuffer) {
        let value = self.submit(commands);
        self.semaphore.wait(value, Deadline::Never).unwrap();
    }
}
