//! Launches: in rows that depend on each other or do not, and one alone.

use dlhal::{Error, Result};

use super::Operation;
use crate::bench::api::{Api, Args, Launch, Tensor};
use crate::bench::context::Context;
use crate::bench::kernels::{self, ADD, ADD_ARRAY, ADD_BYTES, FLOATS, OUTPUTS};
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds};
use crate::bench::raw::{Buffer, Commands, KernelDesc, Kind, Lane, Scope, Waiting};

/// Launches of a row.
const LAUNCHES: usize = 10_000;

/// Whether each launch of a row reads what the one before has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Dependent,
    Independent,
}

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
    let one = Operation::new("waits", "one launch and synchronise", measure_one);
    rows.into_iter().chain([one]).collect()
}

/// Two inputs and the outputs that launches write in turn; one output for a dependent row, where it
/// is an input as well.
struct Tensors {
    inputs: [Tensor; 2],
    outputs: Vec<Tensor>,
}

impl Tensors {
    fn new(api: &Api, row: Row) -> Result<Self> {
        let count = if row == Row::Dependent { 1 } else { OUTPUTS };
        let tensor = || api.tensor(ADD_BYTES);
        Ok(Self {
            inputs: [tensor()?, tensor()?],
            outputs: (0..count).map(|_| tensor()).collect::<Result<_>>()?,
        })
    }

    fn args(&self, row: Row) -> Vec<Args> {
        let [a, b] = &self.inputs;
        let of = |c| {
            let first = if row == Row::Dependent { c } else { a };
            Args::new(&[first, b, c], &[FLOATS], 1, FLOATS)
        };
        self.outputs.iter().map(of).collect()
    }
}

fn measure_row(context: &Context, row: Row, call: Call) -> Result<Outcome> {
    let api = &context.api;
    let count = context.count(LAUNCHES);
    let stream = api.stream()?;
    let function = kernels::add_module(api)?.function("add")?;
    let tensors = Tensors::new(api, row)?;
    let args = tensors.args(row);
    let mut prepared: Vec<Launch> =
        args.iter().map(|args| api.prepare(&function, args)).collect::<Result<_>>()?;
    let turns = args.len();
    let ours = || {
        let all = seconds(|| {
            for turn in 0..count {
                match call {
                    Call::Packed => api.launch(&function, &args[turn % turns], &stream)?,
                    Call::Prepared => prepared[turn % turns].run(&stream)?,
                }
            }
            stream.sync()
        });
        all.map(|all| all / count as f64)
    };
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let fixed = scope().and_then(|scope| by_hand(context, scope, row, false));
    let pushed = scope().and_then(|scope| by_hand(context, scope, row, true));
    let finish = Race::new(ours)
        .against(format!("{}, the same descriptors throughout", row.barriers()), fixed)
        .against(format!("{}, 3 descriptors pushed each time", row.barriers()), pushed)
        .run(context.rounds(10))?;
    let most = if row == Row::Dependent { 1.15 } else { 1.3 };
    let target = Target::hardware(&[Bound::MostOfLimit(most)]);
    Ok(Outcome::new(Unit::Microseconds, finish, Pick::Fastest, target)
        .noting(format!("{count} launches")))
}

impl Row {
    fn barriers(self) -> &'static str {
        match self {
            Self::Dependent => "a barrier after each dispatch",
            Self::Independent => "a barrier after each 64 dispatches",
        }
    }

    /// Dispatches after which the next has to wait: those that write what was written before.
    fn between_barriers(self) -> usize {
        match self {
            Self::Dependent => 1,
            Self::Independent => OUTPUTS,
        }
    }
}

/// Recording, submitting and awaiting as many dispatches; seconds for each.
fn by_hand<'s>(
    context: &Context,
    scope: &'s Scope<'_>,
    row: Row,
    pushed: bool,
) -> Result<impl FnMut() -> Result<f64> + 's> {
    let (count, waiting) = (context.count(LAUNCHES), context.waiting());
    let buffer = || scope.buffer(ADD_BYTES as u64, Kind::Device);
    let (a, b) = (buffer()?, buffer()?);
    let outputs: Vec<Buffer<'_>> =
        (0..row.between_barriers()).map(|_| buffer()).collect::<Result<_>>()?;
    let first = if row == Row::Dependent { &outputs[0] } else { &a };
    let kernel = scope.kernel(&match (row, pushed) {
        (Row::Independent, false) => {
            KernelDesc { spirv: ADD_ARRAY, bindings: &[1, 1, OUTPUTS as u32], constants: 8, pushed }
        }
        _ => KernelDesc { spirv: ADD, bindings: &[1; 3], constants: 4, pushed },
    })?;
    let set = if pushed {
        None
    } else {
        let all: Vec<_> = [first, &b].into_iter().chain(&outputs).collect();
        Some(scope.set(&kernel, &all)?)
    };
    let commands = scope.commands(Lane::Main)?;
    Ok(move || {
        let first = if row == Row::Dependent { &outputs[0] } else { &a };
        let record = |commands: &Commands<'s>| {
            commands.bind(&kernel);
            if let Some(set) = &set {
                commands.bind_set(&kernel, set);
            }
            for turn in 0..count {
                let which = turn % outputs.len();
                if pushed {
                    commands.push_buffers(&kernel, [first, &b, &outputs[which]]);
                }
                match (row, pushed) {
                    (Row::Independent, false) => {
                        commands.constants(&kernel, [FLOATS, which as u32]);
                    }
                    _ => commands.constants(&kernel, [FLOATS]),
                }
                commands.dispatch(1);
                if which + 1 == outputs.len() {
                    commands.kernel_barrier();
                }
            }
        };
        let all = seconds(|| {
            commands.record(record)?;
            commands.run(waiting)
        });
        all.map(|all| all / count as f64)
    })
}

fn measure_one(context: &Context) -> Result<Outcome> {
    let api = &context.api;
    let stream = api.stream()?;
    let function = kernels::add_module(api)?.function("add")?;
    let tensors = Tensors::new(api, Row::Dependent)?;
    let args = tensors.args(Row::Dependent);
    let ours = || {
        seconds(|| {
            api.launch(&function, &args[0], &stream)?;
            stream.sync()
        })
    };
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let one = |waiting| scope().and_then(|scope| one_by_hand(scope, 1, waiting));
    let empty = |waiting| scope().and_then(|scope| one_by_hand(scope, 0, waiting));
    let finish = Race::new(ours)
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
