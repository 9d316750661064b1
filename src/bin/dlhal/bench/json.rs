//! The run as JSON.

use dlhal::{Error, Result};
use serde_json::{Value, json};

use super::curves::Line;
use super::outcome::Outcome;
use super::race::{Figure, Samples};
use super::run::{Grown, Measured, Run};

/// All of it.
pub(super) fn text(run: &Run) -> Result<String> {
    let operations: Vec<Value> =
        run.operations.iter().map(|measured| operation(measured, run.software)).collect();
    let value = json!({
        "dlhal": env!("CARGO_PKG_VERSION"),
        "date": run.date,
        "device": {
            "name": run.device,
            "driver": run.driver,
            "driver_version": run.driver_version,
            "uuid": run.uuid,
            "software": run.software,
        },
        "quick": run.quick,
        "operations": operations,
        "curves": run.curves.iter().map(curve).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&value)
        .map(|text| text + "\n")
        .map_err(|error| Error::internal(error.to_string()))
}

fn operation(measured: &Measured, software: bool) -> Value {
    match &measured.outcome {
        Ok(outcome) => whole(measured, outcome, software),
        Err(error) => json!({
            "name": measured.name,
            "group": measured.group,
            "error": error.to_string(),
        }),
    }
}

fn whole(measured: &Measured, outcome: &Outcome, software: bool) -> Value {
    json!({
        "name": measured.name,
        "group": measured.group,
        "note": outcome.note,
        "unit": outcome.unit.name(),
        "less_is_better": outcome.unit.less_is_better(),
        "ours": samples(&outcome.ours),
        "limit": figure(&outcome.limit),
        "ratio": outcome.ratio(),
        "target": outcome.target.text(outcome.unit),
        "met": outcome.met(software),
        "beside": outcome.beside.iter().map(figure).collect::<Vec<_>>(),
    })
}

fn curve(grown: &Grown) -> Value {
    let lines = match &grown.lines {
        Ok(lines) => lines,
        Err(error) => return json!({ "name": grown.name, "error": error.to_string() }),
    };
    let line = |line: &Line| {
        let point = |(count, taken): &(usize, Samples)| {
            let mut value = samples(taken);
            value["at"] = json!(count);
            value
        };
        json!({ "what": line.what, "points": line.points.iter().map(point).collect::<Vec<_>>() })
    };
    json!({
        "name": grown.name,
        "against": grown.against,
        "unit": grown.unit,
        "lines": lines.iter().map(line).collect::<Vec<_>>(),
    })
}

fn figure(figure: &Figure) -> Value {
    match &figure.samples {
        Ok(taken) => {
            let mut value = samples(taken);
            value["what"] = json!(figure.what);
            value
        }
        Err(reason) => json!({ "what": figure.what, "absent": reason }),
    }
}

fn samples(samples: &Samples) -> Value {
    json!({
        "min": samples.min(),
        "median": samples.median(),
        "max": samples.max(),
        "count": samples.count(),
    })
}
