//! `dlhal bench`: what the operations of the library cost on a device, called as a C program calls
//! them, beside what plain Vulkan takes for the same in the same run.

mod api;
mod child;
mod context;
mod curves;
mod json;
mod kernels;
mod memcpy;
mod operations;
mod options;
mod outcome;
mod race;
mod raw;
mod rows;
mod run;
mod scratch;
mod svg;
mod table;
mod ways;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use dlhal::{DlhalStatus, Error, Result};

use context::Context;
use curves::Curve;
use operations::Operation;
use options::Options;
use run::{Grown, Measured, Run};

/// Measures what the arguments after `bench` ask for; `None` if they are wrong.
pub(crate) fn run(arguments: &[&str]) -> Option<ExitCode> {
    if let Some((&child::FLAG, rest)) = arguments.split_first() {
        let outcome = child::run(rest)?;
        return Some(exit(
            outcome.and_then(|seconds| print(&format!("{seconds}\n"))).map(|()| true),
        ));
    }
    let options = Options::parse(arguments)?;
    let outcome = match &options.ways {
        Some(part) => ways::run(part, &options),
        None => measure(&options),
    };
    Some(exit(outcome))
}

fn exit(outcome: Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("dlhal: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything that was asked for could be measured.
fn measure(options: &Options) -> Result<bool> {
    let (operations, curves) = (operations::all(), curves::all());
    let wanted: Vec<&Operation> =
        operations.iter().filter(|one| options.wants(&one.name, one.group)).collect();
    let wanted_curves: Vec<&Curve> =
        curves.iter().filter(|one| options.wants(one.name, curves::GROUP)).collect();
    if wanted.is_empty() && wanted_curves.is_empty() {
        return Err(Error::not_found(format!(
            "no operation's name has `{}` in it; there are:\n{}",
            options.only.join("` or `"),
            names(&operations, &curves)
        )));
    }
    if options.list {
        return print(&names(&operations, &curves)).map(|()| true);
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
    for curve in wanted_curves {
        let (name, against, unit) = (curve.name, curve.against, curve.unit);
        let grown = Grown { name, against, unit, lines: curve.run(&context) };
        print(&table::curve(&grown))?;
        run.curves.push(grown);
    }
    if let Some(path) = &options.json {
        write(path, &json::text(&run)?)?;
    }
    if let Some(path) = &options.svg {
        write(path, &svg::text(&run))?;
    }
    Ok(run.operations.iter().all(|measured| measured.outcome.is_ok())
        && run.curves.iter().all(|grown| grown.lines.is_ok()))
}

/// Every operation and curve with its group, a line each.
fn names(operations: &[Operation], curves: &[Curve]) -> String {
    let operations = operations.iter().map(|one| (one.group, one.name.as_str()));
    let curves = curves.iter().map(|one| (curves::GROUP, one.name));
    operations.chain(curves).map(|(group, name)| format!("{group:<14} {name}\n")).collect()
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
