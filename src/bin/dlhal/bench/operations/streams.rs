//! Two streams at once, against the longer of the two alone.

use dlhal::{Error, Result};

use super::{Operation, size_name};
use crate::bench::api::{Api, Args, Function, Stream, Tensor};
use crate::bench::context::Context;
use crate::bench::kernels::{self, SPIN, THREADS};
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds};
use crate::bench::raw::{Commands, KernelDesc, Kind, Lane, Scope, Waiting};

/// Groups of a kernel that runs beside a copy: few, so that it leaves the memory alone.
const FEW_GROUPS: u32 = 2;
/// How much longer a kernel may take with more groups and still count as running them all at once.
const AT_ONCE: f64 = 1.05;
const MOST_GROUPS: u32 = 32_768;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new("streams", "two streams: a copy while a kernel runs", copy_and_kernel),
        Operation::new("streams", "two streams: two kernels of half the device", two_kernels),
    ]
}

/// A kernel that keeps `groups` groups busy for `rounds` steps.
struct Spin<'a> {
    api: &'a Api,
    function: &'a Function,
    stream: Stream,
    target: Tensor,
    groups: u32,
    rounds: u32,
}

impl<'a> Spin<'a> {
    fn new(api: &'a Api, function: &'a Function, groups: u32, rounds: u32) -> Result<Self> {
        let target = api.tensor(bytes(groups))?;
        Ok(Self { api, function, stream: api.stream()?, target, groups, rounds })
    }

    /// Hands it to the device.
    fn start(&self) -> Result<()> {
        let args = Args::new(&[&self.target], &[self.rounds, 1], self.groups, THREADS);
        self.api.launch(self.function, &args, &self.stream)?;
        self.stream.flush()
    }

    /// What one run takes.
    fn once(&self) -> Result<f64> {
        seconds(|| {
            self.start()?;
            self.stream.sync()
        })
    }

    /// The shortest of three runs.
    fn time(&self) -> Result<f64> {
        Ok(self.once()?.min(self.once()?).min(self.once()?))
    }
}

/// Bytes that a kernel of so many groups writes.
fn bytes(groups: u32) -> usize {
    4 * (groups * THREADS) as usize
}

/// The steps that keep `groups` groups busy for about `wanted` seconds.
fn rounds_for(api: &Api, function: &Function, groups: u32, wanted: f64) -> Result<u32> {
    let mut rounds = 1000;
    loop {
        let took = Spin::new(api, function, groups, rounds)?.time()?;
        // Long enough that starting it does not count, or as long as it can be.
        if took >= wanted / 2.0 || rounds >= u32::MAX / 4 {
            return Ok((f64::from(rounds) * wanted / took) as u32);
        }
        rounds *= 2;
    }
}

fn copy_and_kernel(context: &Context) -> Result<Outcome> {
    let api = &context.api;
    let size = context.large() / 4;
    let function = kernels::spin_module(api)?.function("spin")?;
    let stream = api.stream()?;
    let (host, device) = (api.pinned(size)?, std::cell::RefCell::new(api.tensor(size)?));
    let copy = || {
        stream.copy(&host, &mut device.borrow_mut())?;
        stream.sync()
    };
    copy()?;
    let copy_time = seconds(copy)?.min(seconds(copy)?);
    let rounds = rounds_for(api, &function, FEW_GROUPS, copy_time)?;
    let spin = Spin::new(api, &function, FEW_GROUPS, rounds)?;
    let both = || {
        seconds(|| {
            spin.start()?;
            copy()?;
            spin.stream.sync()
        })
    };
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let raw = |together| {
        scope().and_then(|scope| {
            let first = raw_spin(scope, Lane::Main, FEW_GROUPS, rounds)?;
            let second = raw_copy(scope, size)?;
            Ok(raw_pair(first, second, together, context.waiting()))
        })
    };
    let finish = Race::new(both)
        .against("the longer of the two alone", Ok(|| Ok(spin.once()?.max(seconds(copy)?))))
        .beside("two queues by hand", raw(true))
        .beside("two queues by hand, the longer of the two alone", raw(false))
        .run(context.rounds(20))?;
    let note = format!("{} from pinned memory, {FEW_GROUPS} groups", size_name(size));
    Ok(outcome(finish).noting(note))
}

fn two_kernels(context: &Context) -> Result<Outcome> {
    let api = &context.api;
    let function = kernels::spin_module(api)?.function("spin")?;
    let wanted = if context.quick { 1e-3 } else { 3e-3 };
    let rounds = rounds_for(api, &function, 1, wanted)?;
    let most = groups_at_once(api, &function, rounds)?;
    let half = (most / 2).max(1);
    let first = Spin::new(api, &function, half, rounds)?;
    let second = Spin::new(api, &function, half, rounds)?;
    let both = || {
        seconds(|| {
            first.start()?;
            second.start()?;
            first.stream.sync()?;
            second.stream.sync()
        })
    };
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let raw = |together| {
        scope().and_then(|scope| {
            let first = raw_spin(scope, Lane::Main, half, rounds)?;
            let second = raw_spin(scope, Lane::Second, half, rounds)?;
            Ok(raw_pair(first, second, together, context.waiting()))
        })
    };
    let longer = || Ok(first.once()?.max(second.once()?));
    let finish = Race::new(both)
        .against("the longer of the two alone", Ok(longer))
        .beside("two queues by hand", raw(true))
        .beside("two queues by hand, the longer of the two alone", raw(false))
        .run(context.rounds(20))?;
    Ok(outcome(finish).noting(format!("{half} groups each, {most} run at once")))
}

fn outcome(finish: crate::bench::race::Finish) -> Outcome {
    let target = Target::hardware(&[Bound::MostOfLimit(1.15)]);
    Outcome::new(Unit::Milliseconds, finish, Pick::Fastest, target)
}

/// The most groups that take no longer than one.
fn groups_at_once(api: &Api, function: &Function, rounds: u32) -> Result<u32> {
    let time = |groups| Spin::new(api, function, groups, rounds)?.time();
    let bound = AT_ONCE * time(1)?;
    let mut fits = 1;
    while fits < MOST_GROUPS && time(2 * fits)? <= bound {
        fits *= 2;
    }
    // Between what fits and twice as many, to an eighth.
    let mut step = fits / 2;
    for _ in 0..3 {
        if step > 0 && time(fits + step)? <= bound {
            fits += step;
        }
        step /= 2;
    }
    Ok(fits)
}

fn raw_spin<'s>(
    scope: &'s Scope<'_>,
    lane: Lane,
    groups: u32,
    rounds: u32,
) -> Result<Commands<'s>> {
    let target = scope.buffer(bytes(groups) as u64, Kind::Device)?;
    let kernel =
        scope.kernel(&KernelDesc { spirv: SPIN, bindings: &[1], constants: 8, pushed: false })?;
    let set = scope.set(&kernel, &[&target])?;
    let commands = scope.commands(lane)?;
    commands.record(|commands| {
        commands.bind(&kernel);
        commands.bind_set(&kernel, &set);
        commands.constants(&kernel, [rounds, 1]);
        commands.dispatch(groups);
    })?;
    Ok(commands)
}

fn raw_copy<'s>(scope: &'s Scope<'_>, size: usize) -> Result<Commands<'s>> {
    let mut pinned = scope.buffer(size as u64, Kind::Pinned)?;
    pinned.bytes().fill(1);
    let device = scope.buffer(size as u64, Kind::Device)?;
    let commands = scope.commands(Lane::Copy)?;
    commands.record(|commands| commands.copy(&pinned, &device, size as u64))?;
    Ok(commands)
}

/// Both at once, or the longer of the two alone.
fn raw_pair<'s>(
    first: Commands<'s>,
    second: Commands<'s>,
    together: bool,
    waiting: Waiting,
) -> impl FnMut() -> Result<f64> + 's {
    let alone = move |commands: &Commands<'s>| seconds(|| commands.run(waiting));
    move || {
        if !together {
            return Ok(alone(&first)?.max(alone(&second)?));
        }
        seconds(|| {
            first.submit()?;
            second.submit()?;
            first.wait(waiting)?;
            second.wait(waiting)
        })
    }
}
