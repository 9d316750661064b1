//! What is measured in a process of its own: `dlhal bench --child NAME ARGUMENT...`, which prints
//! one number of seconds.

use std::path::Path;
use std::process::Command;

use dlhal::{DlhalStatus, Error, Result};

use super::operations::{first_launch, idle};

/// What makes the program a child.
pub(super) const FLAG: &str = "--child";

/// Drivers keep compiled kernels in files of their own, which would serve every process.
const WITHOUT_DRIVER_CACHES: [(&str, &str); 2] =
    [("__GL_SHADER_DISK_CACHE", "0"), ("MESA_SHADER_CACHE_DISABLE", "true")];

/// Runs the child's part; `None` if there is none such.
pub(super) fn run(arguments: &[&str]) -> Option<Result<f64>> {
    Some(match *arguments {
        ["idle", device, seconds] => {
            number(device).and_then(|device| idle::child(device as i32, seconds))
        }
        ["idle-raw", uuid, seconds] => idle::raw_child(uuid, seconds),
        ["first-launch", device, module, cache, kernels] => number(device).and_then(|device| {
            let (module, cache) = (Path::new(module), Path::new(cache));
            first_launch::child(device as i32, module, cache, number(kernels)?)
        }),
        _ => return None,
    })
}

/// The number that a child with these arguments prints.
pub(super) fn seconds(name: &str, arguments: &[&str]) -> Result<f64> {
    let failed = |what: String| Error::new(DlhalStatus::Io, format!("the child {name}: {what}"));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let output = Command::new(program)
        .args(["bench", FLAG, name])
        .args(arguments)
        .envs(WITHOUT_DRIVER_CACHES)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{}, {}", output.status, said.trim())));
    }
    text.trim().parse().map_err(|_| failed(format!("it printed `{}`, no number", text.trim())))
}

fn number(text: &str) -> Result<u32> {
    text.parse().map_err(|_| Error::invalid(format!("`{text}` is no number")))
}
