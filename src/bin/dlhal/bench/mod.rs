//! `dlhal bench`: what the operations of the library cost on a device, called as a C program calls
//! them, beside what plain Vulkan takes for the same in the same run.

mod api;
mod context;
mod json;
mod kernels;
mod memcpy;
mod operations;
mod options;
mod outcome;
mod race;
mod raw;
mod run;
mod table;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use dlhal::{DlhalStatus, Error, Result};

use context::Context;
use operations::Operation;
use options::Options;
use run::{Measured, Run};

/// Measures what the arguments after `bench` ask for; `None` if they are wrong.
pub(crate) fn run(arguments: &[&str]) -> Option<ExitCode> {
    let options = Options::parse(arguments)?;
    Some(match measure(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("dlhal: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Whether everything that was asked for could be measured.
fn measure(options: &Options) -> Result<bool> {
    let all = operations::all();
    let wanted: Vec<&Operation> =
        all.iter().filter(|one| options.wants(&one.name, one.group)).collect();
    if wanted.is_empty() {
        return Err(Error::not_found(format!(
            "no operation's name has `{}` in it; there are:\n{}",
            options.only.join("` or `"),
            names(&all)
        )));
    }
    if options.list {
        return print(&names(&all)).map(|()| true);
    }
    let context = Context::open(options.device, options.quick)?;
    let mut run = Run::new(&context)?;
    print(&table::head(&run))?;
    for operation in wanted {
        let measured = Measured {
            name: operation.name.clone(),
            group: operation.group,
            outcome: (operation.run)(&context),
        };
        print(&table::rows(&measured, context.software))?;
        run.operations.push(measured);
    }
    if let Some(path) = &options.json {
        write(path, &json::text(&run)?)?;
    }
    Ok(run.operations.iter().all(|measured| measured.outcome.is_ok()))
}

/// Every operation with its group, a line each.
fn names(all: &[Operation]) -> String {
    all.iter().map(|one| format!("{:<14} {}\n", one.group, one.name)).collect()
}

/// A reader that closes early (`| head`) is no failure.
fn print(text: &str) -> Result<()> {
    match write!(std::io::stdout(), "{text}").and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::new(DlhalStatus::Io, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text)
        .map_err(|error| Error::new(DlhalStatus::Io, format!("{}: {error}", path.display())))
}
