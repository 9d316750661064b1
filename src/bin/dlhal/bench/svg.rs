//! The run as a picture: how much longer each operation takes than its limit, and the curves.

use std::fmt::Write;

use super::curves::Line;
use super::run::{Grown, Measured, Run};

const WIDTH: f64 = 1000.0;
const ROW: f64 = 20.0;
const TOP: f64 = 70.0;
/// Where the bars' axis begins, and its length.
const AXIS: (f64, f64) = (430.0, 440.0);
/// Powers of ten to each side of 1.
const DECADES: f64 = 2.0;
/// A curve's place with all around it, and its plot.
const CELL: (f64, f64) = (500.0, 270.0);
const PLOT: (f64, f64) = (380.0, 170.0);
const LINES: [&str; 3] = ["#1b6ca8", "#d1662a", "#4f8a3c"];

/// All of it.
pub(super) fn text(run: &Run) -> String {
    let bars: Vec<(&Measured, f64)> = run
        .operations
        .iter()
        .filter_map(|measured| Some((measured, slowness(measured)?)))
        .collect();
    let below = TOP + ROW * bars.len() as f64 + 60.0;
    let height = below + CELL.1 * run.curves.len().div_ceil(2) as f64;
    let mut body = String::new();
    text_at(&mut body, 20.0, 28.0, "start", &format!("{}, {}", run.device, run.date));
    if !bars.is_empty() {
        axis(&mut body, bars.len());
    }
    for (place, (measured, slowness)) in bars.iter().enumerate() {
        bar(&mut body, TOP + ROW * place as f64, measured, *slowness, run.software);
    }
    for (place, grown) in run.curves.iter().enumerate() {
        let x = CELL.0 * (place % 2) as f64 + 70.0;
        let y = below + CELL.1 * (place / 2) as f64 + 30.0;
        curve(&mut body, x, y, grown);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         width=\"{WIDTH}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

/// How many times as long as the limit ours takes, whatever the unit.
fn slowness(measured: &Measured) -> Option<f64> {
    let outcome = measured.outcome.as_ref().ok()?;
    let ratio = outcome.ratio().filter(|ratio| *ratio > 0.0)?;
    Some(if outcome.unit.less_is_better() { ratio } else { 1.0 / ratio })
}

fn axis(body: &mut String, rows: usize) {
    let title = "time of ours / time of the limit (left of 1: faster than the limit)";
    text_at(body, AXIS.0, 48.0, "start", title);
    let bottom = TOP + ROW * rows as f64;
    for power in -2..=2 {
        let (x, value) = (across(10f64.powi(power)), 10f64.powi(power));
        let stroke = if power == 0 { "black" } else { "#ddd" };
        line(body, (x, TOP - 8.0), (x, bottom), stroke);
        text_at(body, x, bottom + 16.0, "middle", &value.to_string());
    }
}

/// The place of a ratio on the axis, which is logarithmic and cut off at its ends.
fn across(ratio: f64) -> f64 {
    let part = ratio.log10().clamp(-DECADES, DECADES) / DECADES;
    AXIS.0 + AXIS.1 * (part + 1.0) / 2.0
}

fn bar(body: &mut String, y: f64, measured: &Measured, slowness: f64, software: bool) {
    let met = measured.outcome.as_ref().ok().and_then(|outcome| outcome.met(software));
    let fill = match met {
        Some(true) => "#4f8a3c",
        Some(false) => "#b3362b",
        None => "#8898a8",
    };
    let (one, end) = (across(1.0), across(slowness));
    let (x, width) = (one.min(end), (one - end).abs());
    text_at(body, AXIS.0 - 12.0, y + 10.0, "end", &measured.name);
    let _ = writeln!(
        body,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"12\" fill=\"{fill}\"/>"
    );
    let verdict = match met {
        Some(true) => ", met",
        Some(false) => ", missed",
        None => "",
    };
    let label = format!("{}{verdict}", short(slowness));
    text_at(body, AXIS.0 + AXIS.1 + 10.0, y + 10.0, "start", &label);
}

fn curve(body: &mut String, left: f64, top: f64, grown: &Grown) {
    text_at(body, left, top - 10.0, "start", &format!("{} ({})", grown.name, grown.unit));
    let lines = match &grown.lines {
        Ok(lines) => lines,
        Err(error) => return text_at(body, left, top + 20.0, "start", &error.to_string()),
    };
    let values = || lines.iter().flat_map(|line| &line.points).map(|(_, taken)| taken.median());
    // Logarithmic both ways, between whole powers of ten, so that growth looks alike in every line.
    let least = values().fold(f64::INFINITY, f64::min).max(1e-9).log10().floor();
    let most = values().fold(0.0, f64::max).max(1e-9).log10().ceil().max(least + 1.0);
    let counts = lines.iter().flat_map(|line| &line.points).map(|(count, _)| *count);
    let last = counts.max().unwrap_or(1).max(2) as f64;
    let bottom = top + PLOT.1;
    let place = |count: usize, value: f64| {
        let x = left + PLOT.0 * (count.max(1) as f64).ln() / last.ln();
        (x, bottom - PLOT.1 * (value.max(1e-9).log10() - least) / (most - least))
    };
    for power in least as i32..=most as i32 {
        let value = 10f64.powi(power);
        let (_, y) = place(1, value);
        line(body, (left, y), (left + PLOT.0, y), "#ddd");
        text_at(body, left - 6.0, y + 4.0, "end", &value.to_string());
    }
    line(body, (left, bottom), (left + PLOT.0, bottom), "black");
    line(body, (left, top), (left, bottom), "black");
    for (count, _) in lines.first().map_or(&[][..], |line| &line.points) {
        text_at(body, place(*count, 1.0).0, bottom + 16.0, "middle", &count.to_string());
    }
    text_at(body, left + PLOT.0, bottom + 32.0, "end", grown.against);
    for (number, (series, color)) in lines.iter().zip(LINES.iter().cycle()).enumerate() {
        polyline(body, series, color, &place);
        let label = left + 150.0 * number as f64;
        line(body, (label, bottom + 28.0), (label + 18.0, bottom + 28.0), color);
        text_at(body, label + 22.0, bottom + 32.0, "start", series.what);
    }
}

fn polyline(
    body: &mut String,
    series: &Line,
    color: &str,
    place: &dyn Fn(usize, f64) -> (f64, f64),
) {
    let places: Vec<(f64, f64)> =
        series.points.iter().map(|(count, samples)| place(*count, samples.median())).collect();
    let joined: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let joined = joined.join(" ");
    let _ = writeln!(
        body,
        "<polyline points=\"{joined}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>"
    );
    for (x, y) in places {
        let _ = writeln!(body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{color}\"/>");
    }
}

fn line(body: &mut String, from: (f64, f64), to: (f64, f64), stroke: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        body,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{stroke}\"/>"
    );
}

fn text_at(body: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escaped(text)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Three digits that tell something.
fn short(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lies_in_the_middle_and_ends_are_cut_off() {
        assert_eq!(across(1.0), AXIS.0 + AXIS.1 / 2.0);
        assert_eq!(across(100.0), AXIS.0 + AXIS.1);
        assert_eq!(across(1e9), AXIS.0 + AXIS.1);
        assert_eq!(across(1e-9), AXIS.0);
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a < b & c > d"), "a &lt; b &amp; c &gt; d");
    }
}
