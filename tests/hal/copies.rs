//! Copies, fills, updates, mappings.

use dlhal::hal::{BufferRange, CommandBufferUsage, CopyRegion, MemoryKind, Stages};

use super::kit::{
    Context, all, device_buffer, filled, host_buffer, read, read_mapped, run, write_mapped,
};

fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i * 7 + i / 251) as u8).collect()
}

pub(crate) fn copies_of_odd_sizes_at_odd_offsets_are_exact(context: &Context<'_>) {
    let device = context.device;
    let source = filled(device, &pattern(5000));
    for (src_offset, dst_offset, size) in
        [(0, 0, 1), (1, 3, 1), (3, 1, 2), (5, 7, 4093), (63, 64, 65), (0, 4999, 1), (4999, 0, 1)]
    {
        let target = filled(device, &[0xEE; 5000]);
        let region = CopyRegion { src_offset, dst_offset, size };
        run(device, |commands| commands.copy(&source, &target, &[region]));
        let mut expected = vec![0xEE; 5000];
        let (from, to, size) = (src_offset as usize, dst_offset as usize, size as usize);
        expected[to..to + size].copy_from_slice(&pattern(5000)[from..from + size]);
        assert_eq!(read(device, &target), expected, "{region:?}");
    }
}

pub(crate) fn regions_of_one_copy_are_all_copied(context: &Context<'_>) {
    let device = context.device;
    let source = filled(device, &pattern(256));
    let target = filled(device, &[0; 256]);
    let regions: Vec<_> = (0..16)
        .map(|i| CopyRegion { src_offset: i * 16, dst_offset: 240 - i * 16, size: 16 })
        .collect();
    run(device, |commands| commands.copy(&source, &target, &regions));
    let expected: Vec<u8> = pattern(256).chunks(16).rev().flatten().copied().collect();
    assert_eq!(read(device, &target), expected);
}

pub(crate) fn a_copy_within_one_buffer_moves_the_bytes(context: &Context<'_>) {
    let device = context.device;
    let buffer = filled(device, &pattern(64));
    let region = CopyRegion { src_offset: 0, dst_offset: 32, size: 32 };
    run(device, |commands| commands.copy(&buffer, &buffer, &[region]));
    assert_eq!(read(device, &buffer), [&pattern(64)[..32], &pattern(64)[..32]].concat());
}

pub(crate) fn a_barrier_orders_copies_of_copies(context: &Context<'_>) {
    let device = context.device;
    let chain: Vec<_> = (0..20).map(|_| device_buffer(device, 4096)).collect();
    let source = filled(device, &pattern(4096));
    let whole = CopyRegion { src_offset: 0, dst_offset: 0, size: 4096 };
    run(device, |commands| {
        commands.copy(&source, &chain[0], &[whole])?;
        for pair in chain.windows(2) {
            commands.barrier(Stages::TRANSFER, Stages::TRANSFER)?;
            commands.copy(&pair[0], &pair[1], &[whole])?;
        }
        Ok(())
    });
    assert_eq!(read(device, &chain[19]), pattern(4096));
}

pub(crate) fn a_fill_covers_its_range_only(context: &Context<'_>) {
    let device = context.device;
    let buffer = filled(device, &[0x11; 64]);
    let range = BufferRange { buffer: &buffer, offset: 8, size: 20 };
    run(device, |commands| commands.fill(&range, 0xA1B2_C3D4));
    let mut expected = vec![0x11; 64];
    expected[8..28].copy_from_slice(&0xA1B2_C3D4_u32.to_ne_bytes().repeat(5));
    assert_eq!(read(device, &buffer), expected);
}

pub(crate) fn updates_of_one_word_and_of_the_most_are_exact(context: &Context<'_>) {
    let device = context.device;
    let buffer = filled(device, &[0x22; 65_544]);
    run(device, |commands| commands.update(&buffer, 4, &pattern(65_536)));
    let mut expected = vec![0x22; 65_544];
    expected[4..65_540].copy_from_slice(&pattern(65_536));
    assert_eq!(read(device, &buffer), expected);
    run(device, |commands| commands.update(&buffer, 65_540, &[1, 2, 3, 4]));
    expected[65_540..].copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!(read(device, &buffer), expected);
}

pub(crate) fn host_writes_and_device_writes_are_seen_through_the_mapping(context: &Context<'_>) {
    let device = context.device;
    let (a, b) = (host_buffer(device, 1000), host_buffer(device, 1000));
    assert_eq!(a.memory(), MemoryKind::Host);
    write_mapped(&a, &pattern(1000));
    let region = CopyRegion { src_offset: 0, dst_offset: 0, size: 1000 };
    run(device, |commands| {
        commands.barrier(Stages::HOST, all())?;
        commands.copy(&a, &b, &[region])?;
        commands.barrier(Stages::TRANSFER, Stages::HOST)
    });
    assert_eq!(read_mapped(&b), pattern(1000));
}

pub(crate) fn flushes_of_any_range_keep_their_neighbours(context: &Context<'_>) {
    let device = context.device;
    let buffer = host_buffer(device, 600);
    write_mapped(&buffer, &pattern(600));
    let end = buffer.size();
    for (start, size) in [(0, 1), (1, 96), (63, 257), (64, 1), (255, 300), (599, 1), (0, end)] {
        buffer.flush(start..start + size).unwrap();
        buffer.invalidate(start..start + size).unwrap();
    }
    assert_eq!(read_mapped(&buffer), pattern(600));
    assert_eq!(read(device, &buffer), pattern(600));
}

pub(crate) fn device_memory_is_mapped_only_where_the_properties_say_so(context: &Context<'_>) {
    let buffer = device_buffer(context.device, 4096);
    if context.device.properties().fallbacks.unmapped_device_memory {
        assert!(buffer.mapping().is_none());
    }
    assert_eq!(buffer.memory(), MemoryKind::Device);
    assert!(buffer.is_device_local());
}

pub(crate) fn addresses_are_there_unless_the_fallback_is(context: &Context<'_>) {
    let (a, b) = (device_buffer(context.device, 4096), device_buffer(context.device, 4096));
    let reserved = context.device.properties().fallbacks.reserved_addresses;
    assert_eq!(a.device_address().is_none(), reserved);
    if let (Some(a), Some(b)) = (a.device_address(), b.device_address()) {
        assert!(a.abs_diff(b) >= 4096, "{a:#x} and {b:#x} overlap");
        assert!(a != 0 && b != 0);
    }
}

pub(crate) fn imported_host_memory_is_read_and_written_in_place(context: &Context<'_>) {
    let device = context.device;
    let size = 64 * 1024;
    let layout = std::alloc::Layout::from_size_align(size, 65_536).unwrap();
    // SAFETY: the size is not zero.
    let memory = std::ptr::NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap();
    // SAFETY: just allocated with this size; nobody else has it.
    unsafe { memory.as_ptr().copy_from(pattern(size).as_ptr(), size) };
    // SAFETY: the memory is freed after the buffer is dropped and its work is done.
    let imported = unsafe { device.import_host_memory(memory, size as u64) };
    match imported {
        Err(error) => {
            // Incoherent memory would need flushes, which the driver does for its own memory only.
            let coherent = host_buffer(device, 4).mapping().unwrap().coherent;
            assert!(device.properties().fallbacks.no_host_import || !coherent, "{error}");
            assert_eq!(error.status(), dlhal::DlhalStatus::Unsupported);
        }
        Ok(imported) => {
            assert!(!device.properties().fallbacks.no_host_import);
            assert_eq!(read(device, &imported), pattern(size));
            let range = BufferRange { buffer: &imported, offset: 4096, size: 4096 };
            run(device, |commands| {
                commands.fill(&range, 0x5A5A_5A5A)?;
                commands.barrier(Stages::TRANSFER, Stages::HOST)
            });
            // SAFETY: the fill is done; the buffer's memory is this memory.
            let seen = unsafe { std::slice::from_raw_parts(memory.as_ptr(), size) };
            assert_eq!(seen[4096..8192], [0x5A; 4096]);
            assert_eq!(seen[..4096], pattern(size)[..4096]);
            // SAFETY: as the first import; the size is refused before it is used.
            let odd = unsafe { device.import_host_memory(memory, size as u64 - 1) };
            assert_eq!(odd.err().unwrap().status(), dlhal::DlhalStatus::InvalidArgument);
        }
    }
    // SAFETY: allocated above with this layout; the imported buffer is gone.
    unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
}

pub(crate) fn copies_on_every_queue_are_exact(context: &Context<'_>) {
    let device = context.device;
    for (index, queue) in device.queues().iter().enumerate() {
        let source = filled(device, &pattern(3000 + index));
        let target = device_buffer(device, 3000 + index as u64);
        let mut commands =
            device.create_command_buffer(queue, CommandBufferUsage::Repeated).unwrap();
        let region = CopyRegion { src_offset: 0, dst_offset: 0, size: source.size() };
        commands.copy(&source, &target, &[region]).unwrap();
        commands.barrier(all(), all() | Stages::HOST).unwrap();
        commands.finish().unwrap();
        let done = device.create_semaphore(0).unwrap();
        super::kit::submit(queue, &[], &[&*commands], &[(&done, 1)]).unwrap();
        queue.wait_idle().unwrap();
        assert_eq!(done.query().unwrap(), 1);
        assert_eq!(read(device, &target), pattern(3000 + index), "queue {index}");
    }
}
