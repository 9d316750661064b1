//! How variables of the environment are read: switches, numbers, and the switches of TVM.

use std::ffi::OsString;
use std::str::FromStr;

/// The switch called `name`: `None` where it is not set, or set to something that is neither on nor
/// off, which is added to `complaints`.
pub(crate) fn switch(
    name: &str,
    lookup: impl Fn(&str) -> Option<OsString>,
    complaints: &mut Vec<String>,
) -> Option<bool> {
    let value = lookup(name)?;
    let value = value.to_string_lossy();
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Some(true),
        "" | "0" | "false" | "off" | "no" => Some(false),
        _ => {
            complaints.push(format!("{name}={value} is ignored: use 1 or 0"));
            None
        }
    }
}

/// The number called `name`: `None` where it is not set, or set to something that is no number,
/// which is added to `complaints`.
pub(crate) fn number<T: FromStr>(
    name: &str,
    lookup: impl Fn(&str) -> Option<OsString>,
    complaints: &mut Vec<String>,
) -> Option<T> {
    let value = lookup(name)?;
    let value = value.to_string_lossy();
    let number = value.trim().parse().ok();
    if number.is_none() {
        complaints.push(format!("{name}={value} is ignored: use a whole number"));
    }
    number
}

/// The switch called `name`, as TVM reads its variables: any integer but zero is on.
pub(crate) fn tvm_switch(name: &str, lookup: impl Fn(&str) -> Option<OsString>) -> bool {
    let number = lookup(name).and_then(|value| value.to_string_lossy().trim().parse::<i64>().ok());
    number.is_some_and(|number| number != 0)
}
