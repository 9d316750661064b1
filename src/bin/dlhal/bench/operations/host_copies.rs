//! Copies of ordinary host memory of several sizes, against the host's own memcpy.

use dlhal::Result;

use super::copies::Way;
use super::{Operation, size_name};
use crate::bench::api::Tensor;
use crate::bench::context::Context;
use crate::bench::memcpy::memcpy;
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds};

const SIZES: [usize; 6] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 32 << 20, 256 << 20];
/// What is copied in a few microseconds, and in several milliseconds.
const FEW_MICROSECONDS: usize = 256 << 10;
const SEVERAL_MILLISECONDS: usize = 16 << 20;
/// The library copies larger ones with several threads.
const SEVERAL_THREADS_FROM: usize = 2 << 20;

pub(super) fn operations() -> Vec<Operation> {
    let both = |size: usize| {
        Way::BOTH.map(|way| {
            let name = format!("against memcpy: {} {}", way.name(), size_name(size));
            Operation::new("host copies", name, move |context| measure(context, way, size))
        })
    };
    SIZES.into_iter().flat_map(both).collect()
}

fn measure(context: &Context, way: Way, size: usize) -> Result<Outcome> {
    let size = size.min(context.large());
    let stream = context.api.stream()?;
    let mut device = context.api.tensor(size)?;
    let mut host = Tensor::ordinary(size);
    // Both begin at pages: where the target lies a few bytes after the source, pages not counted,
    // glibc's memcpy takes ten times as long on some AMD processors.
    let (source, mut target) = (Tensor::ordinary(size), Tensor::ordinary(size));
    let mut plain = |threads| {
        let (source, target) = (source.bytes(), target.bytes_mut());
        seconds(|| {
            memcpy(source, target, threads);
            Ok(())
        })
    };
    let plain = std::cell::RefCell::new(&mut plain);
    let mut race = Race::new(|| seconds(|| way.copy(&mut host, &mut device, &stream)))
        .against("memcpy, 1 thread", Ok(|| (plain.borrow_mut())(1)));
    let threads = context.copy_threads();
    if size >= SEVERAL_THREADS_FROM && threads > 1 {
        let several = || (plain.borrow_mut())(threads);
        race = race.against(format!("memcpy, {threads} threads"), Ok(several));
    }
    let rounds = if size <= FEW_MICROSECONDS {
        1000
    } else if size <= SEVERAL_MILLISECONDS {
        50
    } else {
        8
    };
    let finish = race.run(context.rounds(rounds))?;
    let target = Target::software(&[Bound::LeastOfLimit(0.9)]);
    let unit = Unit::GigabytesPerSecond(size);
    Ok(Outcome::new(unit, finish, Pick::Fastest, target).noting(size_name(size)))
}
