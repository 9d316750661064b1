//! What an operation came to: ours, the limit, and whether the target was met.

use super::race::{Figure, Finish, Samples};

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    Microseconds,
    Milliseconds,
    /// Of an operation that moves so many bytes.
    GigabytesPerSecond(usize),
    MillionsPerSecond,
    /// Microseconds of processor time in a second.
    MicrosecondsPerSecond,
}

impl Unit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::GigabytesPerSecond(_) => "GB/s",
            Self::MillionsPerSecond => "million/s",
            Self::MicrosecondsPerSecond => "µs/s",
        }
    }

    pub(super) fn less_is_better(self) -> bool {
        !matches!(self, Self::GigabytesPerSecond(_) | Self::MillionsPerSecond)
    }

    /// Of the seconds that one operation takes.
    fn of(self, seconds: f64) -> f64 {
        match self {
            Self::Microseconds | Self::MicrosecondsPerSecond => seconds * 1e6,
            Self::Milliseconds => seconds * 1e3,
            Self::GigabytesPerSecond(bytes) => bytes as f64 / seconds / 1e9,
            Self::MillionsPerSecond => 1e-6 / seconds,
        }
    }
}

/// Which of several limits counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The fastest way there is.
    Fastest,
    /// The slowest of the parts that all of the data goes through.
    Slowest,
}

/// A bound on our median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    Most(f64),
    Least(f64),
    MostOfLimit(f64),
    LeastOfLimit(f64),
}

/// The devices that a target is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Devices {
    All,
    Hardware,
    Software,
}

/// What is to be reached.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) bounds: Vec<Bound>,
    pub(super) devices: Devices,
}

/// All of an operation's figures, in its unit.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) unit: Unit,
    pub(super) ours: Samples,
    pub(super) limit: Figure,
    /// What else was measured with it.
    pub(super) beside: Vec<Figure>,
    pub(super) target: Target,
    /// Sizes and counts of this run.
    pub(super) note: String,
}

impl Outcome {
    /// Of a race whose competitors are limits.
    pub(super) fn new(unit: Unit, finish: Finish, pick: Pick, target: Target) -> Self {
        let mut others = finish.limits;
        let limit = match choose(&others, pick) {
            Some(chosen) => others.remove(chosen),
            None => Figure { what: String::new(), samples: Err("there is none".to_owned()) },
        };
        let converted = |figure: Figure| Figure {
            samples: figure.samples.map(|samples| samples.map(|seconds| unit.of(seconds))),
            ..figure
        };
        Self {
            unit,
            ours: finish.ours.map(|seconds| unit.of(seconds)),
            limit: converted(limit),
            beside: others.into_iter().chain(finish.beside).map(converted).collect(),
            target,
            note: String::new(),
        }
    }

    pub(super) fn noting(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Our median over the limit's.
    pub(super) fn ratio(&self) -> Option<f64> {
        let limit = self.limit.samples.as_ref().ok()?.median();
        (limit > 0.0).then(|| self.ours.median() / limit)
    }

    /// Whether the target is met; `None` where it is for other devices or there is no limit.
    pub(super) fn met(&self, software: bool) -> Option<bool> {
        let applies = match self.target.devices {
            Devices::All => true,
            Devices::Hardware => !software,
            Devices::Software => software,
        };
        if !applies || self.target.bounds.is_empty() {
            return None;
        }
        let ours = self.ours.median();
        let holds = |bound: &Bound| {
            Some(match bound {
                Bound::Most(most) => ours <= *most,
                Bound::Least(least) => ours >= *least,
                Bound::MostOfLimit(most) => self.ratio()? <= *most,
                Bound::LeastOfLimit(least) => self.ratio()? >= *least,
            })
        };
        let verdicts: Option<Vec<bool>> = self.target.bounds.iter().map(holds).collect();
        verdicts.map(|verdicts| verdicts.iter().all(|met| *met))
    }
}

impl Target {
    pub(super) fn none() -> Self {
        Self { bounds: Vec::new(), devices: Devices::All }
    }

    pub(super) fn hardware(bounds: &[Bound]) -> Self {
        Self { bounds: bounds.to_vec(), devices: Devices::Hardware }
    }

    pub(super) fn software(bounds: &[Bound]) -> Self {
        Self { bounds: bounds.to_vec(), devices: Devices::Software }
    }

    pub(super) fn all(bounds: &[Bound]) -> Self {
        Self { bounds: bounds.to_vec(), devices: Devices::All }
    }

    /// In words, with the unit of the bounds.
    pub(super) fn text(&self, unit: Unit) -> String {
        let unit = unit.name();
        let text = |bound: &Bound| match bound {
            Bound::Most(most) => format!("≤ {most} {unit}"),
            Bound::Least(least) => format!("≥ {least} {unit}"),
            Bound::MostOfLimit(most) => format!("≤ {most} × limit"),
            Bound::LeastOfLimit(least) => format!("≥ {least} × limit"),
        };
        let bounds: Vec<String> = self.bounds.iter().map(text).collect();
        match self.devices {
            _ if bounds.is_empty() => "none".to_owned(),
            Devices::All => bounds.join(", "),
            Devices::Hardware => format!("{} (hardware)", bounds.join(", ")),
            Devices::Software => format!("{} (software)", bounds.join(", ")),
        }
    }
}

/// The place of the limit that counts; the first if none could be taken. A part that could not be
/// taken may be the slowest.
fn choose(figures: &[Figure], pick: Pick) -> Option<usize> {
    let key = |figure: &Figure| match (&figure.samples, pick) {
        (Ok(samples), Pick::Fastest) => samples.median(),
        (Err(_), Pick::Fastest) => f64::INFINITY,
        (Ok(samples), Pick::Slowest) => -samples.median(),
        (Err(_), Pick::Slowest) => f64::NEG_INFINITY,
    };
    (0..figures.len()).min_by(|a, b| key(&figures[*a]).total_cmp(&key(&figures[*b])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(what: &str, samples: Result<f64, &str>) -> Figure {
        Figure {
            what: what.to_owned(),
            samples: samples.map(|value| Samples::new(vec![value])).map_err(str::to_owned),
        }
    }

    fn outcome(pick: Pick, unit: Unit, bounds: &[Bound], others: Vec<Figure>) -> Outcome {
        let finish = Finish { ours: Samples::new(vec![2e-6]), limits: others, beside: Vec::new() };
        Outcome::new(unit, finish, pick, Target::hardware(bounds))
    }

    #[test]
    fn the_fastest_or_slowest_way_is_the_limit_and_the_rest_stays_beside() {
        let others =
            || vec![figure("a", Ok(4e-6)), figure("b", Ok(1e-6)), figure("c", Err("none"))];
        let fastest = outcome(Pick::Fastest, Unit::Microseconds, &[], others());
        assert_eq!((fastest.limit.what.as_str(), fastest.beside.len()), ("b", 2));
        assert_eq!(fastest.ratio(), Some(2.0));
        let slowest = outcome(Pick::Slowest, Unit::Microseconds, &[], others()[..2].to_vec());
        assert_eq!(slowest.limit.what, "a");
        let unknown = outcome(Pick::Slowest, Unit::Microseconds, &[], others());
        assert_eq!((unknown.limit.what.as_str(), unknown.ratio()), ("c", None));
    }

    #[test]
    fn a_target_is_met_when_every_bound_holds_on_the_devices_it_is_for() {
        let bounds = [Bound::Least(400.0), Bound::LeastOfLimit(0.5)];
        let unit = Unit::GigabytesPerSecond(1_000_000);
        let met = outcome(Pick::Fastest, unit, &bounds, vec![figure("a", Ok(1e-6))]);
        assert_eq!((met.met(false), met.met(true)), (Some(true), None));
        let missed = outcome(Pick::Fastest, unit, &bounds, vec![figure("a", Ok(0.9e-6))]);
        assert_eq!(missed.met(false), Some(false));
        let open = outcome(Pick::Fastest, unit, &bounds, vec![figure("a", Err("gone"))]);
        assert_eq!(open.met(false), None);
    }
}
