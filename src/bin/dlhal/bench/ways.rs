//! The same operations in each way that the environment can ask for, each in a process of its own.

use std::process::Command;

use dlhal::{DlhalStatus, Error, Result};

use super::options::Options;
use super::print;

/// A part of the operations, and the environments that make a difference to it.
struct Part {
    name: &'static str,
    /// What `--only` takes.
    only: &'static [&'static str],
    environments: &'static [&'static [(&'static str, &'static str)]],
}

/// More bytes than any copy has.
const NEVER: &str = "18446744073709551615";

const PARTS: &[Part] = &[
    Part {
        name: "on-device",
        only: &["device copies"],
        environments: &[&[], &[("DLHAL_COPY_KERNEL", "0")], &[("DLHAL_COPY_KERNEL", "1")]],
    },
    Part {
        name: "host",
        only: &["host copies"],
        environments: &[
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
    },
    Part {
        name: "waits",
        only: &["waits", "dependent launches, prepared, each"],
        environments: &[
            &[],
            &[("DLHAL_SPIN_US", "0")],
            &[("DLHAL_EARLY_SUBMIT", "0")],
            &[("DLHAL_EARLY_SUBMIT", "1")],
            &[("DLHAL_FORCE_FENCES", "1"), ("DLHAL_SPIN_US", "50")],
        ],
    },
];

/// Runs every part in every way; `wanted` names one part, or is empty.
pub(super) fn run(wanted: &str, options: &Options) -> Result<bool> {
    let parts: Vec<&Part> =
        PARTS.iter().filter(|part| wanted.is_empty() || part.name == wanted).collect();
    if parts.is_empty() {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        return Err(Error::not_found(format!(
            "there are no ways of `{wanted}`, but of {}",
            names.join(", ")
        )));
    }
    let io = |error: std::io::Error| Error::new(DlhalStatus::Io, format!("a child: {error}"));
    let program = std::env::current_exe().map_err(io)?;
    let mut well = true;
    for part in parts {
        for environment in part.environments {
            let set: Vec<_> =
                environment.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let way = if set.is_empty() { "as it is".to_owned() } else { set.join(" ") };
            print(&format!("\n== {}: {way}\n", part.name))?;
            let mut child = Command::new(&program);
            child.args(["bench", "--device", &options.device.to_string()]);
            for only in part.only {
                child.args(["--only", only]);
            }
            if options.quick {
                child.arg("--quick");
            }
            let status = child.envs(environment.iter().copied()).status().map_err(io)?;
            well &= status.success();
        }
    }
    Ok(well)
}
