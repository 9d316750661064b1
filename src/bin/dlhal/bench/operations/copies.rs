//! Large copies between host and device.

use dlhal::{Error, Result};

use super::{Operation, size_name};
use crate::bench::api::{Stream, Tensor};
use crate::bench::context::Context;
use crate::bench::memcpy::memcpy;
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds};
use crate::bench::raw::{Kind, Lane, Scope, Waiting};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToDevice,
    ToHost,
}

/// Where the bytes on the host lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    Ordinary,
    Pinned,
    Imported,
}

impl Way {
    pub(super) const BOTH: [Self; 2] = [Self::ToDevice, Self::ToHost];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ToDevice => "host to device",
            Self::ToHost => "device to host",
        }
    }

    /// The copy by the library, complete.
    pub(super) fn copy(self, host: &mut Tensor, device: &mut Tensor, on: &Stream) -> Result<()> {
        match self {
            Self::ToDevice => on.copy(host, device).and_then(|()| on.sync()),
            // Complete when the call returns.
            Self::ToHost => on.copy(device, host),
        }
    }
}

pub(super) fn operations() -> Vec<Operation> {
    let kinds = [
        (Memory::Ordinary, "ordinary memory"),
        (Memory::Pinned, "pinned memory"),
        (Memory::Imported, "imported memory"),
    ];
    let both = |(memory, what): (Memory, &'static str)| {
        Way::BOTH.map(|way| {
            let name = format!("{} 256 MiB, {what}", way.name());
            Operation::new("host copies", name, move |context| measure(context, way, memory))
        })
    };
    kinds.into_iter().flat_map(both).collect()
}

fn measure(context: &Context, way: Way, memory: Memory) -> Result<Outcome> {
    let size = context.large();
    match memory {
        Memory::Ordinary => race(context, way, memory, &mut Tensor::ordinary(size)),
        Memory::Pinned => race(context, way, memory, &mut context.api.pinned(size)?),
        Memory::Imported => {
            let mut tensor = Tensor::ordinary(size);
            let import = context.api.import(&mut tensor)?;
            race(context, way, memory, import.memory)
        }
    }
}

fn race(context: &Context, way: Way, memory: Memory, host: &mut Tensor) -> Result<Outcome> {
    let size = host.size();
    let stream = context.api.stream()?;
    let mut device = context.api.tensor(size)?;
    let scope = context.raw().map(Scope::new);
    let scope = || scope.as_ref().map_err(Error::clone);
    let by_link = |waiting| scope().and_then(|scope| link(scope, way, size, waiting));
    let mut contest = Race::new(|| seconds(|| way.copy(host, &mut device, &stream)))
        .against("the link, from pinned memory", by_link(context.waiting()))
        .beside("the same, waited for asleep", by_link(Waiting::Asleep));
    let threads = context.copy_threads();
    if memory == Memory::Ordinary {
        let staged = scope().and_then(|scope| staged(scope, way, size, threads));
        contest = contest.against(format!("memcpy to or from pinned, {threads} threads"), staged);
    }
    let finish = contest.run(context.rounds(8))?;
    let target = match memory {
        Memory::Ordinary => Target::hardware(&[Bound::Least(20.0), Bound::LeastOfLimit(0.8)]),
        Memory::Pinned | Memory::Imported => Target::hardware(&[Bound::LeastOfLimit(0.95)]),
    };
    let unit = Unit::GigabytesPerSecond(size);
    Ok(Outcome::new(unit, finish, Pick::Slowest, target).noting(size_name(size)))
}

/// The device's copy between pinned memory and its own.
fn link<'s>(
    scope: &'s Scope<'_>,
    way: Way,
    size: usize,
    waiting: Waiting,
) -> Result<impl FnMut() -> Result<f64> + 's> {
    let mut pinned = scope.buffer(size as u64, Kind::Pinned)?;
    pinned.bytes().fill(1);
    let device = scope.buffer(size as u64, Kind::Device)?;
    let (from, to) = match way {
        Way::ToDevice => (pinned, device),
        Way::ToHost => (device, pinned),
    };
    let commands = scope.commands(Lane::Main)?;
    commands.record(|commands| {
        commands.copy(&from, &to, size as u64);
        commands.copy_to_host_barrier();
    })?;
    Ok(move || seconds(|| commands.run(waiting)))
}

/// The host's copy between ordinary and pinned memory.
fn staged<'s>(
    scope: &'s Scope<'_>,
    way: Way,
    size: usize,
    threads: usize,
) -> Result<impl FnMut() -> Result<f64> + 's> {
    let mut pinned = scope.buffer(size as u64, Kind::Pinned)?;
    pinned.bytes().fill(1);
    let mut ordinary = Tensor::ordinary(size);
    Ok(move || {
        seconds(|| {
            match way {
                Way::ToDevice => memcpy(ordinary.bytes(), pinned.bytes(), threads),
                Way::ToHost => memcpy(pinned.bytes(), ordinary.bytes_mut(), threads),
            }
            Ok(())
        })
    })
}
