//! Measures several ways of doing the same in turn, a few runs of each in a row: A A B B A A B B, so
//! that what changes on the machine meanwhile changes all of them, and the device's change from one
//! program's work to another's (H200: 200 µs) is none's.

use std::time::Instant;

use dlhal::Result;

/// Runs of one way before it is another's turn.
const MOST_IN_A_ROW: usize = 50;

/// Sorted values, at least one.
#[derive(Clone, Debug)]
pub(super) struct Samples(Vec<f64>);

/// What one way took, or why it could not be taken.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) what: String,
    pub(super) samples: std::result::Result<Samples, String>,
}

/// What all of them took: ours, and the others in the order in which they were entered.
pub(super) struct Finish {
    pub(super) ours: Samples,
    /// Those that can be the limit.
    pub(super) limits: Vec<Figure>,
    /// Those that are shown beside it.
    pub(super) beside: Vec<Figure>,
}

/// Does the operation once; the seconds that it took.
type Lane<'a> = Box<dyn FnMut() -> Result<f64> + 'a>;

/// Ours and what it is measured against.
pub(super) struct Race<'a> {
    ours: Lane<'a>,
    others: Vec<Competitor<'a>>,
}

struct Competitor<'a> {
    what: String,
    is_limit: bool,
    lane: Result<Lane<'a>>,
    taken: Vec<f64>,
}

impl Samples {
    pub(super) fn new(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    pub(super) fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub(super) fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Each value in another unit.
    pub(super) fn map(&self, unit: impl Fn(f64) -> f64) -> Self {
        Self::new(self.0.iter().map(|value| unit(*value)).collect())
    }
}

impl<'a> Race<'a> {
    pub(super) fn new(ours: impl FnMut() -> Result<f64> + 'a) -> Self {
        Self { ours: Box::new(ours), others: Vec::new() }
    }

    /// Enters a limit; one that could not be made ready is listed with the reason.
    pub(super) fn against(
        self,
        what: impl Into<String>,
        lane: Result<impl FnMut() -> Result<f64> + 'a>,
    ) -> Self {
        self.enter(what.into(), true, lane)
    }

    /// Enters what is shown beside the limit.
    pub(super) fn beside(
        self,
        what: impl Into<String>,
        lane: Result<impl FnMut() -> Result<f64> + 'a>,
    ) -> Self {
        self.enter(what.into(), false, lane)
    }

    fn enter(
        mut self,
        what: String,
        is_limit: bool,
        lane: Result<impl FnMut() -> Result<f64> + 'a>,
    ) -> Self {
        let lane = lane.map(|lane| Box::new(lane) as Lane<'a>);
        self.others.push(Competitor { what, is_limit, lane, taken: Vec::new() });
        self
    }

    /// Runs each `rounds` times, in turn; the first of those in a row does not count. Only a failure
    /// of ours is one of the race.
    pub(super) fn run(mut self, rounds: usize) -> Result<Finish> {
        let mut ours = Vec::with_capacity(rounds);
        let most = (rounds / 4).clamp(1, MOST_IN_A_ROW);
        while ours.len() < rounds {
            let row = most.min(rounds - ours.len());
            (self.ours)()?;
            for _ in 0..row {
                ours.push((self.ours)()?);
            }
            self.others.iter_mut().for_each(|other| other.run(row));
        }
        let (limits, beside): (Vec<_>, Vec<_>) =
            self.others.into_iter().partition(|other| other.is_limit);
        Ok(Finish {
            ours: Samples::new(ours),
            limits: limits.into_iter().map(Competitor::figure).collect(),
            beside: beside.into_iter().map(Competitor::figure).collect(),
        })
    }
}

impl Competitor<'_> {
    fn run(&mut self, row: usize) {
        let Ok(lane) = &mut self.lane else { return };
        match (0..=row).map(|_| lane()).collect::<Result<Vec<f64>>>() {
            Ok(took) => self.taken.extend_from_slice(&took[1..]),
            Err(error) => self.lane = Err(error),
        }
    }

    fn figure(self) -> Figure {
        let samples = match self.lane {
            Ok(_) => Ok(Samples::new(self.taken)),
            Err(error) => Err(error.message().to_owned()),
        };
        Figure { what: self.what, samples }
    }
}

/// The seconds that `operation` takes.
pub(super) fn seconds(operation: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    operation()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The seconds that `operation` takes on the average of `count` times.
pub(super) fn seconds_each(count: usize, mut operation: impl FnMut() -> Result<()>) -> Result<f64> {
    seconds(|| (0..count).try_for_each(|_| operation())).map(|all| all / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dlhal::Error;

    #[test]
    fn the_first_run_of_each_row_does_not_count() {
        let mut ours = [9.0, 3.0, 1.0].iter().cycle();
        let mut other = [9.0, 6.0, 6.0].iter().cycle();
        let finish = Race::new(move || Ok(*ours.next().unwrap()))
            .against("other", Ok(move || Ok(*other.next().unwrap())))
            .run(8)
            .unwrap();
        assert_eq!((finish.ours.min(), finish.ours.max(), finish.ours.count()), (1.0, 3.0, 8));
        let other = finish.limits[0].samples.as_ref().unwrap();
        assert_eq!((other.min(), other.max(), other.count()), (6.0, 6.0, 8));
    }

    #[test]
    fn a_competitor_that_fails_is_left_out_with_its_reason() {
        let missing = Err::<fn() -> Result<f64>, _>(Error::unsupported("no such queue"));
        let finish = Race::new(|| Ok(1.0))
            .against("missing", missing)
            .beside("failing", Ok(|| Err(Error::unsupported("lost it"))))
            .run(1)
            .unwrap();
        let reason = |figures: &[Figure]| figures[0].samples.clone().unwrap_err();
        assert_eq!(reason(&finish.limits), "no such queue");
        assert_eq!(reason(&finish.beside), "lost it");
    }
}
