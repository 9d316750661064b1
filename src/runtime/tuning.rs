//! Which of several ways a device takes, where the choice is one of speed alone: by its kind, unless
//! the environment or a test says otherwise.

use std::ffi::OsString;
use std::time::Duration;

use crate::variable;

/// What is asked for; `None` leaves the choice to the device's kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// `DLHAL_COPY_KERNEL`: copy on the device by a kernel, from the smallest size on that it is
    /// good for, or never.
    pub copy_kernel: Option<bool>,
    /// `DLHAL_COPY_THREADS`: how many threads copy host memory, the caller included; 1 starts none.
    pub copy_threads: Option<usize>,
    /// `DLHAL_COPY_SLICE`: bytes that one of them moves at a time.
    pub copy_slice: Option<usize>,
    /// `DLHAL_STREAM_FROM`: copies of host memory of so many bytes and more go past the caches.
    pub stream_from: Option<u64>,
    /// `DLHAL_MAPPED_UP_TO`: the host writes up to so many bytes to device memory that it sees;
    /// larger copies go through staging.
    pub mapped_up_to: Option<u64>,
    /// `DLHAL_PINNED_FROM`: the device uses pinned memory of the host in place for copies of so many
    /// bytes and more; smaller ones are made as for ordinary memory.
    pub pinned_from: Option<u64>,
    /// `DLHAL_EARLY_SUBMIT`: every command goes to the device at once, or only full batches do.
    pub early_submit: Option<bool>,
    /// `DLHAL_BARRIER_ALWAYS`: a barrier stands between any two commands of a batch.
    pub barrier_always: Option<bool>,
    /// `DLHAL_SPIN_US`: how long a wait looks at the device again and again before it sleeps.
    pub spin: Option<Duration>,
}

impl Tuning {
    /// Reads the process's environment. A value that makes no sense is ignored, with a log line that
    /// names the variable.
    pub(crate) fn from_env() -> Self {
        let (tuning, complaints) = Self::parse(|name| std::env::var_os(name));
        for complaint in complaints {
            log::warn!("{complaint}");
        }
        tuning
    }

    /// Reads any environment; also returns what was wrong with it.
    fn parse(lookup: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        let mut complaints = Vec::new();
        let said = &mut complaints;
        let tuning = Self {
            copy_kernel: variable::switch("DLHAL_COPY_KERNEL", &lookup, said),
            copy_threads: variable::number("DLHAL_COPY_THREADS", &lookup, said),
            copy_slice: variable::number("DLHAL_COPY_SLICE", &lookup, said),
            stream_from: variable::number("DLHAL_STREAM_FROM", &lookup, said),
            mapped_up_to: variable::number("DLHAL_MAPPED_UP_TO", &lookup, said),
            pinned_from: variable::number("DLHAL_PINNED_FROM", &lookup, said),
            early_submit: variable::switch("DLHAL_EARLY_SUBMIT", &lookup, said),
            barrier_always: variable::switch("DLHAL_BARRIER_ALWAYS", &lookup, said),
            spin: variable::number("DLHAL_SPIN_US", &lookup, said).map(Duration::from_micros),
        };
        (tuning, complaints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: &[(&str, &str)]) -> (Tuning, Vec<String>) {
        Tuning::parse(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn an_empty_environment_leaves_all_to_the_device() {
        assert_eq!(parse(&[]), (Tuning::default(), Vec::new()));
    }

    #[test]
    fn each_variable_sets_its_own_choice() {
        let all = [
            ("DLHAL_COPY_KERNEL", "off"),
            ("DLHAL_COPY_THREADS", "3"),
            ("DLHAL_COPY_SLICE", "65536"),
            ("DLHAL_STREAM_FROM", "5"),
            ("DLHAL_MAPPED_UP_TO", "0"),
            ("DLHAL_PINNED_FROM", "9"),
            ("DLHAL_EARLY_SUBMIT", "0"),
            ("DLHAL_BARRIER_ALWAYS", "1"),
            ("DLHAL_SPIN_US", "7"),
        ];
        let expected = Tuning {
            copy_kernel: Some(false),
            copy_threads: Some(3),
            copy_slice: Some(65536),
            stream_from: Some(5),
            mapped_up_to: Some(0),
            pinned_from: Some(9),
            early_submit: Some(false),
            barrier_always: Some(true),
            spin: Some(Duration::from_micros(7)),
        };
        assert_eq!(parse(&all), (expected, Vec::new()));
    }

    #[test]
    fn a_wrong_value_is_ignored_and_its_variable_is_named() {
        let (tuning, complaints) =
            parse(&[("DLHAL_COPY_THREADS", "-1"), ("DLHAL_COPY_KERNEL", "2")]);
        assert_eq!(tuning, Tuning::default());
        assert_eq!(complaints.len(), 2);
        assert!(complaints[0].contains("DLHAL_COPY_KERNEL=2 is ignored"), "{complaints:?}");
        assert!(complaints[1].contains("DLHAL_COPY_THREADS=-1 is ignored"), "{complaints:?}");
    }
}
