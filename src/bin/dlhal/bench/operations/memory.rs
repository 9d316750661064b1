//! Allocating and freeing, and the first touch of fresh memory.

use std::sync::Barrier;
use std::time::Instant;

use dlhal::{Error, Result};

use super::{Operation, size_name};
use crate::bench::api::{Api, Args, Tensor};
use crate::bench::context::Context;
use crate::bench::kernels::{self, FILL, THREADS};
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds, seconds_each};
use crate::bench::raw::{KernelDesc, Kind, Lane, Raw, Scope};

const MANY_THREADS: usize = 8;

pub(super) fn operations() -> Vec<Operation> {
    let sizes = [4 << 10, 1 << 20, 64 << 20];
    let one = sizes.map(|size| {
        let name = format!("allocate and free {}", size_name(size));
        Operation::new("memory", name, move |context| allocate(context, size))
    });
    let many = sizes.map(|size| {
        let name = format!("allocate and free {}, {MANY_THREADS} threads", size_name(size));
        Operation::new("memory", name, move |context| allocate_by_many(context, size))
    });
    let touch = Operation::new("memory", "first touch of a fresh tensor", first_touch);
    one.into_iter().chain(many).chain([touch]).collect()
}

fn allocate(context: &Context, size: usize) -> Result<Outcome> {
    let api = &context.api;
    let pairs = context.count(2000);
    let raw = context.raw();
    let finish = Race::new(|| seconds_each(pairs, || pair(api, size)))
        .against(
            "a buffer and its memory",
            raw.map(|raw| move || seconds_each(4, || raw_pair(raw, size))),
        )
        .run(context.rounds(20))?;
    let target = Target::hardware(&[Bound::Most(1.0)]);
    Ok(Outcome::new(Unit::Microseconds, finish, Pick::Fastest, target))
}

fn allocate_by_many(context: &Context, size: usize) -> Result<Outcome> {
    let api = &context.api;
    let pairs = context.count(20_000);
    let raw = context.raw();
    let finish = Race::new(|| by_many(pairs, || pair(api, size)))
        .against(
            "a buffer and its memory",
            raw.map(|raw| move || by_many(2, || raw_pair(raw, size))),
        )
        .run(context.rounds(10))?;
    let target = Target::hardware(&[Bound::Least(4.0)]);
    Ok(Outcome::new(Unit::MillionsPerSecond, finish, Pick::Fastest, target))
}

fn pair(api: &Api, size: usize) -> Result<()> {
    api.free(api.allocate(size)?)
}

fn raw_pair(raw: &Raw, size: usize) -> Result<()> {
    raw.destroy_buffer(&raw.create_buffer(size as u64, Kind::Device)?);
    Ok(())
}

/// Seconds for each of the operations of all threads, from the first one's start to the last one's
/// end. Each thread does it once before.
fn by_many(each: usize, operation: impl Fn() -> Result<()> + Sync) -> Result<f64> {
    let ready = Barrier::new(MANY_THREADS);
    let thread = || -> Result<(Instant, Instant)> {
        let warm = operation();
        ready.wait();
        warm?;
        let start = Instant::now();
        (0..each).try_for_each(|_| operation())?;
        Ok((start, Instant::now()))
    };
    let times: Vec<Result<(Instant, Instant)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..MANY_THREADS).map(|_| scope.spawn(thread)).collect();
        let died = |_| Err(Error::internal("a thread of the measurement panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(died)).collect()
    });
    let times = times.into_iter().collect::<Result<Vec<_>>>()?;
    let start = times.iter().map(|(start, _)| *start).min();
    let end = times.iter().map(|(_, end)| *end).max();
    let all = end.zip(start).map_or(0.0, |(end, start)| (end - start).as_secs_f64());
    Ok(all / (each * MANY_THREADS) as f64)
}

/// Memory that the process has not had before, until the device has written all of it.
fn first_touch(context: &Context) -> Result<Outcome> {
    let wanted: usize = if context.software || context.quick { 64 << 20 } else { 1 << 30 };
    // The kernel that touches it binds all of it.
    let bound = context.raw().map_or(u32::MAX, |raw| raw.limits().max_storage_buffer_range);
    let size = wanted.min(bound as usize / 16 * 16);
    let api = &context.api;
    let fill = kernels::fill_module(api)?.function("fill")?;
    let stream = api.stream()?;
    let vectors = (size / 16) as u32;
    let groups = vectors.div_ceil(THREADS).min(8192);
    let touched = || -> Result<Tensor> {
        let tensor = api.tensor(size)?;
        let args = Args::new(&[&tensor], &[vectors, 7], groups, THREADS);
        api.launch(&fill, &args, &stream)?;
        stream.sync()?;
        Ok(tensor)
    };
    let ours = || {
        api.trim()?;
        let mut kept = None;
        let took = seconds(|| {
            kept = Some(touched()?);
            Ok(())
        });
        drop(kept);
        if api.trim()? < size as u64 {
            return Err(Error::unsupported("the memory does not go back to the driver"));
        }
        took
    };
    let scope = context.raw().map(Scope::new);
    let scope = scope.as_ref().map_err(Error::clone);
    let kernel = scope.clone().and_then(|scope| {
        let desc = KernelDesc { spirv: FILL, bindings: &[1], constants: 8, pushed: false };
        let kernel = scope.kernel(&desc)?;
        let set = scope.empty_set(&kernel)?;
        let commands = scope.commands(Lane::Main)?;
        let raw = context.raw()?;
        Ok(move || {
            let mut buffer = None;
            let took = seconds(|| {
                let fresh = &*buffer.insert(raw.create_buffer(size as u64, Kind::Device)?);
                kernel.write_set(&set, &[fresh]);
                commands.record(|commands| {
                    commands.bind(&kernel);
                    commands.bind_set(&kernel, &set);
                    commands.constants(&kernel, [vectors, 7]);
                    commands.dispatch(groups);
                })?;
                commands.run(context.waiting())
            });
            buffer.iter().for_each(|buffer| raw.destroy_buffer(buffer));
            took
        })
    });
    let command = scope.and_then(|scope| {
        let commands = scope.commands(Lane::Main)?;
        let raw = context.raw()?;
        Ok(move || {
            let mut buffer = None;
            let took = seconds(|| {
                let fresh = &*buffer.insert(raw.create_buffer(size as u64, Kind::Device)?);
                commands.record(|commands| commands.fill(fresh))?;
                commands.run(context.waiting())
            });
            buffer.iter().for_each(|buffer| raw.destroy_buffer(buffer));
            took
        })
    });
    let finish = Race::new(ours)
        .against("one allocation, filled by a kernel", kernel)
        .against("one allocation, filled by vkCmdFillBuffer", command)
        .run(context.rounds(10))?;
    let target = Target::hardware(&[Bound::MostOfLimit(1.1)]);
    Ok(Outcome::new(Unit::Milliseconds, finish, Pick::Fastest, target).noting(size_name(size)))
}
