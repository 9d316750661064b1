//! One text that says what Vulkan is on this machine and why anything was left out.

use std::fmt::Write;

use super::driver::VulkanDriver;
use super::manifests::{self, Environment};
use super::options::Options;
use super::plan::plan;
use super::snapshot::Snapshot;
use super::{loader, quirks, validation, version_text};
use crate::hal::Driver;

/// Variables that decide what is found, beyond those that start with `VK_` or `DLHAL_`.
const OTHER_VARIABLES: [&str; 6] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "LD_LIBRARY_PATH",
];

/// The text: loader, environment, drivers, layers, devices. It opens the loader and every driver.
pub(crate) fn diagnose() -> String {
    let options = Options::from_env();
    // First, because finding the devices may change the environment that the rest describes.
    let devices = device_lines(&options);
    let environment = Environment::of_process();
    let sections = [
        ("loader", loader_lines(&options)),
        ("environment", environment_lines()),
        ("driver files", driver_lines(&environment)),
        ("layers", layer_lines(&environment, &options)),
        ("devices", devices),
    ];
    let mut text = format!("dlhal {}, Vulkan\n", env!("CARGO_PKG_VERSION"));
    for (title, lines) in sections {
        let _ = writeln!(text, "{title}:");
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

fn loader_lines(options: &Options) -> Vec<String> {
    match loader::open(options) {
        Ok(loader) => vec![format!("{}, Vulkan {}", loader.path, version_text(loader.api_version))],
        Err(error) => vec![error.message().to_owned()],
    }
}

fn environment_lines() -> Vec<String> {
    let mut lines: Vec<String> = std::env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .filter(|(name, _)| {
            name.starts_with("VK_")
                || name.starts_with("DLHAL_")
                || OTHER_VARIABLES.contains(&name.as_str())
        })
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    lines.sort();
    or_none(lines, "no variable that matters is set")
}

fn driver_lines(environment: &Environment<'_>) -> Vec<String> {
    let lines = manifests::drivers(environment).iter().map(ToString::to_string).collect();
    let folders: Vec<String> = manifests::search_folders(environment, "icd.d")
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    or_none(lines, &format!("none; searched {}", folders.join(", ")))
}

fn layer_lines(environment: &Environment<'_>, options: &Options) -> Vec<String> {
    let lines = manifests::layers(environment)
        .iter()
        .map(|layer| {
            let kind = if layer.implicit { "implicit" } else { "explicit" };
            let validation = validation::LAYER.to_str() == Ok(layer.name.as_str());
            let state = match &layer.active {
                Ok(_) if validation && options.validation => "active (DLHAL_VALIDATION)".to_owned(),
                Ok((true, reason)) => format!("active ({reason})"),
                Ok((false, reason)) => format!("not active ({reason})"),
                Err(reason) => reason.clone(),
            };
            format!("{} [{kind}]: {state}; {}", layer.name, layer.path.display())
        })
        .collect();
    or_none(lines, "none")
}

fn device_lines(options: &Options) -> Vec<String> {
    let driver = match VulkanDriver::load(options) {
        Ok(driver) => driver,
        Err(error) => return vec![error.message().to_owned()],
    };
    let mut lines = Vec::new();
    if options.validation {
        lines.push(format!(
            "validation is on; it has complained {} times",
            validation::messages().len()
        ));
    }
    for (index, (adapter, found)) in driver.adapters().iter().zip(driver.found()).enumerate() {
        let state = match &adapter.usable {
            Ok(()) => "usable".to_owned(),
            Err(error) => format!("left out: {}", error.message()),
        };
        lines.push(format!("{index}: {}: {state}", adapter.info.name));
        if let Ok(snapshot) = &found.snapshot {
            lines.extend(
                snapshot_lines(snapshot, options).into_iter().map(|line| "   ".to_owned() + &line),
            );
        }
    }
    lines
}

fn snapshot_lines(snapshot: &Snapshot, options: &Options) -> Vec<String> {
    let [major, minor, patch] = snapshot.api_version;
    let uuid: String = snapshot.device_uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let driver = match &snapshot.driver {
        Some(driver) => format!("{} {}", driver.name, driver.info),
        None => "the driver tells no name".to_owned(),
    };
    let pci = snapshot.pci.map_or("no PCI address".to_owned(), |pci| format!("PCI {pci}"));
    let mut lines = vec![format!(
        "{:?}, Vulkan {major}.{minor}.{patch}, {driver}, UUID {uuid}, {pci}",
        snapshot.device_type
    )];
    if let Ok(plan) = plan(snapshot, options) {
        lines.push(format!("extensions used: {}", plan.extensions.join(", ")));
    }
    lines.extend(quirks::warnings(snapshot).into_iter().map(|text| format!("WARNING: {text}")));
    lines
}

fn or_none(lines: Vec<String>, none: &str) -> Vec<String> {
    if lines.is_empty() { vec![none.to_owned()] } else { lines }
}
