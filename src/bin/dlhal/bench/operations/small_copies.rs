//! Copies so small that only what surrounds them counts.

use dlhal::{Error, Result};

use super::Operation;
use crate::bench::api::{Args, Tensor};
use crate::bench::context::Context;
use crate::bench::kernels::{self, ADD, FLOATS};
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds, seconds_each};
use crate::bench::raw::{KernelDesc, Kind, Lane, Scope, Waiting};

const SIZE: usize = 4 << 10;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new("waits", "host to device 4 KiB, idle tensor", to_idle),
        Operation::new("waits", "device to host 4 KiB after a kernel", after_kernel),
    ]
}

fn to_idle(context: &Context) -> Result<Outcome> {
    let stream = context.api.stream()?;
    let (host, mut device) = (Tensor::ordinary(SIZE), context.api.tensor(SIZE)?);
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let source = vec![1u8; SIZE];
    let mapped = scope().and_then(|scope| {
        let mut mapped = scope.buffer(SIZE as u64, Kind::Mapped)?;
        let source = &source;
        Ok(move || {
            seconds_each(50, || {
                std::hint::black_box(mapped.bytes()).copy_from_slice(source);
                Ok(())
            })
        })
    });
    let copied = scope().and_then(|scope| {
        let mut pinned = scope.buffer(SIZE as u64, Kind::Pinned)?;
        let device = scope.buffer(SIZE as u64, Kind::Device)?;
        let commands = scope.commands(Lane::Main)?;
        commands.record(|commands| commands.copy(&pinned, &device, SIZE as u64))?;
        let source = &source;
        Ok(move || {
            seconds(|| {
                pinned.bytes().copy_from_slice(source);
                commands.run(Waiting::Polling)
            })
        })
    });
    let ours = || {
        seconds_each(50, || {
            stream.copy(&host, &mut device)?;
            stream.sync()
        })
    };
    let finish = Race::new(ours)
        .against("a write through the mapping", mapped)
        .against("a copy command from pinned memory, polled", copied)
        .run(context.rounds(100))?;
    let target = Target::hardware(&[Bound::Most(2.0)]);
    Ok(Outcome::new(Unit::Microseconds, finish, Pick::Fastest, target))
}

fn after_kernel(context: &Context) -> Result<Outcome> {
    let api = &context.api;
    let stream = api.stream()?;
    let function = kernels::add_module(api)?.function("add")?;
    let [a, b, c] = [api.tensor(SIZE)?, api.tensor(SIZE)?, api.tensor(SIZE)?];
    let args = Args::new(&[&a, &b, &c], &[FLOATS], 1, FLOATS);
    let mut host = Tensor::ordinary(SIZE);
    let ours = || {
        seconds(|| {
            api.launch(&function, &args, &stream)?;
            stream.copy(&c, &mut host)
        })
    };
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let raw = |waiting| {
        scope().and_then(|scope| {
            let [a, b, c] = kernels_buffers(scope)?;
            let mut pinned = scope.buffer(SIZE as u64, Kind::Pinned)?;
            let desc = KernelDesc { spirv: ADD, bindings: &[1; 3], constants: 4, pushed: false };
            let kernel = scope.kernel(&desc)?;
            let set = scope.set(&kernel, &[&a, &b, &c])?;
            let commands = scope.commands(Lane::Main)?;
            commands.record(|commands| {
                commands.bind(&kernel);
                commands.bind_set(&kernel, &set);
                commands.constants(&kernel, [FLOATS]);
                commands.dispatch(1);
                commands.kernel_to_copy_barrier();
                commands.copy(&c, &pinned, SIZE as u64);
                commands.copy_to_host_barrier();
            })?;
            let mut target = vec![0u8; SIZE];
            Ok(move || {
                seconds(|| {
                    commands.run(waiting)?;
                    std::hint::black_box(&mut target).copy_from_slice(pinned.bytes());
                    Ok(())
                })
            })
        })
    };
    let finish = Race::new(ours)
        .against("dispatch, copy, one submission, polled", raw(Waiting::Polling))
        .against("dispatch, copy, one submission, waited for", raw(Waiting::Asleep))
        .run(context.rounds(300))?;
    let target = Target::hardware(&[Bound::Most(20.0)]);
    Ok(Outcome::new(Unit::Microseconds, finish, Pick::Fastest, target))
}

/// Three buffers of the device.
fn kernels_buffers<'s>(scope: &'s Scope<'_>) -> Result<[crate::bench::raw::Buffer<'s>; 3]> {
    let buffer = || scope.buffer(SIZE as u64, Kind::Device);
    Ok([buffer()?, buffer()?, buffer()?])
}
