//! The same operations in each way that the environment can ask for, each in a process of its own,
//! and the device's limits in the same run.

use std::process::Command;

use super::part;

/// A part of the benchmark and the environments that make a difference to it.
type Ways = (&'static str, &'static [&'static [(&'static str, &'static str)]]);

/// More bytes than any copy has.
const NEVER: &str = "18446744073709551615";

const WAYS: &[Ways] = &[
    ("limits", &[&[]]),
    ("on-device", &[&[], &[("DLHAL_COPY_KERNEL", "0")], &[("DLHAL_COPY_KERNEL", "1")]]),
    (
        "host",
        &[
            &[],
            &[("DLHAL_COPY_THREADS", "1")],
            &[("DLHAL_COPY_THREADS", "4")],
            &[("DLHAL_COPY_THREADS", "16")],
            &[("DLHAL_COPY_SLICE", "262144")],
            &[("DLHAL_COPY_SLICE", "4194304")],
            &[("DLHAL_STREAM_FROM", NEVER)],
            &[("DLHAL_MAPPED_UP_TO", "65536"), ("DLHAL_COPY_THREADS", "1")],
            &[("DLHAL_MAPPED_UP_TO", "65536"), ("DLHAL_COPY_THREADS", "4")],
            &[("DLHAL_MAPPED_UP_TO", "65536")],
            &[("DLHAL_MAPPED_UP_TO", "65536"), ("DLHAL_COPY_THREADS", "16")],
            &[("DLHAL_MAPPED_UP_TO", "65536"), ("DLHAL_COPY_SLICE", "262144")],
            &[("DLHAL_MAPPED_UP_TO", "65536"), ("DLHAL_COPY_SLICE", "4194304")],
            &[("DLHAL_MAPPED_UP_TO", "65536"), ("DLHAL_STREAM_FROM", NEVER)],
        ],
    ),
    (
        "waits",
        &[&[], &[("DLHAL_SPIN_US", "0")], &[("DLHAL_FORCE_FENCES", "1"), ("DLHAL_SPIN_US", "50")]],
    ),
];

/// Runs every part in every way; `wanted` names one part, or is empty.
pub(crate) fn compare(wanted: &str) {
    let program = std::env::current_exe().unwrap();
    for (name, environments) in WAYS.iter().filter(|(name, _)| name.contains(wanted)) {
        for environment in *environments {
            let set: Vec<_> =
                environment.iter().map(|(key, value)| format!("{key}={value}")).collect();
            println!(
                "\n{name} {}",
                if set.is_empty() { "as it is".to_owned() } else { set.join(" ") }
            );
            let status = Command::new(&program)
                .args([part::ARGUMENT, name])
                .envs(environment.iter().copied())
                .status()
                .unwrap();
            assert!(status.success(), "{name}: {status}");
        }
    }
}
