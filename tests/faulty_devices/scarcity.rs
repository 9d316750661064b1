//! A driver that refuses the n-th call of a function.

use std::ptr::NonNull;

use dlhal::hal::{Deadline, MemoryKind};
use dlhal::runtime::ownership::import_host_memory;
use dlhal::runtime::{DeviceRef, Timer, Value, system};
use dlhal::{DlhalStatus, Result};

use crate::common::{Api, add_args, add_function, function, rounds};
use crate::{Layer, api};

/// Calls that a driver may refuse, with a code that it may return.
const REFUSED: &[(&str, i32)] = &[
    ("vkCreateDevice", -1),
    ("vkCreateBuffer", -2),
    ("vkAllocateMemory", -2),
    ("vkMapMemory", -5),
    ("vkBindBufferMemory", -1),
    ("vkCreateSemaphore", -1),
    ("vkCreateFence", -1),
    ("vkCreateQueryPool", -1),
    ("vkGetQueryPoolResults", -1),
    ("vkCreateCommandPool", -1),
    ("vkAllocateCommandBuffers", -1),
    ("vkBeginCommandBuffer", -1),
    ("vkEndCommandBuffer", -1),
    ("vkQueueSubmit", -1),
    ("vkCreateDescriptorPool", -1),
    ("vkAllocateDescriptorSets", -1),
    ("vkCreateDescriptorSetLayout", -1),
    ("vkCreateDescriptorUpdateTemplate", -1),
    ("vkCreatePipelineLayout", -1),
    ("vkCreateShaderModule", -1),
    ("vkCreateComputePipelines", -2),
    ("vkCreatePipelineCache", -1),
    ("vkFlushMappedMemoryRanges", -1),
    ("vkInvalidateMappedMemoryRanges", -1),
];

pub(crate) fn every_call_fails_once() {
    assert_eq!(everything(), Ok(()));
    system::shutdown();
    let mut refused = 0;
    for &(call, code) in REFUSED {
        let mut n = 1;
        while n <= 40 {
            Layer::get().configure(&format!("{call}:{n}:{code}"));
            let outcome = everything();
            let made = Layer::get().calls(call);
            Layer::get().configure("");
            system::shutdown();
            let what = format!("{call}:{n}:{code} of {made} calls: {outcome:?}");
            Layer::get().nothing_lives(&what);
            // What could be had in another way was right in the end: `everything` has looked.
            if let Err(error) = outcome {
                refused += 1;
                let told = matches!(
                    error.status(),
                    DlhalStatus::OutOfMemory
                        | DlhalStatus::InvalidArgument
                        | DlhalStatus::Unavailable
                );
                assert!(told, "{what}");
            }
            if made < n {
                break;
            }
            // The first calls differ; later ones repeat what earlier ones did.
            n += rounds(1 + n as usize / 3, 1) as u64;
        }
    }
    // A profile takes the first failures upon itself.
    assert!(refused > 10, "only {refused} calls failed: is the fault layer there?");
    assert_eq!(everything(), Ok(()));
}

#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Uses what a device has and looks at the results; stops at the first failure.
fn everything() -> Result<()> {
    let api = Api { device: system::device(DeviceRef::vulkan(0))? };
    let device = &api.device;
    let stream = device.create_stream()?;
    let allocate = |size, kind| device.allocate(size, 64, kind);
    let (a, b, c) = (
        allocate(256, MemoryKind::Device)?,
        allocate(256, MemoryKind::Device)?,
        allocate(300_000, MemoryKind::Device)?,
    );
    let pinned = allocate(4096, MemoryKind::Host)?;
    device.host_pointer(pinned)?;
    let ones = 1f32.to_le_bytes().repeat(64);
    api.write(a, &ones, &stream)?;
    api.write(b, &ones, &stream)?;
    let timer = Timer::new(device);
    timer.start(&stream)?;
    api.launch(&add_function(), &add_args(a, b, c, 64), &stream)?;
    timer.stop(&stream)?;
    timer.elapsed_ns(Deadline::Never)?;
    api.move_bytes(c, pinned, 256, &stream)?;
    let mut got = vec![0; 256];
    api.read_into(c, &mut got, &stream)?;
    assert!(got == 2f32.to_le_bytes().repeat(64), "a wrong result after a failure");
    let scalars = function("scalars_20.vulkan.bin", "main_kernel");
    let mut args = vec![Value::Address(a), Value::Address(c), Value::Int(64)];
    let mut order: Vec<i64> = (0..20).collect();
    order.sort_by_key(i64::to_string);
    args.extend(order.iter().map(|k| if k % 2 == 0 { Value::Int(0) } else { Value::Float(0.0) }));
    args.extend([Value::Int(1), Value::Int(64)]);
    api.launch(&scalars, &args, &stream)?;
    let large = vec![7; 300_000];
    api.read_into(c, &mut got, &stream)?;
    assert!(got == ones, "a wrong result after a failure");
    api.write(c, &large, &stream)?;
    let mut back = vec![0; large.len()];
    api.read_into(c, &mut back, &stream)?;
    assert!(back == large, "a wrong copy after a failure");
    if device.properties().host_import_alignment.is_some() {
        let mut page = Box::new(Page([3; 4096]));
        let start = NonNull::from(&mut page.0).cast();
        // SAFETY: the page outlives the share, and the device is idle before it goes.
        let share = unsafe { import_host_memory(device, start, 4096, false) }?;
        api.read_into(share.address(), &mut got, &stream)?;
        assert_eq!(got, [3; 256]);
        drop(share);
        device.sync()?;
    }
    [a, b, c, pinned].into_iter().try_for_each(|address| device.free(address))?;
    stream.sync(Deadline::Never)
}

pub(crate) fn launches_create_no_more_objects() {
    let api = api();
    let stream = api.stream();
    let add = add_function();
    let buffers: Vec<u64> = (0..30).map(|_| api.alloc(256)).collect();
    let round = |count: usize| {
        for n in 0..count {
            let [a, b, c] = [0, 1, 2].map(|i| buffers[(n * 3 + i) % 30]);
            api.launch(&add, &add_args(a, b, c, 64), &stream).unwrap();
        }
        stream.sync(Deadline::Never).unwrap();
    };
    // Twice, so that every recycled recording has met the most commands.
    (0..2).for_each(|_| round(20_000));
    let before = Layer::get().live_counts();
    (0..rounds(1, 5)).for_each(|_| round(20_000));
    // How many recordings are in flight at once depends on how fast the device is at the moment, and
    // each has its pools; nothing else may come, and nothing that grows with the launches.
    for (now, before) in Layer::get().live_counts().into_iter().zip(before) {
        let per_recording = [c"VkFence", c"VkCommandPool", c"VkDescriptorPool"].contains(&now.0);
        let most = if per_recording { before.1 + 64 } else { before.1 };
        assert!(now.1 <= most, "{now:?} after {before:?}");
    }
    buffers.into_iter().for_each(|address| api.device.free(address).unwrap());
}
