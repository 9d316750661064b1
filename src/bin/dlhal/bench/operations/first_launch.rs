//! The first launches of a module's kernels: in a process that has to compile them, and in one that
//! was given what the first has kept.

use std::cell::Cell;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dlhal::{DlhalStatus, Error, Result};

use super::Operation;
use crate::bench::api::Api;
use crate::bench::child;
use crate::bench::context::Context;
use crate::bench::kernels::{Tile, variant_name, variants};
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::{Race, seconds};
use crate::bench::scratch::Scratch;

const KERNELS: u32 = 50;
const QUICK_KERNELS: u32 = 2;

pub(super) fn operations() -> Vec<Operation> {
    let name = "first launch of a 50-kernel module, second process";
    vec![Operation::new("processes", name, measure)]
}

fn measure(context: &Context) -> Result<Outcome> {
    let count = if context.quick { QUICK_KERNELS } else { KERNELS };
    let scratch = Scratch::new()?;
    let (module, cache) = (scratch.file("module"), scratch.file("cache"));
    // No two runs have a kernel in common, nor two rounds of one.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let salt = Cell::new(since.as_millis() as u32);
    let first = Cell::new(f64::NAN);
    let process = || {
        let files = [&module, &cache].map(|path| path.to_string_lossy());
        let (device, count) = (context.number.to_string(), count.to_string());
        child::seconds("first-launch", &[&device, &files[0], &files[1], &count])
    };
    let second = || {
        salt.set(salt.get().wrapping_add(KERNELS));
        write(&module, &variants(&context.api, count, salt.get())?)?;
        write(&cache, &[])?;
        first.set(process()?);
        process()
    };
    let finish = Race::new(second)
        .against("the first process, its cache empty", Ok(|| Ok(first.get())))
        // A software device compiles for minutes.
        .run(if context.quick || context.software { 1 } else { 5 })?;
    let target = Target::all(&[Bound::MostOfLimit(0.2)]);
    Ok(Outcome::new(Unit::Milliseconds, finish, Pick::Fastest, target)
        .noting(format!("{count} kernels, the drivers' own caches on disk are off")))
}

/// One process: takes the cache if there is one, launches each kernel once, and keeps the cache.
pub(in crate::bench) fn child(
    device: i32,
    module: &Path,
    cache: &Path,
    kernels: u32,
) -> Result<f64> {
    let api = Api::open(device)?;
    let (bytes, kept) = (read(module)?, read(cache)?);
    let stream = api.stream()?;
    let tile = Tile::new(&api)?;
    let took = seconds(|| {
        if !kept.is_empty() && !api.set_pipeline_cache(&kept)? {
            return Err(Error::unsupported("the cache of the first process was not taken"));
        }
        let module = api.load(&bytes)?;
        for number in 0..kernels {
            tile.launch(&api, &module.function(&variant_name(number))?, &stream)?;
        }
        stream.sync()
    })?;
    write(cache, &api.pipeline_cache()?)?;
    Ok(took)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| io(path, &error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|error| io(path, &error))
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::new(DlhalStatus::Io, format!("{}: {error}", path.display()))
}
