//! What a process that has worked and has nothing to do takes of the processor.

use std::time::Duration;

use dlhal::runtime::DeviceAttr;
use dlhal::{DlhalStatus, Error, Result};

use super::Operation;
use crate::bench::api::{Api, Args, Tensor};
use crate::bench::child;
use crate::bench::context::Context;
use crate::bench::kernels::{self, ADD_BYTES, FLOATS};
use crate::bench::outcome::{Bound, Outcome, Pick, Target, Unit};
use crate::bench::race::Race;
use crate::bench::raw::{Kind, Lane, Raw, Scope, Waiting};

/// Large enough that several threads copy.
const COPY: usize = 32 << 20;
/// After which threads that wait a little before they sleep are asleep.
const SETTLING: Duration = Duration::from_millis(200);

pub(super) fn operations() -> Vec<Operation> {
    vec![Operation::new("processes", "idle process after work", measure)]
}

fn measure(context: &Context) -> Result<Outcome> {
    let seconds = if context.quick { "0.3" } else { "2" };
    let (device, uuid) = (context.number.to_string(), context.api.text(DeviceAttr::Uuid)?);
    let raw = || child::seconds("idle-raw", &[&uuid, seconds]);
    let finish = Race::new(|| child::seconds("idle", &[&device, seconds]))
        .against("a process of plain Vulkan", Ok(raw))
        .run(if context.quick { 1 } else { 2 })?;
    let target = Target::all(&[Bound::Most(100.0)]);
    Ok(Outcome::new(Unit::MicrosecondsPerSecond, finish, Pick::Fastest, target)
        .noting(format!("processor time of a process over {seconds} s of sleep")))
}

/// Launches and copies by the library, then sleeps; seconds of processor time per second.
pub(in crate::bench) fn child(device: i32, seconds: &str) -> Result<f64> {
    let api = Api::open(device)?;
    let stream = api.stream()?;
    let function = kernels::add_module(&api)?.function("add")?;
    let [a, b, c] = [api.tensor(ADD_BYTES)?, api.tensor(ADD_BYTES)?, api.tensor(ADD_BYTES)?];
    let args = Args::new(&[&a, &b, &c], &[FLOATS], 1, FLOATS);
    (0..1000).try_for_each(|_| api.launch(&function, &args, &stream))?;
    let (mut host, mut device) = (Tensor::ordinary(COPY), api.tensor(COPY)?);
    stream.copy(&host, &mut device)?;
    stream.copy(&device, &mut host)?;
    stream.sync()?;
    sleep(seconds)
}

/// A copy in plain Vulkan, then sleep.
pub(in crate::bench) fn raw_child(uuid: &str, seconds: &str) -> Result<f64> {
    let raw = Raw::open(uuid)?;
    let scope = Scope::new(&raw);
    let [a, b] = [Kind::Pinned, Kind::Device].map(|kind| scope.buffer(COPY as u64, kind));
    let (a, b) = (a?, b?);
    let commands = scope.commands(Lane::Main)?;
    commands.record(|commands| commands.copy(&a, &b, COPY as u64))?;
    commands.run(Waiting::Asleep)?;
    sleep(seconds)
}

fn sleep(seconds: &str) -> Result<f64> {
    let wrong = || Error::invalid(format!("`{seconds}` are no seconds"));
    let seconds: f64 = seconds.parse().map_err(|_| wrong())?;
    let length = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    std::thread::sleep(SETTLING);
    let before = processor_time()?;
    std::thread::sleep(length);
    Ok((processor_time()? - before) / seconds)
}

/// Seconds that this process's threads have had, of its own and in the kernel.
fn processor_time() -> Result<f64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is that of a variable of the type.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Error::new(DlhalStatus::Io, format!("getrusage: {error}")));
    }
    // SAFETY: the call has filled it.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}
