//! Which adapters become devices, and in which order: `DLHAL_VISIBLE_DEVICES`.

use crate::hal::{Adapter, DeviceType};
use crate::{Error, Result};

/// Chooses among `adapters`, which come in their driver's order: discrete, integrated, virtual,
/// other, software. Returns their indices in the order in which devices are numbered.
///
/// Without `spec`: every usable device that is hardware; usable software devices only where there
/// is no usable hardware. So work never lands on the processor unnoticed beside a real device.
///
/// With `spec`, exactly what it names, software devices too: a comma-separated list of indices into
/// `adapters` and of UUIDs or their first digits (`GPU-6d657361-…` or plain hexadecimal; digits
/// alone are an index unless `GPU-` stands before them). An empty string names none. Anything that
/// names no device, more than one, one twice, or one that cannot be used is an error.
pub(crate) fn select(adapters: &[Adapter], spec: Option<&str>) -> Result<Vec<usize>> {
    let Some(spec) = spec else { return Ok(usable_by_default(adapters)) };
    if spec.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut chosen = Vec::new();
    for word in spec.split(',').map(str::trim) {
        let index = find(adapters, word)
            .map_err(|error| error.within(format!("DLHAL_VISIBLE_DEVICES={spec}")))?;
        if chosen.contains(&index) {
            return Err(Error::invalid(format!(
                "DLHAL_VISIBLE_DEVICES={spec}: {word} names device {index} a second time"
            )));
        }
        if let Err(reason) = &adapters[index].usable {
            return Err(Error::new(
                reason.status(),
                format!(
                    "DLHAL_VISIBLE_DEVICES={spec}: device {index} ({}) cannot be used: {}",
                    adapters[index].info.name,
                    reason.message()
                ),
            ));
        }
        chosen.push(index);
    }
    Ok(chosen)
}

fn usable_by_default(adapters: &[Adapter]) -> Vec<usize> {
    let usable = |software: bool| {
        adapters
            .iter()
            .enumerate()
            .filter(|(_, adapter)| adapter.usable.is_ok())
            .filter(|(_, adapter)| (adapter.info.device_type == DeviceType::Software) == software)
            .map(|(index, _)| index)
            .collect::<Vec<_>>()
    };
    let hardware = usable(false);
    if hardware.is_empty() { usable(true) } else { hardware }
}

/// The one adapter that a word names.
fn find(adapters: &[Adapter], word: &str) -> Result<usize> {
    if word.is_empty() {
        return Err(Error::invalid("an entry between the commas is empty"));
    }
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        return word.parse().ok().filter(|index| *index < adapters.len()).ok_or_else(|| {
            Error::not_found(format!("there is no device {word}; {}", listed(adapters)))
        });
    }
    let prefix = uuid_prefix(word).ok_or_else(|| {
        Error::invalid(format!("{word} is neither an index nor a UUID; {}", listed(adapters)))
    })?;
    let matching: Vec<usize> = adapters
        .iter()
        .enumerate()
        .filter(|(_, adapter)| hex(&adapter.info.uuid).starts_with(&prefix))
        .map(|(index, _)| index)
        .collect();
    match matching[..] {
        [one] => Ok(one),
        [] => Err(Error::not_found(format!(
            "no device's UUID begins with {word}; {}",
            listed(adapters)
        ))),
        _ => Err(Error::invalid(format!(
            "the UUIDs of devices {matching:?} all begin with {word}; give more digits or an index"
        ))),
    }
}

/// The hexadecimal digits of a UUID's beginning, in lower case, without `GPU-` and dashes.
fn uuid_prefix(word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let digits = word.strip_prefix("gpu-").unwrap_or(&word).replace('-', "");
    let sound =
        (1..=32).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (sound && !word.starts_with('-')).then_some(digits)
}

fn hex(uuid: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*uuid))
}

/// All devices, for messages.
fn listed(adapters: &[Adapter]) -> String {
    if adapters.is_empty() {
        return "there is no device".to_owned();
    }
    let list: Vec<String> = adapters
        .iter()
        .enumerate()
        .map(|(index, adapter)| {
            format!("{index}: {} (GPU-{})", adapter.info.name, hex(&adapter.info.uuid))
        })
        .collect();
    format!("the devices are {}", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DlhalStatus;
    use crate::hal::AdapterInfo;

    fn adapter(name: &str, device_type: DeviceType, first: u8, last: u8) -> Adapter {
        let mut uuid = [first; 16];
        uuid[15] = last;
        let info = AdapterInfo { name: name.to_owned(), device_type, uuid, driver: String::new() };
        Adapter { info, usable: Ok(()) }
    }

    fn unusable(mut adapter: Adapter) -> Adapter {
        adapter.usable = Err(Error::unsupported("it is too old"));
        adapter
    }

    /// Two identical cards, an integrated device and a software one.
    fn machine() -> Vec<Adapter> {
        vec![
            adapter("card", DeviceType::Discrete, 0xab, 1),
            adapter("card", DeviceType::Discrete, 0xab, 2),
            adapter("chip", DeviceType::Integrated, 0xcd, 3),
            adapter("software", DeviceType::Software, 0x6d, 4),
        ]
    }

    fn failure(adapters: &[Adapter], spec: &str) -> Error {
        let error = select(adapters, Some(spec)).unwrap_err();
        assert!(error.message().starts_with("DLHAL_VISIBLE_DEVICES="), "{error}");
        error
    }

    #[test]
    fn by_default_all_hardware_is_there_and_software_is_not() {
        assert_eq!(select(&machine(), None), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn software_is_there_where_nothing_else_is_usable() {
        let software = vec![
            adapter("software", DeviceType::Software, 0x6d, 4),
            adapter("other software", DeviceType::Software, 0x6e, 4),
        ];
        assert_eq!(select(&software, None), Ok(vec![0, 1]));
        let mut broken: Vec<Adapter> = machine().into_iter().map(unusable).collect();
        broken[3].usable = Ok(());
        assert_eq!(select(&broken, None), Ok(vec![3]));
    }

    #[test]
    fn unusable_devices_are_left_out_and_hide_no_other() {
        let mut adapters = machine();
        adapters[0] = unusable(adapters[0].clone());
        assert_eq!(select(&adapters, None), Ok(vec![1, 2]));
    }

    #[test]
    fn no_adapters_are_no_devices() {
        assert_eq!(select(&[], None), Ok(vec![]));
    }

    #[test]
    fn indices_choose_and_order() {
        assert_eq!(select(&machine(), Some("1")), Ok(vec![1]));
        assert_eq!(select(&machine(), Some("2, 0")), Ok(vec![2, 0]));
    }

    #[test]
    fn software_is_chosen_when_it_is_named() {
        assert_eq!(select(&machine(), Some("3")), Ok(vec![3]));
        assert_eq!(select(&machine(), Some("GPU-6d6d,0")), Ok(vec![3, 0]));
    }

    #[test]
    fn an_empty_list_is_no_device() {
        assert_eq!(select(&machine(), Some("")), Ok(vec![]));
        assert_eq!(select(&machine(), Some(" ")), Ok(vec![]));
    }

    #[test]
    fn a_uuid_may_be_short_dashed_and_in_capitals() {
        let whole = "GPU-ABABABAB-abab-abab-abab-ababababab02";
        assert_eq!(select(&machine(), Some(whole)), Ok(vec![1]));
        assert_eq!(select(&machine(), Some("ababababababababababababababab01")), Ok(vec![0]));
        assert_eq!(select(&machine(), Some("cd")), Ok(vec![2]));
    }

    #[test]
    fn a_uuid_that_several_devices_share_is_ambiguous() {
        let error = failure(&machine(), "GPU-abab");
        assert_eq!(error.status(), DlhalStatus::InvalidArgument);
        assert!(error.message().contains("[0, 1]"), "{error}");
    }

    #[test]
    fn a_value_that_names_no_device_is_not_found_and_the_devices_are_listed() {
        for spec in ["7", "4", "99999999999999999999999", "GPU-12", "abc", "0,7"] {
            let error = failure(&machine(), spec);
            assert_eq!(error.status(), DlhalStatus::NotFound, "{spec}");
            assert!(error.message().contains("3: software (GPU-6d6d"), "{error}");
        }
    }

    #[test]
    fn a_value_that_makes_no_sense_is_invalid() {
        for spec in ["-1", "x", "0,", ",", "0,,1", "GPU-", "0 1", "0x1", "é"] {
            assert_eq!(failure(&machine(), spec).status(), DlhalStatus::InvalidArgument, "{spec}");
        }
    }

    #[test]
    fn a_device_named_twice_is_invalid() {
        for spec in ["0,0", "2,cd"] {
            let error = failure(&machine(), spec);
            assert_eq!(error.status(), DlhalStatus::InvalidArgument);
            assert!(error.message().contains("a second time"), "{error}");
        }
    }

    #[test]
    fn an_unusable_device_that_is_named_is_refused_with_its_reason() {
        let mut adapters = machine();
        adapters[1] = unusable(adapters[1].clone());
        let error = failure(&adapters, "1");
        assert_eq!(error.status(), DlhalStatus::Unsupported);
        assert!(error.message().contains("it is too old"), "{error}");
    }
}
