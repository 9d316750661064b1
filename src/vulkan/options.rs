//! What the environment asks of the driver, read once each time the driver is loaded.

use std::ffi::OsString;

use crate::variable;

/// The environment's wishes. Without any, everything a device offers is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// `DLHAL_VULKAN_LOADER`: the only loader to try.
    pub(crate) loader: Option<OsString>,
    /// `DLHAL_VALIDATION` or TVM's `TVM_VULKAN_ENABLE_VALIDATION_LAYERS`: turn the Khronos
    /// validation layer on.
    pub(crate) validation: bool,
    /// `DLHAL_DISABLE_IMPLICIT_LAYERS`: keep overlays and capture tools out.
    pub(crate) disable_implicit_layers: bool,
    /// `DLHAL_ROBUST_BUFFER_ACCESS`: kernels that leave their buffers read zeros and write nothing.
    pub(crate) robust_buffer_access: bool,
    /// `DLHAL_FORCE_FENCES`
    pub(crate) force_fences: bool,
    /// `DLHAL_FORCE_DESCRIPTOR_POOLS` or TVM's `TVM_VULKAN_DISABLE_PUSH_DESCRIPTOR`
    pub(crate) force_descriptor_pools: bool,
    /// `DLHAL_FORCE_RESERVED_ADDRESSES`
    pub(crate) force_reserved_addresses: bool,
    /// `DLHAL_FORCE_NO_HOST_IMPORT`
    pub(crate) force_no_host_import: bool,
    /// `DLHAL_FORCE_OWN_BUDGET`
    pub(crate) force_own_budget: bool,
    /// `DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY`
    pub(crate) force_unmapped_device_memory: bool,
    /// `DLHAL_FORCE_ONE_QUEUE`
    pub(crate) force_one_queue: bool,
    /// `DLHAL_FORCE_NO_FLOAT_CONTROLS`
    pub(crate) force_no_float_controls: bool,
    /// `DLHAL_FORCE_NO_TIMESTAMPS`
    pub(crate) force_no_timestamps: bool,
    /// `DLHAL_FORCE_PIPELINES_BETWEEN_SUBMISSIONS`
    pub(crate) force_pipelines_between_submissions: bool,
}

impl Options {
    /// Reads the process's environment. A value that is neither on nor off is ignored, with a log
    /// line that names the variable.
    pub(crate) fn from_env() -> Self {
        let (options, complaints) = Self::parse(|name| std::env::var_os(name));
        for complaint in complaints {
            log::warn!("{complaint}");
        }
        options
    }

    /// Reads any environment; also returns what was wrong with it.
    fn parse(lookup: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        let mut complaints = Vec::new();
        let mut switch =
            |name: &str| variable::switch(name, &lookup, &mut complaints).unwrap_or(false);
        let tvm_switch = |name: &str| variable::tvm_switch(name, &lookup);
        let options = Self {
            loader: lookup("DLHAL_VULKAN_LOADER").filter(|path| !path.is_empty()),
            validation: switch("DLHAL_VALIDATION")
                || tvm_switch("TVM_VULKAN_ENABLE_VALIDATION_LAYERS"),
            disable_implicit_layers: switch("DLHAL_DISABLE_IMPLICIT_LAYERS"),
            robust_buffer_access: switch("DLHAL_ROBUST_BUFFER_ACCESS"),
            force_fences: switch("DLHAL_FORCE_FENCES"),
            force_descriptor_pools: switch("DLHAL_FORCE_DESCRIPTOR_POOLS")
                || tvm_switch("TVM_VULKAN_DISABLE_PUSH_DESCRIPTOR"),
            force_reserved_addresses: switch("DLHAL_FORCE_RESERVED_ADDRESSES"),
            force_no_host_import: switch("DLHAL_FORCE_NO_HOST_IMPORT"),
            force_own_budget: switch("DLHAL_FORCE_OWN_BUDGET"),
            force_unmapped_device_memory: switch("DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY"),
            force_one_queue: switch("DLHAL_FORCE_ONE_QUEUE"),
            force_no_float_controls: switch("DLHAL_FORCE_NO_FLOAT_CONTROLS"),
            force_no_timestamps: switch("DLHAL_FORCE_NO_TIMESTAMPS"),
            force_pipelines_between_submissions: switch(
                "DLHAL_FORCE_PIPELINES_BETWEEN_SUBMISSIONS",
            ),
        };
        (options, complaints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: &[(&str, &str)]) -> (Options, Vec<String>) {
        Options::parse(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn an_empty_environment_asks_for_nothing() {
        assert_eq!(parse(&[]), (Options::default(), Vec::new()));
    }

    #[test]
    fn each_variable_sets_its_own_switch_and_no_other() {
        type Field = fn(&mut Options) -> &mut bool;
        let switches: [(&str, Field); 13] = [
            ("DLHAL_VALIDATION", |o| &mut o.validation),
            ("DLHAL_DISABLE_IMPLICIT_LAYERS", |o| &mut o.disable_implicit_layers),
            ("DLHAL_ROBUST_BUFFER_ACCESS", |o| &mut o.robust_buffer_access),
            ("DLHAL_FORCE_FENCES", |o| &mut o.force_fences),
            ("DLHAL_FORCE_DESCRIPTOR_POOLS", |o| &mut o.force_descriptor_pools),
            ("DLHAL_FORCE_RESERVED_ADDRESSES", |o| &mut o.force_reserved_addresses),
            ("DLHAL_FORCE_NO_HOST_IMPORT", |o| &mut o.force_no_host_import),
            ("DLHAL_FORCE_OWN_BUDGET", |o| &mut o.force_own_budget),
            ("DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY", |o| &mut o.force_unmapped_device_memory),
            ("DLHAL_FORCE_ONE_QUEUE", |o| &mut o.force_one_queue),
            ("DLHAL_FORCE_NO_FLOAT_CONTROLS", |o| &mut o.force_no_float_controls),
            ("DLHAL_FORCE_NO_TIMESTAMPS", |o| &mut o.force_no_timestamps),
            ("DLHAL_FORCE_PIPELINES_BETWEEN_SUBMISSIONS", |o| {
                &mut o.force_pipelines_between_submissions
            }),
        ];
        for (name, field) in switches {
            let mut expected = Options::default();
            *field(&mut expected) = true;
            assert_eq!(parse(&[(name, "1")]), (expected, Vec::new()), "{name}");
            assert_eq!(parse(&[(name, "0")]), (Options::default(), Vec::new()), "{name}");
        }
    }

    #[test]
    fn the_names_of_tvm_do_the_same() {
        for (ours, tvms) in [
            ("DLHAL_VALIDATION", "TVM_VULKAN_ENABLE_VALIDATION_LAYERS"),
            ("DLHAL_FORCE_DESCRIPTOR_POOLS", "TVM_VULKAN_DISABLE_PUSH_DESCRIPTOR"),
        ] {
            for value in ["1", "2", "-1"] {
                assert_eq!(parse(&[(tvms, value)]), parse(&[(ours, "1")]), "{tvms}={value}");
            }
            for value in ["", "0", "yes"] {
                assert_eq!(parse(&[(tvms, value)]), parse(&[]), "{tvms}={value}");
            }
        }
    }

    #[test]
    fn a_wrong_value_is_ignored_and_its_variable_is_named() {
        let (options, complaints) = parse(&[("DLHAL_FORCE_FENCES", "maybe")]);
        assert_eq!(options, Options::default());
        assert_eq!(complaints, ["DLHAL_FORCE_FENCES=maybe is ignored: use 1 or 0"]);
    }

    #[test]
    fn an_empty_loader_path_is_no_loader_path() {
        assert_eq!(parse(&[("DLHAL_VULKAN_LOADER", "")]).0.loader, None);
        let (options, _) = parse(&[("DLHAL_VULKAN_LOADER", "/opt/libvulkan.so")]);
        assert_eq!(options.loader, Some(OsString::from("/opt/libvulkan.so")));
    }
}
