//! The HAL on a Vulkan driver that fails: the fault layer of `c_tests/fault_layer` makes the n-th
//! call of a function return an error, pretends that the device is lost, or that memory is not
//! coherent and limits are small. Each test runs in a process of its own, behind validation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/child.rs"]
mod child;
#[path = "hal/fault_layer.rs"]
mod fault_layer;
#[allow(dead_code, reason = "the conformance suite uses the rest")]
#[path = "hal/kit.rs"]
mod kit;

use std::ptr::NonNull;
use std::sync::Arc;

use dlhal::hal::{BufferDesc, ExecutableDesc};
use dlhal::hal::{
    BufferRange, CommandBufferUsage, CopyRegion, Deadline, Device, Driver, MemoryKind, Stages,
};
use dlhal::{DlhalStatus, Error, Result, vulkan};
use fault_layer::Layer;
use kit::{Kernel, LONG, dispatch, submit};

/// Calls that a driver may refuse for lack of memory, with the codes that they may return.
const SCARCE: &[(&str, &[i32])] = &[
    ("vkCreateBuffer", &[-1, -2]),
    ("vkAllocateMemory", &[-1, -2, -10]),
    ("vkMapMemory", &[-1, -2, -5]),
    ("vkBindBufferMemory", &[-1, -2]),
    ("vkCreateSemaphore", &[-1, -2]),
    ("vkCreateFence", &[-1, -2]),
    ("vkCreateEvent", &[-1, -2]),
    ("vkCreateQueryPool", &[-1, -2]),
    ("vkGetQueryPoolResults", &[-1, -2]),
    ("vkCreateCommandPool", &[-1, -2]),
    ("vkAllocateCommandBuffers", &[-1, -2]),
    ("vkResetCommandPool", &[-2]),
    ("vkBeginCommandBuffer", &[-1, -2]),
    ("vkEndCommandBuffer", &[-1, -2]),
    ("vkQueueSubmit", &[-1, -2]),
    ("vkCreateDescriptorPool", &[-1, -2]),
    ("vkAllocateDescriptorSets", &[-1, -2]),
    ("vkCreateDescriptorSetLayout", &[-1, -2]),
    ("vkCreateDescriptorUpdateTemplate", &[-1, -2]),
    ("vkCreatePipelineLayout", &[-1, -2]),
    ("vkCreateShaderModule", &[-1, -2]),
    ("vkCreateComputePipelines", &[-1, -2]),
    ("vkCreatePipelineCache", &[-1, -2]),
    ("vkGetPipelineCacheData", &[-1, -2]),
    ("vkMergePipelineCaches", &[-1, -2]),
    ("vkGetMemoryHostPointerPropertiesEXT", &[-1, -1_000_072_003]),
];

/// Calls that may say that the device is lost.
const LOSING: &[&str] = &["vkQueueSubmit", "vkGetSemaphoreCounterValue", "vkWaitSemaphores"];
const LOSING_WITH_FENCES: &[&str] = &["vkQueueSubmit", "vkGetFenceStatus", "vkWaitForFences"];

#[test]
fn a_call_that_fails_says_so_and_leaves_nothing_behind() {
    in_a_process("scarcity", &[]);
}

#[test]
fn a_call_that_fails_says_so_and_leaves_nothing_behind_in_the_fallbacks() {
    in_a_process("scarcity", &["DLHAL_FORCE_FENCES=1", "DLHAL_FORCE_DESCRIPTOR_POOLS=1"]);
}

#[test]
fn a_lost_device_fails_every_call_with_the_first_text() {
    in_a_process("loss", &[]);
}

#[test]
fn a_lost_device_fails_every_call_with_the_first_text_where_fences_tell() {
    in_a_process("loss", &["DLHAL_FORCE_FENCES=1"]);
}

#[test]
fn repeating_work_creates_no_more_objects() {
    in_a_process("repetition", &[]);
}

#[test]
fn repeating_work_creates_no_more_objects_in_the_fallbacks() {
    in_a_process("repetition", &["DLHAL_FORCE_FENCES=1", "DLHAL_FORCE_DESCRIPTOR_POOLS=1"]);
}

#[test]
#[ignore = "run by the other tests, with an environment"]
fn repetition() {
    let driver = vulkan::load().unwrap();
    let device = device(&*driver).unwrap();
    let add3 = Kernel::Add3.load(&device);
    let buffers: Vec<_> = (0..30).map(|i| kit::words(&device, &[i])).collect();
    let done = device.create_semaphore(0).unwrap();
    let mut value = 0;
    let mut round = || {
        for count in [2000, 10, 10, 10, 10] {
            let commands = kit::record(&device, |commands| {
                for n in 0..count {
                    let three = [0, 1, 2].map(|i| &buffers[(n * 3 + i) % 30]);
                    commands.barrier(Stages::COMPUTE, Stages::COMPUTE)?;
                    dispatch(commands, &add3, &three, &[0], [1, 1, 1])?;
                }
                Ok(())
            });
            value += 1;
            submit(&device.queues()[0], &[], &[&*commands], &[(&done, value)]).unwrap();
            done.wait(value, Deadline::after(LONG)).unwrap();
        }
    };
    // Several rounds, until every recycled recording has met the large one.
    (0..8).for_each(|_| round());
    let before = Layer::get().live_counts();
    (0..8).for_each(|_| round());
    assert_eq!(Layer::get().live_counts(), before);
    assert_eq!(vulkan::validation_messages(), Vec::<String>::new());
}

#[test]
#[ignore = "run by the other tests, with an environment"]
fn scarcity() {
    let driver = vulkan::load().unwrap();
    assert_eq!(everything(&*driver), Ok(()));
    let mut refused = 0;
    for (call, codes) in SCARCE {
        for code in *codes {
            for n in 1..=40 {
                Layer::get().configure(&format!("{call}:{n}:{code}"));
                let outcome = everything(&*driver);
                let made = Layer::get().calls(call);
                Layer::get().configure("");
                let what = format!("{call}:{n}:{code} of {made} calls: {outcome:?}");
                Layer::get().nothing_lives(&what);
                match outcome {
                    // The call may not be made so often, another memory type may do, and a
                    // recording that cannot be reset when it is dropped is destroyed instead.
                    Ok(()) => {
                        let spare = ["vkAllocateMemory", "vkResetCommandPool"].contains(call);
                        assert!(made < n || spare, "{what}");
                    }
                    Err(error) => {
                        refused += 1;
                        let told = matches!(
                            error.status(),
                            DlhalStatus::OutOfMemory | DlhalStatus::InvalidArgument
                        );
                        assert!(told, "{what}");
                    }
                }
                if made < n {
                    break;
                }
            }
        }
    }
    assert!(refused > 40, "only {refused} calls failed: is the fault layer there?");
    assert_eq!(everything(&*driver), Ok(()));
    assert_eq!(vulkan::validation_messages(), Vec::<String>::new());
}

#[test]
#[ignore = "run by the other tests, with an environment"]
fn loss() {
    let driver = vulkan::load().unwrap();
    let fences = std::env::var_os("DLHAL_FORCE_FENCES").is_some();
    for call in if fences { LOSING_WITH_FENCES } else { LOSING } {
        let device = device(&*driver).unwrap();
        let queue = device.queues()[0].clone();
        let (before, done) =
            (device.create_semaphore(0).unwrap(), device.create_semaphore(0).unwrap());
        let buffer = kit::words(&device, &[1, 2, 3, 4]);
        let host = kit::host_buffer(&device, 16);
        let spin = Kernel::Spin.load(&device);
        let commands = kit::record(&device, |commands| {
            dispatch(commands, &spin, &[&buffer], &[kit::SPIN, 1], [1, 1, 1])
        });
        let timestamps = device.create_timestamps(1).unwrap();
        let mut open = kit::command_buffer(&device);
        Layer::get().configure(&format!("{call}:1+:-4"));
        let first = submit(&queue, &[], &[&*commands], &[(&done, 1)])
            .and_then(|()| done.wait(1, Deadline::after(LONG)))
            .expect_err("the loss must be told");
        Layer::get().configure("");
        assert_eq!(first.status(), DlhalStatus::DeviceLost, "{first}");
        assert!(first.message().contains(call), "{first}");

        let region = CopyRegion { src_offset: 0, dst_offset: 0, size: 4 };
        let (bindings, push_constant_bytes) = Kernel::Spin.interface();
        let outcomes: Vec<(&str, Result<()>)> = vec![
            ("health", device.health()),
            ("wait", before.wait(1, Deadline::Never)),
            ("reached", before.wait(0, Deadline::Never)),
            ("query", before.query().map(drop)),
            ("signal", before.signal(1)),
            ("submit", submit(&queue, &[], &[], &[(&done, 2)])),
            ("queue", queue.wait_idle()),
            ("idle", device.wait_idle()),
            ("copy", open.copy(&buffer, &host, &[region])),
            ("finish", open.finish()),
            ("reset", open.reset()),
            ("flush", host.flush(0..16)),
            ("invalidate", host.invalidate(0..16)),
            ("buffer", buffer_of(&device, MemoryKind::Device, 64).map(drop)),
            ("semaphore", device.create_semaphore(0).map(drop)),
            (
                "commands",
                device.create_command_buffer(&queue, CommandBufferUsage::Repeated).map(drop),
            ),
            ("event", device.create_event().map(drop)),
            ("timestamps", device.create_timestamps(1).map(drop)),
            ("stamp", open.write_timestamp(&timestamps, 0)),
            ("time", timestamps.read(0, &mut [0])),
            ("cache", device.pipeline_cache().map(drop)),
            ("merge", device.merge_pipeline_cache(&[]).map(drop)),
            (
                "executable",
                device
                    .create_executable(&ExecutableDesc {
                        name: "spin",
                        spirv: &Kernel::Spin.spirv(),
                        entry_point: "main",
                        bindings: &bindings,
                        push_constant_bytes,
                        required_subgroup_size: None,
                    })
                    .map(drop),
            ),
        ];
        for (what, outcome) in outcomes {
            assert_eq!(outcome, Err(first.clone()), "{what} after {call}");
        }
        // In truth the device still runs, and it must not lose what it uses.
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop((queue, before, done, buffer, host, spin, commands, open, timestamps, device));
        Layer::get().nothing_lives(call);
        assert_eq!(everything(&*driver), Ok(()), "a new device after {call}");
    }
}

/// Uses everything that a device has; stops at the first failure.
fn everything(driver: &dyn Driver) -> Result<()> {
    let device = device(driver)?;
    let (a, b) =
        (buffer_of(&device, MemoryKind::Host, 64)?, buffer_of(&device, MemoryKind::Host, 64)?);
    let scratch = buffer_of(&device, MemoryKind::Device, 64)?;
    kit::write_mapped(&a, &[1; 64]);
    let (bindings, push_constant_bytes) = Kernel::Index.interface();
    let index = device.create_executable(&ExecutableDesc {
        name: "index",
        spirv: &Kernel::Index.spirv(),
        entry_point: "main",
        bindings: &bindings,
        push_constant_bytes,
        required_subgroup_size: None,
    })?;
    let (done, event) = (device.create_semaphore(0)?, device.create_event()?);
    let timestamps = device.create_timestamps(2)?;
    let queue = &device.queues()[0];
    let mut commands = device.create_command_buffer(queue, CommandBufferUsage::Repeated)?;
    let all = CopyRegion { src_offset: 0, dst_offset: 0, size: 64 };
    for round in 1..=2 {
        commands.reset_timestamps(&timestamps, 0..2)?;
        commands.write_timestamp(&timestamps, 0)?;
        commands.copy(&a, &scratch, &[all])?;
        commands.barrier(Stages::TRANSFER, kit::all())?;
        dispatch(&mut *commands, &index, &[&scratch], &[7], [1, 1, 1])?;
        commands.signal_event(&event, Stages::COMPUTE)?;
        commands.wait_event(&event, Stages::COMPUTE, Stages::TRANSFER)?;
        commands.copy(&scratch, &b, &[all])?;
        commands.barrier(kit::all(), Stages::HOST | kit::all())?;
        commands.reset_event(&event, kit::all())?;
        commands.write_timestamp(&timestamps, 1)?;
        commands.finish()?;
        submit(queue, &[], &[&*commands], &[(&done, round)])?;
        done.wait(round, Deadline::after(LONG))?;
        timestamps.read(0, &mut [0; 2])?;
        let expected: Vec<u8> = (7..23_u32).flat_map(u32::to_ne_bytes).collect();
        assert_eq!(kit::read_mapped(&b), expected);
        commands.fill(&BufferRange { buffer: &scratch, offset: 0, size: 64 }, 0).unwrap_err();
        commands.reset()?;
    }
    import(&device)?;
    let cache = device.pipeline_cache()?;
    assert!(device.merge_pipeline_cache(&cache)?);
    device.wait_idle()
}

fn import(device: &Arc<dyn Device>) -> Result<()> {
    let Some(alignment) = device.properties().host_import_alignment else { return Ok(()) };
    let size = alignment as usize;
    let layout = std::alloc::Layout::from_size_align(size, size).unwrap();
    // SAFETY: the size is not zero.
    let memory = NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap();
    // SAFETY: the memory outlives the buffer, which is dropped at once.
    let imported = unsafe { device.import_host_memory(memory, alignment) }.map(drop);
    // SAFETY: allocated above with this layout; the buffer is gone.
    unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
    imported
}

fn device(driver: &dyn Driver) -> Result<Arc<dyn Device>> {
    let usable = driver.adapters().iter().position(|adapter| adapter.usable.is_ok());
    driver.create_device(usable.ok_or_else(|| Error::not_found("no usable device"))?)
}

fn buffer_of(
    device: &Arc<dyn Device>,
    memory: MemoryKind,
    size: u64,
) -> Result<Arc<dyn dlhal::hal::Buffer>> {
    device.create_buffer(&BufferDesc { size, memory })
}

/// Runs one of the ignored tests with the fault layer between validation and driver.
fn in_a_process(test: &str, environment: &[&str]) {
    let environment: Vec<_> =
        environment.iter().map(|variable| variable.split_once('=').unwrap()).collect();
    child::run(test, &environment, fault_layer::insert);
}
