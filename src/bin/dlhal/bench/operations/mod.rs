//! The operations that are measured, in the order in which they are.

mod copies;
mod device_copies;
pub(super) mod first_launch;
mod host_copies;
pub(super) mod idle;
mod launches;
mod memory;
mod small_copies;
mod streams;

use dlhal::Result;

use super::context::Context;
use super::outcome::Outcome;

/// Measures an operation.
type Measure = Box<dyn Fn(&Context) -> Result<Outcome>>;

/// One operation.
pub(super) struct Operation {
    /// Its name, which `--only` looks into.
    pub(super) name: String,
    /// The operations that it belongs with; `--only` takes it as well.
    pub(super) group: &'static str,
    /// Measures it.
    pub(super) run: Measure,
}

impl Operation {
    fn new(
        group: &'static str,
        name: impl Into<String>,
        run: impl Fn(&Context) -> Result<Outcome> + 'static,
    ) -> Self {
        Self { name: name.into(), group, run: Box::new(run) }
    }
}

/// All of them.
pub(super) fn all() -> Vec<Operation> {
    [
        memory::operations(),
        copies::operations(),
        small_copies::operations(),
        device_copies::operations(),
        launches::operations(),
        streams::operations(),
        first_launch::operations(),
        idle::operations(),
        host_copies::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A size as it is usually written.
fn size_name(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    }
}
