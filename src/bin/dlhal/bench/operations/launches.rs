//! Launches: in rows that depend on each other or do not, as many as a small model makes, and one
//! alone.

use std::ops::Range;

use dlhal::{Error, Result};

use super::Operation;
use crate::bench::api::Launch;
use crate::bench::context::Context;
use crate::bench::kernels::{self, ADD, ADD_ARRAY, ADD_BYTES, FLOATS, OUTPUTS};
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds};
use crate::bench::raw::{Buffer, Commands, Kernel, KernelDesc, Kind, Lane, Scope, Set, Waiting};
use crate::bench::rows::{Launches, Row};

/// Launches of a row.
const LAUNCHES: usize = 10_000;
/// Launches of a burst.
const BURST: usize = 96;
/// A burst in pieces, of which the device runs one while the next is recorded.
const PIECES: [usize; 4] = [8, 16, 32, 40];
const _: () = assert!(PIECES[0] + PIECES[1] + PIECES[2] + PIECES[3] == BURST);

/// How the library is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Packed,
    Prepared,
}

pub(super) fn operations() -> Vec<Operation> {
    let rows = [
        ("10,000 dependent launches, each", Row::Dependent, Call::Packed),
        ("10,000 dependent launches, prepared, each", Row::Dependent, Call::Prepared),
        ("10,000 independent launches, each", Row::Independent, Call::Packed),
        ("10,000 independent launches, prepared, each", Row::Independent, Call::Prepared),
    ];
    let rows = rows.map(|(name, row, call)| {
        Operation::new("launches", name, move |context| measure_row(context, row, call))
    });
    let waits = [
        Operation::new(
            "waits",
            format!("{BURST} dependent launches and synchronise"),
            measure_burst,
        ),
        Operation::new("waits", "one launch and synchronise", measure_one),
    ];
    rows.into_iter().chain(waits).collect()
}

fn measure_row(context: &Context, row: Row, call: Call) -> Result<Outcome> {
    let api = &context.api;
    let count = context.count(LAUNCHES);
    let function = kernels::add_module(api)?.function("add")?;
    let launches = Launches::new(api, &function, row)?;
    let mut prepared: Vec<Launch> =
        launches.args.iter().map(|args| api.prepare(&function, args)).collect::<Result<_>>()?;
    let turns = prepared.len();
    let mut run_prepared = || {
        seconds(|| {
            (0..count).try_for_each(|turn| prepared[turn % turns].run(&launches.stream))?;
            launches.stream.sync()
        })
    };
    let ours = || {
        let all = match call {
            Call::Packed => launches.run(count)?.1,
            Call::Prepared => run_prepared()?,
        };
        Ok(all / count as f64)
    };
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let by_hand = |descriptors| {
        let hand = ByHand::new(scope()?, row, descriptors)?;
        let mut run = in_pieces(scope()?, hand, &[count], context.waiting())?;
        Ok(move || run().map(|all| all / count as f64))
    };
    let finish = Race::new(ours)
        .against(
            format!("{}, the same descriptors throughout", barriers(row)),
            by_hand(Descriptors::Fixed),
        )
        .against(
            format!("{}, 3 descriptors pushed each time", barriers(row)),
            by_hand(Descriptors::Pushed),
        )
        .run(context.rounds(10))?;
    let most = if row == Row::Dependent { 1.15 } else { 1.3 };
    let target = Target::hardware(&[Bound::MostOfLimit(most)]);
    Ok(Outcome::new(Unit::Microseconds, finish, Pick::Fastest, target)
        .noting(format!("{count} launches")))
}

fn barriers(row: Row) -> &'static str {
    match row {
        Row::Dependent => "a barrier after each dispatch",
        Row::Independent => "a barrier after each 64 dispatches",
    }
}

/// How a dispatch by hand finds its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Descriptors {
    Fixed,
    Pushed,
}

/// A row's dispatches by hand.
struct ByHand<'s> {
    row: Row,
    a: Buffer<'s>,
    b: Buffer<'s>,
    outputs: Vec<Buffer<'s>>,
    kernel: Kernel<'s>,
    /// `None` where descriptors are pushed.
    set: Option<Set<'s>>,
}

impl<'s> ByHand<'s> {
    fn new(scope: &'s Scope<'_>, row: Row, descriptors: Descriptors) -> Result<Self> {
        let pushed = descriptors == Descriptors::Pushed;
        let buffer = || scope.buffer(ADD_BYTES as u64, Kind::Device);
        let (a, b) = (buffer()?, buffer()?);
        let outputs: Vec<_> = (0..row.outputs()).map(|_| buffer()).collect::<Result<_>>()?;
        let array = [1, 1, OUTPUTS as u32];
        let kernel = scope.kernel(&match (row, descriptors) {
            (Row::Independent, Descriptors::Fixed) => {
                KernelDesc { spirv: ADD_ARRAY, bindings: &array, constants: 8, pushed }
            }
            _ => KernelDesc { spirv: ADD, bindings: &[1; 3], constants: 4, pushed },
        })?;
        let mut hand = Self { row, a, b, outputs, kernel, set: None };
        if !pushed {
            let all: Vec<_> = [hand.first(), &hand.b].into_iter().chain(&hand.outputs).collect();
            hand.set = Some(scope.set(&hand.kernel, &all)?);
        }
        Ok(hand)
    }

    /// The first input, which a dependent dispatch writes as well.
    fn first(&self) -> &Buffer<'s> {
        if self.row == Row::Dependent { &self.outputs[0] } else { &self.a }
    }

    /// Records the dispatches of `turns`.
    fn record(&self, commands: &Commands<'s>, turns: Range<usize>) {
        commands.bind(&self.kernel);
        if let Some(set) = &self.set {
            commands.bind_set(&self.kernel, set);
        }
        for turn in turns {
            let which = turn % self.outputs.len();
            if self.set.is_none() {
                let buffers = [self.first(), &self.b, &self.outputs[which]];
                commands.push_buffers(&self.kernel, buffers);
            }
            match (self.row, &self.set) {
                (Row::Independent, Some(_)) => {
                    commands.constants(&self.kernel, [FLOATS, which as u32]);
                }
                _ => commands.constants(&self.kernel, [FLOATS]),
            }
            commands.dispatch(1);
            if which + 1 == self.outputs.len() {
                commands.kernel_barrier();
            }
        }
    }
}

/// Recording and submitting pieces of so many dispatches, and awaiting them all; seconds for that.
fn in_pieces<'s>(
    scope: &'s Scope<'_>,
    hand: ByHand<'s>,
    pieces: &[usize],
    waiting: Waiting,
) -> Result<impl FnMut() -> Result<f64> + use<'s>> {
    let mut recorded = 0;
    let piece = |&count: &usize| {
        recorded += count;
        Ok((scope.commands(Lane::Main)?, recorded - count..recorded))
    };
    let pieces = pieces.iter().map(piece).collect::<Result<Vec<_>>>()?;
    Ok(move || {
        seconds(|| {
            for (commands, turns) in &pieces {
                commands.record(|commands| hand.record(commands, turns.clone()))?;
                commands.submit()?;
            }
            pieces.iter().try_for_each(|(commands, _)| commands.wait(waiting))
        })
    })
}

/// What a small model is to a device: launches that each read what the one before has written, and
/// somebody who waits for the last.
fn measure_burst(context: &Context) -> Result<Outcome> {
    let api = &context.api;
    let function = kernels::add_module(api)?.function("add")?;
    let launches = Launches::new(api, &function, Row::Dependent)?;
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let waiting = context.waiting();
    let by_hand = || ByHand::new(scope()?, Row::Dependent, Descriptors::Pushed);
    let recorded = |pieces: &[usize]| in_pieces(scope()?, by_hand()?, pieces, waiting);
    let recorded_before = || {
        let (hand, commands) = (by_hand()?, scope()?.commands(Lane::Main)?);
        commands.record(|commands| hand.record(commands, 0..BURST))?;
        Ok(move || seconds(|| commands.run(waiting)))
    };
    let finish = Race::new(|| launches.run(BURST).map(|(_, done)| done))
        .against("recorded, then submitted", recorded(&[BURST]))
        .against(format!("recorded and submitted in pieces of {PIECES:?}"), recorded(&PIECES))
        .beside("recorded before, submitted and waited for", recorded_before())
        .run(context.rounds(500))?;
    let target = Target::hardware(&[Bound::MostOfLimit(1.15)]);
    Ok(Outcome::new(Unit::Microseconds, finish, Pick::Fastest, target))
}

fn measure_one(context: &Context) -> Result<Outcome> {
    let api = &context.api;
    let function = kernels::add_module(api)?.function("add")?;
    let launches = Launches::new(api, &function, Row::Dependent)?;
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let one = |waiting| scope().and_then(|scope| one_by_hand(scope, 1, waiting));
    let empty = |waiting| scope().and_then(|scope| one_by_hand(scope, 0, waiting));
    let finish = Race::new(|| launches.run(1).map(|(_, done)| done))
        .against("one dispatch, polled", one(Waiting::Polling))
        .against("one dispatch, waited for", one(Waiting::Asleep))
        .beside("an empty submission, polled", empty(Waiting::Polling))
        .beside("an empty submission, waited for", empty(Waiting::Asleep))
        .run(context.rounds(500))?;
    let target = Target::hardware(&[Bound::Most(20.0)]);
    Ok(Outcome::new(Unit::Microseconds, finish, Pick::Fastest, target))
}

/// Submitting and awaiting what was recorded before.
fn one_by_hand<'s>(
    scope: &'s Scope<'_>,
    dispatches: usize,
    waiting: Waiting,
) -> Result<impl FnMut() -> Result<f64> + 's> {
    let buffer = || scope.buffer(ADD_BYTES as u64, Kind::Device);
    let (b, c) = (buffer()?, buffer()?);
    let kernel =
        scope.kernel(&KernelDesc { spirv: ADD, bindings: &[1; 3], constants: 4, pushed: false })?;
    let set = scope.set(&kernel, &[&c, &b, &c])?;
    let commands = scope.commands(Lane::Main)?;
    commands.record(|commands| {
        for _ in 0..dispatches {
            commands.bind(&kernel);
            commands.bind_set(&kernel, &set);
            commands.constants(&kernel, [FLOATS]);
            commands.dispatch(1);
        }
    })?;
    Ok(move || seconds(|| commands.run(waiting)))
}
