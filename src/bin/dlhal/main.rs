//! `dlhal`: what devices there are, what is wrong with them, how fast they are, and what is in a
//! module.

mod bench;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use dlhal::module::Module;
use dlhal::runtime::{Attribute, Device, DeviceAttr, DeviceRef, self_test, system};
use dlhal::{DlhalStatus, Error, Result, vulkan};
use serde_json::{Map, Value, json};

const USAGE: &str = "\
usage: dlhal info [--json]         devices and what they can do
       dlhal info --snapshot [N]   everything that the driver told of its adapter N (0), as JSON
       dlhal doctor                what was found, what is wrong with it, and a self-test
       dlhal inspect FILE          a module's functions, arguments and shaders
       dlhal bench [--device N] [--only PART]... [--quick] [--json FILE] [--svg FILE] [--list]
                                   what each operation costs beside what plain Vulkan takes for it;
                                   PART is a piece of an operation's name, or a group of --list
       dlhal bench --ways [PART] [--device N] [--quick]
                                   the same in each way that the environment can ask for
       dlhal --version | --help

Exit status: 0; 1 when something failed or a device computes wrongly; 2 for wrong usage.
DLHAL_VISIBLE_DEVICES selects and orders devices, DLHAL_LOG=error|warn|info|debug logs to stderr.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args[..] {
        ["info"] => info(),
        ["info", "--json"] => info_json(),
        ["info", "--snapshot"] => vulkan::snapshot_json(0),
        ["info", "--snapshot", number] => number
            .parse()
            .map_err(|_| Error::invalid(format!("`{number}` is no adapter's number")))
            .and_then(vulkan::snapshot_json),
        ["doctor"] => return doctor(),
        ["inspect", file] => Module::load(Path::new(file)).map(|module| module.to_string()),
        ["bench", ref rest @ ..] => {
            return bench::run(rest).unwrap_or_else(wrong_usage);
        }
        ["--version"] => Ok(format!("dlhal {}", env!("CARGO_PKG_VERSION"))),
        ["--help" | "-h" | "help"] => Ok(USAGE.trim_end().to_owned()),
        _ => return wrong_usage(),
    };
    match outcome {
        Ok(text) => print(&text),
        Err(error) => {
            eprintln!("dlhal: {error}");
            ExitCode::FAILURE
        }
    }
}

fn wrong_usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}

/// A reader that closes early (`| head`) is no failure.
fn print(text: &str) -> ExitCode {
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// The devices, created; at least one.
fn devices() -> Result<Vec<std::sync::Arc<Device>>> {
    let count = system::device_count()?;
    if count == 0 {
        return Err(Error::unavailable("there is no usable device; `dlhal doctor` says why"));
    }
    (0..count as i32).map(|id| system::device(DeviceRef::vulkan(id))).collect()
}

fn info() -> Result<String> {
    let mut text = String::new();
    for device in devices()? {
        text.push_str(&format!("device {}: {}\n", device.id(), device.properties().name));
        for (name, value) in facts(&device) {
            text.push_str(&format!("  {name:<42} {}\n", plain(&value)));
        }
    }
    Ok(text)
}

fn info_json() -> Result<String> {
    let devices = devices()?;
    let list: Vec<Value> = devices
        .iter()
        .map(|device| {
            let mut facts: Map<String, Value> = facts(device).into_iter().collect();
            facts.insert("id".to_owned(), json!(device.id()));
            Value::Object(facts)
        })
        .collect();
    serde_json::to_string_pretty(&json!({ "devices": list }))
        .map_err(|error| Error::internal(error.to_string()))
}

/// Attributes by their names in the header, then the target properties by TVM's; null is unknown.
fn facts(device: &Device) -> Vec<(String, Value)> {
    let attributes = DeviceAttr::ALL.into_iter().filter(|attr| *attr != DeviceAttr::Exist);
    let attributes = attributes.map(|attr| (snake_case(attr), value(device.attribute(attr))));
    let properties = Device::TARGET_PROPERTIES
        .into_iter()
        .map(|name| (format!("target.{name}"), value(device.target_property(name))));
    attributes.chain(properties).collect()
}

fn value(answer: Option<Attribute>) -> Value {
    match answer {
        Some(Attribute::Bool(truth)) => json!(truth),
        Some(Attribute::Int(number)) => json!(number),
        Some(Attribute::Text(text)) => json!(text),
        None => Value::Null,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn snake_case(attr: DeviceAttr) -> String {
    let mut name = String::new();
    for letter in format!("{attr:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn doctor() -> ExitCode {
    let mut text = system::diagnose();
    let mut well = true;
    text.push_str("\nHealth\n");
    match devices() {
        Ok(devices) => {
            for device in devices {
                let found = examine(&device);
                well &= found.is_empty();
                let what = if found.is_empty() { "computes rightly" } else { &found };
                text.push_str(&format!("  {}: {what}\n", device.id()));
            }
        }
        Err(error) => {
            well = false;
            text.push_str(&format!("  {}\n", advice(&error)));
        }
    }
    let printed = print(&text);
    if well { printed } else { ExitCode::FAILURE }
}

/// What is wrong with a device; empty if nothing is.
fn examine(device: &std::sync::Arc<Device>) -> String {
    let mut found = device.properties().warnings.clone();
    if let Err(error) = self_test::run(device) {
        found.push(error.message().to_owned());
    }
    found.join("; ")
}

fn advice(error: &Error) -> String {
    match error.status() {
        DlhalStatus::Unavailable => format!(
            "{}: install a Vulkan driver, for example mesa-vulkan-drivers 25.0 or newer, and the \
             loader libvulkan1, or name a driver's file in VK_DRIVER_FILES",
            error.message()
        ),
        _ => error.to_string(),
    }
}
