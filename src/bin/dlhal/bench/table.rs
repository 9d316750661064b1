//! The table that is printed.

use super::outcome::{Outcome, Unit};
use super::race::{Figure, Samples};
use super::run::{Grown, Measured, Run};

/// What was measured on, and the heads of the columns.
pub(super) fn head(run: &Run) -> String {
    let quick = if run.quick { ", quick: sizes and counts are smaller than named" } else { "" };
    format!(
        "{} ({}, driver version {}), dlhal {}, {}{quick}\n\n{:<58} {:>9} {:>9} {:>9} {:<9} {:>9} \
         {:>7}  {}\n",
        run.device,
        run.driver,
        run.driver_version,
        env!("CARGO_PKG_VERSION"),
        run.date,
        "operation",
        "min",
        "median",
        "max",
        "unit",
        "limit",
        "ratio",
        "target"
    )
}

/// One operation, and on the lines below what else was measured with it.
pub(super) fn rows(measured: &Measured, software: bool) -> String {
    match &measured.outcome {
        Ok(outcome) => all_of(&measured.name, outcome, software),
        Err(error) => format!("{:<58} failed: {error}\n", measured.name),
    }
}

fn all_of(name: &str, outcome: &Outcome, software: bool) -> String {
    let unit = outcome.unit;
    let verdict = match outcome.met(software) {
        Some(true) => ": met",
        Some(false) => ": missed",
        None => "",
    };
    let limit = outcome.limit.samples.as_ref().map(|samples| number(samples.median()));
    let mut text = format!(
        "{name:<58} {} {:>9} {:>7}  {}{verdict}\n",
        spread(&outcome.ours, unit),
        limit.unwrap_or("–".to_owned()),
        outcome.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.3}")),
        outcome.target.text(unit),
    );
    if !outcome.note.is_empty() {
        text.push_str(&format!("    {}\n", outcome.note));
    }
    text.push_str(&figure("limit: ", &outcome.limit, unit));
    outcome.beside.iter().for_each(|one| text.push_str(&figure("", one, unit)));
    text
}

/// A curve: a row for each count.
pub(super) fn curve(grown: &Grown) -> String {
    let lines = match &grown.lines {
        Ok(lines) => lines,
        Err(error) => return format!("\n{}: failed: {error}\n", grown.name),
    };
    let heads: String = lines.iter().map(|line| format!(" {:>24}", line.what)).collect();
    let mut text = format!("\n{} ({})\n{:>12}{heads}\n", grown.name, grown.unit, grown.against);
    let counts = lines.first().map_or(0, |line| line.points.len());
    for place in 0..counts {
        let points: Vec<_> = lines.iter().filter_map(|line| line.points.get(place)).collect();
        let values: String = points
            .iter()
            .map(|(_, samples)| format!(" {:>24}", number(samples.median())))
            .collect();
        let count = points.first().map_or(0, |(count, _)| *count);
        text.push_str(&format!("{count:>12}{values}\n"));
    }
    text
}

fn figure(prefix: &str, figure: &Figure, unit: Unit) -> String {
    let what = format!("{prefix}{}", figure.what);
    match &figure.samples {
        Ok(samples) => format!("    {what:<54} {}\n", spread(samples, unit)),
        Err(reason) => format!("    {what:<54} absent: {reason}\n"),
    }
}

fn spread(samples: &Samples, unit: Unit) -> String {
    let [min, median, max] = [samples.min(), samples.median(), samples.max()].map(number);
    format!("{min:>9} {median:>9} {max:>9} {:<9}", unit.name())
}

/// With as many digits as tell something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
