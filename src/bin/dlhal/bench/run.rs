//! One run of the benchmark: what was measured, and on what.

use std::time::{SystemTime, UNIX_EPOCH};

use dlhal::Result;
use dlhal::runtime::DeviceAttr;

use super::context::Context;
use super::curves::Line;
use super::outcome::Outcome;

/// All of it.
pub(super) struct Run {
    pub(super) device: String,
    pub(super) driver: String,
    pub(super) driver_version: String,
    pub(super) uuid: String,
    /// UTC, as `2026-11-30T09:55:37Z`.
    pub(super) date: String,
    pub(super) software: bool,
    pub(super) quick: bool,
    pub(super) operations: Vec<Measured>,
    pub(super) curves: Vec<Grown>,
}

/// One curve.
pub(super) struct Grown {
    pub(super) name: &'static str,
    /// What the horizontal axis counts.
    pub(super) against: &'static str,
    pub(super) unit: &'static str,
    pub(super) lines: Result<Vec<Line>>,
}

/// One operation's outcome.
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) group: &'static str,
    pub(super) outcome: Result<Outcome>,
}

impl Run {
    pub(super) fn new(context: &Context) -> Result<Self> {
        let text = |attr| context.api.text(attr);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            device: text(DeviceAttr::DeviceName)?,
            driver: text(DeviceAttr::DriverName)?,
            driver_version: text(DeviceAttr::DriverVersion)?,
            uuid: text(DeviceAttr::Uuid)?,
            date: date(now.as_secs()),
            software: context.software,
            quick: context.quick,
            operations: Vec::new(),
            curves: Vec::new(),
        })
    }
}

/// A time in UTC, by the rules of the Gregorian calendar.
fn date(unix_seconds: u64) -> String {
    let (days, seconds) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let (mut year, mut left) = (1970, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", left + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_825_599), "2000-02-29T11:59:59Z");
        assert_eq!(date(1_796_032_537), "2026-11-30T09:55:37Z");
        assert_eq!(date(4_133_980_799), "2100-12-31T23:59:59Z");
    }
}
