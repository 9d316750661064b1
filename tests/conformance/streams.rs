//! Order and lifetimes on a real driver, by results.

use dlhal::hal::Deadline;

use crate::common::{Api, add_args, add_function, rounds};

fn floats(value: f32, count: usize) -> Vec<u8> {
    (0..count).flat_map(|_| value.to_le_bytes()).collect()
}

pub(crate) fn freed_before_its_copy_runs(api: &Api) {
    let (stream, other) = (api.stream(), api.stream());
    let size = 1 << 20;
    let (first, second) = (vec![0x11; size], vec![0xEE; size]);
    let b = api.alloc(size as u64);
    let (add, zero) = (add_function(), api.alloc(size as u64));
    api.write(zero, &vec![0; size], &stream).unwrap();
    for round in 0..rounds(60, 1000) {
        let a = api.alloc(size as u64);
        api.write(a, &first, &stream).unwrap();
        if round % 2 == 0 {
            api.move_bytes(a, b, size as i64, &stream).unwrap();
        } else {
            api.launch(&add, &add_args(a, zero, b, size as i64 / 4), &stream).unwrap();
        }
        api.device.free(a).unwrap();
        let c = api.alloc(size as u64);
        api.write(c, &second, &other).unwrap();
        assert!(api.read(b, size, &stream).unwrap() == first);
        api.device.free(c).unwrap();
    }
    api.device.free(zero).unwrap();
    api.device.free(b).unwrap();
}

/// Every thread on streams of its own: allocate, copy in, launch, copy out, check, free.
pub(crate) fn threads_share_a_device(api: &Api) {
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            scope.spawn(move || work(api, &api.stream(), thread));
        }
    });
}

/// As above, all on one stream.
pub(crate) fn threads_share_a_stream(api: &Api) {
    let stream = api.stream();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let stream = &stream;
            scope.spawn(move || work(api, stream, thread));
        }
    });
}

fn work(api: &Api, stream: &std::sync::Arc<dlhal::runtime::Stream>, thread: u64) {
    let add = add_function();
    let mut random = thread * 0x9E37_79B9 + 1;
    for round in 0..60 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let n = (random >> 40) as usize % 30_000 + 1;
        let value = (thread * 100 + round) as f32;
        let [a, c] = [0; 2].map(|_| api.alloc(4 * n as u64));
        api.write(a, &floats(value, n), stream).unwrap();
        api.launch(&add, &add_args(a, a, c, n as i64), stream).unwrap();
        assert!(api.read(c, 4 * n, stream).unwrap() == floats(2.0 * value, n));
        api.device.free(a).unwrap();
        api.device.free(c).unwrap();
    }
}

/// Each stream doubles what the one before left, without a synchronise between them.
pub(crate) fn streams_hand_memory_over(api: &Api) {
    let streams: Vec<_> = (0..4).map(|_| api.stream()).collect();
    let add = add_function();
    let n = 10_000usize;
    let tensor = api.alloc(4 * n as u64);
    for _ in 0..20 {
        api.write(tensor, &floats(1.0, n), &streams[0]).unwrap();
        for step in 0..12 {
            let stream = &streams[step % streams.len()];
            api.launch(&add, &add_args(tensor, tensor, tensor, n as i64), stream).unwrap();
        }
        let last = streams.last().unwrap();
        assert!(api.read(tensor, 4 * n, last).unwrap() == floats(4096.0, n));
    }
    api.device.free(tensor).unwrap();
}

/// Allocate, copy and free without a synchronise, ten thousand times: memory stays bounded.
pub(crate) fn backlog_is_bounded(api: &Api) {
    let stream = api.stream();
    stream.sync(Deadline::Never).unwrap();
    let before = api.device.memory_statistics();
    for _ in 0..rounds(10_000, 100_000) {
        let tensor = api.alloc(200_000);
        api.write(tensor, &[1; 4096], &stream).unwrap();
        api.device.free(tensor).unwrap();
    }
    stream.sync(Deadline::Never).unwrap();
    let after = api.device.memory_statistics();
    assert_eq!(after.live_allocations - before.live_allocations, {
        // Staging chunks are allocations too.
        (after.staging_bytes - before.staging_bytes) / (256 << 10)
    });
    assert!(after.reserved_bytes <= before.reserved_bytes + (128 << 20));
}
