//! Large copies within the device.

use dlhal::{Error, Result};

use super::{Operation, size_name};
use crate::bench::context::Context;
use crate::bench::kernels::{COPY, THREADS};
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds};
use crate::bench::raw::{Commands, KernelDesc, Kind, Lane, Scope, Waiting};

/// Copies that are waited for together, so that the wait does not count.
const REPEATS: usize = 10;
const QUICK_REPEATS: usize = 2;
/// Groups of the copy kernel to choose from.
const GROUPS: [u32; 7] = [528, 1056, 2112, 4224, 8448, 16_896, 32_768];

/// Bytes between the start of an allocation and that of the source.
const SKIPS: [(usize, &str); 2] = [(4, ", from a word on"), (1, ", from a byte on")];
const LARGE: usize = 256 << 20;

pub(super) fn operations() -> Vec<Operation> {
    let operation = |size, skip, suffix| {
        let name = format!("device to device {}{suffix}", size_name(size));
        Operation::new("device copies", name, move |context| measure(context, size, skip))
    };
    let sizes = [4 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20, LARGE];
    let aligned = sizes.into_iter().map(|size| operation(size, 0, ""));
    let skipping = SKIPS.into_iter().map(|(skip, suffix)| operation(LARGE, skip, suffix));
    aligned.chain(skipping).collect()
}

fn measure(context: &Context, size: usize, skip: usize) -> Result<Outcome> {
    let size = size.min(context.large());
    let stream = context.api.stream()?;
    let a = context.api.tensor(size + skip)?.skip(skip);
    let mut b = context.api.tensor(size)?;
    let repeats = if context.quick { QUICK_REPEATS } else { REPEATS };
    let ours = || {
        let all = seconds(|| {
            (0..repeats).try_for_each(|_| stream.copy(&a, &mut b))?;
            stream.sync()
        });
        all.map(|all| all / repeats as f64)
    };
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let command = scope().and_then(|scope| by_command(context, scope, size, repeats));
    let kernel = scope().and_then(|scope| by_kernel(context, scope, size, repeats));
    let (groups, kernel) = match kernel {
        Ok((groups, kernel)) => (format!(", {groups} groups"), Ok(kernel)),
        Err(error) => (String::new(), Err(error)),
    };
    let finish = Race::new(ours)
        .against("vkCmdCopyBuffer", command)
        .against(format!("a copy kernel{groups}"), kernel)
        .run(context.rounds(10))?;
    // One size is aimed at; the others show from where on which way is the better one.
    let target = match (size, skip) {
        (LARGE, 0) => Target::hardware(&[Bound::Least(1700.0)]),
        _ => Target::none(),
    };
    let unit = Unit::GigabytesPerSecond(size);
    let note = format!("{}, {repeats} copies to a wait", size_name(size));
    Ok(Outcome::new(unit, finish, Pick::Fastest, target).noting(note))
}

fn by_command<'s>(
    context: &Context,
    scope: &'s Scope<'_>,
    size: usize,
    repeats: usize,
) -> Result<impl FnMut() -> Result<f64> + 's> {
    let buffer = || scope.buffer(size as u64, Kind::Device);
    let (a, b) = (buffer()?, buffer()?);
    let commands = scope.commands(Lane::Main)?;
    commands.record(|commands| {
        for _ in 0..repeats {
            commands.copy(&a, &b, size as u64);
            commands.copy_barrier();
        }
    })?;
    let waiting = context.waiting();
    Ok(move || once(&commands, repeats, waiting))
}

/// The copy kernel with as many groups as are fastest, and how many that are.
fn by_kernel<'s>(
    context: &Context,
    scope: &'s Scope<'_>,
    size: usize,
    repeats: usize,
) -> Result<(u32, impl FnMut() -> Result<f64> + 's)> {
    let (raw, waiting) = (context.raw()?, context.waiting());
    // Where a binding cannot take all of it, as much as it can, and the time in proportion.
    let bound = (size as u64).min(u64::from(raw.limits().max_storage_buffer_range)) / 16 * 16;
    let buffer = || scope.buffer(bound, Kind::Device);
    let (a, b) = (buffer()?, buffer()?);
    let kernel = scope.kernel(&KernelDesc {
        spirv: COPY,
        bindings: &[1; 2],
        constants: 8,
        pushed: false,
    })?;
    let set = scope.set(&kernel, &[&a, &b])?;
    let commands = scope.commands(Lane::Main)?;
    let record = |groups: u32| {
        commands.record(|commands| {
            commands.bind(&kernel);
            commands.bind_set(&kernel, &set);
            commands.constants(&kernel, [0, (bound / 16) as u32]);
            for _ in 0..repeats {
                commands.dispatch(groups);
                commands.kernel_barrier();
            }
        })
    };
    let most = raw.limits().max_compute_work_group_count[0];
    let mut best = (f64::INFINITY, GROUPS[0]);
    // A dispatch of more groups than there are vectors to copy would only start idle ones.
    let useful = (bound / 16).div_ceil(u64::from(THREADS)) as u32;
    for groups in GROUPS.into_iter().filter(|n| *n <= most && (*n <= useful || *n == GROUPS[0])) {
        record(groups)?;
        once(&commands, repeats, waiting)?;
        let took = once(&commands, repeats, waiting)?;
        if took < best.0 {
            best = (took, groups);
        }
    }
    record(best.1)?;
    let part = bound as f64 / size as f64;
    Ok((best.1, move || once(&commands, repeats, waiting).map(|took| took / part)))
}

fn once(commands: &Commands<'_>, repeats: usize, waiting: Waiting) -> Result<f64> {
    seconds(|| commands.run(waiting)).map(|all| all / repeats as f64)
}
