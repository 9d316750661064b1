//! The parts that a launch and an allocation are made of, each alone, on the null driver: what they
//! cost the host, without a device. `cargo bench --bench parts`; `dlhal bench` measures devices.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dlhal::hal::{self, Deadline, MemoryKind};
use dlhal::module::Module;
use dlhal::null;
use dlhal::runtime::{Device, Launch, Stream};

use common::{add_args, add_function};

criterion_group!(benches, allocations, addresses, launches, modules);
criterion_main!(benches);

/// A device of the null driver that runs kernels by doing nothing.
fn device() -> Arc<Device> {
    let options = null::Options { kernel: Some(Arc::new(|_| Ok(()))), ..null::Options::default() };
    let driver: Arc<dyn hal::Device> = null::Device::new(options);
    Device::new(0, driver).unwrap()
}

fn allocations(criterion: &mut Criterion) {
    let device = device();
    let mut group = criterion.benchmark_group("allocate and free");
    for size in [4u64 << 10, 1 << 20] {
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                let address = device.allocate(size, 64, MemoryKind::Device).unwrap();
                device.free(address).unwrap();
            });
        });
    }
}

fn addresses(criterion: &mut Criterion) {
    let device = device();
    let mut group = criterion.benchmark_group("look an address up");
    for live in [1usize, 1000, 100_000] {
        let addresses: Vec<u64> =
            (0..live).map(|_| device.allocate(256, 64, MemoryKind::Device).unwrap()).collect();
        // Neighbours would be found in the same cache lines.
        let mut turn = addresses.iter().step_by(live.div_ceil(97)).cycle();
        group.bench_function(BenchmarkId::new("live", live), |bencher| {
            bencher.iter(|| device.resolve(black_box(turn.next().unwrap() + 17)).unwrap());
        });
        addresses.into_iter().for_each(|address| device.free(address).unwrap());
    }
}

fn launches(criterion: &mut Criterion) {
    let device = device();
    let [a, b, c] = [0; 3].map(|_| device.allocate(256, 64, MemoryKind::Device).unwrap());
    let (function, args) = (add_function(), add_args(a, b, c, 64));
    criterion.bench_function("pack a launch's arguments", |bencher| {
        bencher.iter(|| {
            Launch::new(&function, &device, black_box(&args).iter().copied().map(Ok)).unwrap()
        });
    });
    let launch = Launch::new(&function, &device, args.iter().copied().map(Ok)).unwrap();
    // What the null driver executes is no part of recording: that is waited for outside.
    let fresh = || {
        let stream = Stream::new(&device).unwrap();
        launch.run(&stream).unwrap();
        stream.sync(Deadline::Never).unwrap();
        stream
    };
    let count = 100;
    let mut group = criterion.benchmark_group("record launches");
    group.throughput(Throughput::Elements(count));
    group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
        bencher.iter_batched(
            fresh,
            |stream| {
                (0..count).for_each(|_| launch.run(&stream).unwrap());
                stream
            },
            BatchSize::SmallInput,
        );
    });
}

fn modules(criterion: &mut Criterion) {
    let bytes = include_bytes!("../tests/data/modules/attention_f32.vulkan.bin");
    criterion.bench_function("parse a module", |bencher| {
        bencher.iter(|| Module::from_bytes(black_box(bytes)).unwrap());
    });
}
