//! How costs grow: with what lives, what is loaded, what is in flight, and how many threads there
//! are.

use std::sync::Barrier;
use std::time::Instant;

use dlhal::{Error, Result};

use super::api::{Api, Args, Function};
use super::context::Context;
use super::kernels::{self, ADD_BYTES, OUTPUTS};
use super::race::{Samples, seconds_each};
use super::rows::{Launches, Row};

/// The group of all curves.
pub(super) const GROUP: &str = "curves";

/// One curve to measure.
pub(super) struct Curve {
    pub(super) name: &'static str,
    /// What the horizontal axis counts.
    pub(super) against: &'static str,
    pub(super) unit: &'static str,
    /// The full range; a short run ends earlier.
    counts: &'static [usize],
    quick_up_to: usize,
    measure: fn(&Context, &[usize]) -> Result<Vec<Line>>,
}

/// One line of a curve: a value for each count.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) what: &'static str,
    pub(super) points: Vec<(usize, Samples)>,
}

pub(super) fn all() -> Vec<Curve> {
    const DECADES: &[usize] = &[1, 10, 100, 1000, 10_000, 100_000];
    let curve = |name, against, unit, counts, quick_up_to, measure| Curve {
        name,
        against,
        unit,
        counts,
        quick_up_to,
        measure,
    };
    vec![
        curve("ns per launch, live tensors", "live tensors", "ns", DECADES, 1000, live_tensors),
        curve("ns per launch, loaded modules", "modules", "ns", &DECADES[..4], 10, modules),
        curve("ns per launch, in flight", "launches", "ns", &DECADES[..5], 1000, in_flight),
        curve("launches per second, threads", "threads", "million/s", &[1, 2, 4, 8], 8, threads),
        curve(
            "ns per allocate and free, live tensors",
            "live tensors",
            "ns",
            DECADES,
            1000,
            allocations,
        ),
    ]
}

impl Curve {
    /// Measures it.
    pub(super) fn run(&self, context: &Context) -> Result<Vec<Line>> {
        let most = if context.quick { self.quick_up_to } else { usize::MAX };
        let counts: Vec<usize> = self.counts.iter().copied().filter(|n| *n <= most).collect();
        (self.measure)(context, &counts)
    }
}

/// Both times of a launch in several runs of `count`, in nanoseconds.
fn samples(launches: &Launches<'_>, count: usize, runs: usize) -> Result<[Samples; 2]> {
    launches.run(count)?;
    let runs = (0..runs).map(|_| launches.run(count)).collect::<Result<Vec<_>>>()?;
    let (called, done): (Vec<f64>, Vec<f64>) = runs.into_iter().unzip();
    let each = |seconds| seconds / count as f64 * 1e9;
    Ok([called, done].map(|seconds| Samples::new(seconds).map(each)))
}

/// The two lines that launches have.
struct CallsAndAll {
    calls: Vec<(usize, Samples)>,
    all: Vec<(usize, Samples)>,
}

impl CallsAndAll {
    fn measure(
        counts: &[usize],
        mut at: impl FnMut(usize) -> Result<[Samples; 2]>,
    ) -> Result<Self> {
        let mut lines = Self { calls: Vec::new(), all: Vec::new() };
        for &count in counts {
            let [calls, all] = at(count)?;
            lines.calls.push((count, calls));
            lines.all.push((count, all));
        }
        Ok(lines)
    }

    fn lines(self) -> Vec<Line> {
        vec![
            Line { what: "the call", points: self.calls },
            Line { what: "until it is done", points: self.all },
        ]
    }
}

fn live_tensors(context: &Context, counts: &[usize]) -> Result<Vec<Line>> {
    let api = &context.api;
    let function = kernels::add_module(api)?.function("add")?;
    let launches = Launches::new(api, &function, Row::Independent)?;
    let mut live = Vec::new();
    let lines = CallsAndAll::measure(counts, |count| {
        while live.len() < count {
            live.push(api.tensor(ADD_BYTES)?);
        }
        samples(&launches, context.count(2000), context.rounds(9))
    })?;
    Ok(lines.lines())
}

fn modules(context: &Context, counts: &[usize]) -> Result<Vec<Line>> {
    let api = &context.api;
    let function = kernels::add_module(api)?.function("add")?;
    let launches = Launches::new(api, &function, Row::Independent)?;
    let salts = std::process::id().wrapping_mul(4001);
    let target = api.tensor(4 * kernels::THREADS as usize)?;
    let args = Args::new(&[&target], &[1, 1], 1, kernels::THREADS);
    let mut loaded = Vec::new();
    let lines = CallsAndAll::measure(counts, |count| {
        while loaded.len() < count {
            let salt = salts.wrapping_add(loaded.len() as u32);
            let module = api.load(&kernels::small_variant(api, salt)?)?;
            let function = module.function("spin")?;
            // Loaded is what has been made ready for the device.
            api.launch(&function, &args, &launches.stream)?;
            loaded.push((module, function));
        }
        samples(&launches, context.count(2000), context.rounds(9))
    })?;
    Ok(lines.lines())
}

fn in_flight(context: &Context, counts: &[usize]) -> Result<Vec<Line>> {
    let function = kernels::add_module(&context.api)?.function("add")?;
    let launches = Launches::new(&context.api, &function, Row::Independent)?;
    let lines = CallsAndAll::measure(counts, |count| {
        let runs = if count <= 100 { 100 } else { 9 };
        samples(&launches, count, context.rounds(runs))
    })?;
    Ok(lines.lines())
}

fn threads(context: &Context, counts: &[usize]) -> Result<Vec<Line>> {
    let function = kernels::add_module(&context.api)?.function("add")?;
    let each = context.count(4000);
    let mut lines = CallsAndAll { calls: Vec::new(), all: Vec::new() };
    for &count in counts {
        let runs = (0..context.rounds(9))
            .map(|_| launches_of_all(&context.api, &function, count, each))
            .collect::<Result<Vec<_>>>()?;
        let (calls, all): (Vec<f64>, Vec<f64>) = runs.into_iter().unzip();
        lines.calls.push((count, Samples::new(calls)));
        lines.all.push((count, Samples::new(all)));
    }
    Ok(lines.lines())
}

/// Millions of launches in a second by all of `threads` threads: of the calls alone, and until all
/// are done.
fn launches_of_all(
    api: &Api,
    function: &Function,
    threads: usize,
    each: usize,
) -> Result<(f64, f64)> {
    let ready = Barrier::new(threads);
    let thread = || -> Result<[Instant; 3]> {
        let launches = Launches::new(api, function, Row::Independent);
        // Warm, and with what the first launches of a thread make.
        let warm = launches.as_ref().map_err(Error::clone).and_then(|own| own.run(OUTPUTS));
        ready.wait();
        warm?;
        let (launches, start) = (launches?, Instant::now());
        let (called, _) = launches.run(each)?;
        Ok([start, start + std::time::Duration::from_secs_f64(called), Instant::now()])
    };
    let times: Vec<Result<[Instant; 3]>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
        let died = |_| Err(Error::internal("a thread of the measurement panicked"));
        handles.into_iter().map(|handle| handle.join().unwrap_or_else(died)).collect()
    });
    let times = times.into_iter().collect::<Result<Vec<_>>>()?;
    let start = times.iter().map(|times| times[0]).min();
    let since = |place: usize| {
        let end = times.iter().map(|times| times[place]).max();
        end.zip(start).map_or(f64::NAN, |(end, start)| (end - start).as_secs_f64())
    };
    let millions = (threads * each) as f64 * 1e-6;
    Ok((millions / since(1), millions / since(2)))
}

fn allocations(context: &Context, counts: &[usize]) -> Result<Vec<Line>> {
    const SIZE: usize = 4 << 10;
    let api = &context.api;
    let pairs = context.count(2000);
    let once = || seconds_each(pairs, || api.free(api.allocate(SIZE)?));
    let mut live = Vec::new();
    let mut points = Vec::new();
    for &count in counts {
        while live.len() < count {
            live.push(api.tensor(SIZE)?);
        }
        once()?;
        let times = (0..context.rounds(9)).map(|_| once()).collect::<Result<Vec<_>>>()?;
        points.push((count, Samples::new(times).map(|seconds| seconds * 1e9)));
    }
    Ok(vec![Line { what: "allocate and free 4 KiB", points }])
}
