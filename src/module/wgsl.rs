//! Modules from WGSL source, by way of naga where the feature `wgsl` is on.

#[cfg(feature = "wgsl")]
#[path = "wgsl_naga.rs"]
mod imp;

#[cfg(not(feature = "wgsl"))]
mod imp {
    use super::super::Module;
    use crate::{Error, Result};

    pub(in super::super) fn read(_source: &str) -> Result<Module> {
        Err(unsupported())
    }

    pub(in super::super) fn translate_entry(_source: &str, _name: &str) -> Result<Vec<u32>> {
        Err(unsupported())
    }

    fn unsupported() -> Error {
        Error::unsupported(
            "this build cannot translate WGSL; rebuild with the feature `wgsl`, or use a module \
             for Vulkan",
        )
    }
}

pub(super) use imp::{read, translate_entry};
