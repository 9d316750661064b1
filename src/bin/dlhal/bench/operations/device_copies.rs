//! Large copies within the device.

use dlhal::{Error, Result};

use super::{Operation, size_name};
use crate::bench::context::Context;
use crate::bench::kernels::COPY;
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds};
use crate::bench::raw::{Commands, KernelDesc, Kind, Lane, Raw, Scope, Waiting};

/// Copies that are waited for together, so that the wait does not count.
const REPEATS: usize = 10;
/// Groups of the copy kernel to choose from.
const GROUPS: [u32; 7] = [528, 1056, 2112, 4224, 8448, 16_896, 32_768];

pub(super) fn operations() -> Vec<Operation> {
    vec![Operation::new("device copies", "device to device 256 MiB", measure)]
}

fn measure(context: &Context) -> Result<Outcome> {
    let size = context.large();
    let stream = context.api.stream()?;
    let (a, mut b) = (context.api.tensor(size)?, context.api.tensor(size)?);
    let ours = || {
        let all = seconds(|| {
            (0..REPEATS).try_for_each(|_| stream.copy(&a, &mut b))?;
            stream.sync()
        });
        all.map(|all| all / REPEATS as f64)
    };
    let raw = context.raw();
    let scope = raw.clone().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let command = scope().and_then(|scope| by_command(scope, size));
    let kernel = raw.and_then(|raw| by_kernel(raw, scope()?, size));
    let (groups, kernel) = match kernel {
        Ok((groups, kernel)) => (format!(", {groups} groups"), Ok(kernel)),
        Err(error) => (String::new(), Err(error)),
    };
    let finish = Race::new(ours)
        .against("vkCmdCopyBuffer", command)
        .against(format!("a copy kernel{groups}"), kernel)
        .run(context.rounds(10))?;
    let target = Target::hardware(&[Bound::AtLeast(1700.0)]);
    let unit = Unit::GigabytesPerSecond(size);
    let note = format!("{}, {REPEATS} copies to a wait", size_name(size));
    Ok(Outcome::new(unit, finish, Pick::Fastest, target).noting(note))
}

fn by_command<'s>(scope: &'s Scope<'_>, size: usize) -> Result<impl FnMut() -> Result<f64> + 's> {
    let buffer = || scope.buffer(size as u64, Kind::Device);
    let (a, b) = (buffer()?, buffer()?);
    let commands = scope.commands(Lane::Main)?;
    commands.record(|commands| {
        for _ in 0..REPEATS {
            commands.copy(&a, &b, size as u64);
            commands.copy_barrier();
        }
    })?;
    Ok(move || once(&commands))
}

/// The copy kernel with as many groups as are fastest, and how many that are.
fn by_kernel<'s>(
    raw: &Raw,
    scope: &'s Scope<'_>,
    size: usize,
) -> Result<(u32, impl FnMut() -> Result<f64> + 's)> {
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
            for _ in 0..REPEATS {
                commands.dispatch(groups);
                commands.kernel_barrier();
            }
        })
    };
    let most = raw.limits().max_compute_work_group_count[0];
    let mut best = (f64::INFINITY, GROUPS[0]);
    for groups in GROUPS.into_iter().filter(|groups| *groups <= most) {
        record(groups)?;
        once(&commands)?;
        let took = once(&commands)?;
        if took < best.0 {
            best = (took, groups);
        }
    }
    record(best.1)?;
    let part = bound as f64 / size as f64;
    Ok((best.1, move || once(&commands).map(|took| took / part)))
}

fn once(commands: &Commands<'_>) -> Result<f64> {
    seconds(|| commands.run(Waiting::Polling)).map(|all| all / REPEATS as f64)
}
