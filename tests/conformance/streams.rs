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

/// Threads with two streams each mix copies of all kinds, launches and frees, of sizes from bytes to
/// megabytes at any offset; a copy on the host says what every byte must be.
pub(crate) fn mixed_copies_keep_every_byte(api: &Api) {
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || mix(api, thread));
        }
    });
}

fn mix(api: &Api, thread: u64) {
    const ROOM: usize = 5 << 20;
    let streams = [api.stream(), api.stream()];
    let add = add_function();
    let mut state = thread * 0x9E37_79B9 + 7;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let fill = |seed: usize, len: usize| -> Vec<u8> {
        (0..len).map(|i| (i.wrapping_mul(seed | 1) >> 3) as u8).collect()
    };
    let fresh = |seed: usize| {
        let bytes = fill(seed, ROOM);
        let address = api.alloc(ROOM as u64);
        api.write(address, &bytes, &streams[seed % 2]).unwrap();
        (address, bytes)
    };
    let mut tensors: Vec<(u64, Vec<u8>)> = (0..3).map(&fresh).collect();
    for round in 0..rounds(60, 2000) {
        let stream = &streams[random(2)];
        let most = [100, 5000, 300_000, ROOM / 2][random(4)];
        let len = random(most) + 1;
        let (from, to) = (random(ROOM - len + 1), random(ROOM - len + 1));
        let (one, other) = (random(3), random(3));
        match random(6) {
            0 => {
                let bytes = fill(round, len);
                let (address, model) = &mut tensors[one];
                api.write(*address + to as u64, &bytes, stream).unwrap();
                model[to..to + len].copy_from_slice(&bytes);
            }
            1 => {
                let (address, model) = &tensors[one];
                let got = api.read(address + from as u64, len, stream).unwrap();
                assert!(got == model[from..from + len], "{len} at {from}");
            }
            2 => {
                api.device.free(tensors[one].0).unwrap();
                tensors[one] = fresh(round);
            }
            3 => {
                // C = A + A over whole words of the model: the sum of equal floats is exact.
                let n = random(10_000) + 1;
                let (address, model) = &mut tensors[one];
                let values = floats(thread as f32, n);
                api.write(*address, &values, stream).unwrap();
                let args = add_args(*address, *address, *address, n as i64);
                api.launch(&add, &args, stream).unwrap();
                model[..4 * n].copy_from_slice(&floats(2.0 * thread as f32, n));
            }
            _ => {
                let bytes = tensors[one].1[from..from + len].to_vec();
                let source = tensors[one].0 + from as u64;
                let (address, model) = &mut tensors[other];
                api.move_bytes(source, *address + to as u64, len as i64, stream).unwrap();
                model[to..to + len].copy_from_slice(&bytes);
            }
        }
    }
    for (address, model) in tensors {
        assert!(api.read(address, ROOM, &streams[0]).unwrap() == model);
        api.device.free(address).unwrap();
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
