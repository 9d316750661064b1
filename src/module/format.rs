//! Which layout a module is written in, and where a loaded module came from.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// A layout of TVM's module files. Each name is the first release that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FormatVersion {
    /// 0.6.1: `thread_axis_tags` in the meta file; otherwise as 0.8.
    V0_6_1,
    /// 0.8 to 0.20: `launch_param_tags`.
    V0_8,
    /// 0.21 to 0.23: argument extra tags follow the launch tags.
    V0_21,
    /// 0.24 to 0.27: each shader is wrapped in a byte string; no file form.
    V0_24,
}

impl FormatVersion {
    /// All layouts, oldest first.
    pub const ALL: [Self; 4] = [Self::V0_6_1, Self::V0_8, Self::V0_21, Self::V0_24];

    /// What a module that was not read from a TVM file is saved as.
    pub const NEWEST: Self = Self::V0_24;

    /// Whether the layout has argument extra tags.
    pub fn has_extra_tags(self) -> bool {
        self >= Self::V0_21
    }

    /// Whether each shader is wrapped in a byte string.
    pub fn wraps_shaders(self) -> bool {
        self >= Self::V0_24
    }

    /// Whether the layout has a file form with a meta file beside it.
    pub fn has_file_form(self) -> bool {
        self < Self::V0_24
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V0_6_1 => "0.6.1",
            Self::V0_8 => "0.8",
            Self::V0_21 => "0.21",
            Self::V0_24 => "0.24",
        })
    }
}

impl FromStr for FormatVersion {
    type Err = Error;

    /// Reads a TVM release number, `0.6.1` to `0.27`, and gives the layout that release wrote.
    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            Error::invalid(format!(
                "`{text}` is not a TVM release from 0.6 to 0.27, such as `0.24`"
            ))
        };
        let minor =
            text.strip_prefix("0.").and_then(|t| t.split('.').next()).ok_or_else(unknown)?;
        match minor.parse::<u32>().map_err(|_| unknown())? {
            6 | 7 => Ok(Self::V0_6_1),
            8..=20 => Ok(Self::V0_8),
            21..=23 => Ok(Self::V0_21),
            24..=27 => Ok(Self::V0_24),
            _ => Err(unknown()),
        }
    }
}

/// Which of TVM's module kinds this is: what runtime it was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `vulkan`: the file holds SPIR-V.
    Vulkan,
    /// `webgpu`: the file holds WGSL, translated to SPIR-V when it is loaded.
    WebGpu,
}

impl Kind {
    /// TVM's name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vulkan => "vulkan",
            Self::WebGpu => "webgpu",
        }
    }
}

/// What a module was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// TVM's bytes form (`SaveToBytes`).
    Bytes(FormatVersion),
    /// TVM's file form with its meta file.
    File(FormatVersion),
    /// Bare SPIR-V with signatures from the caller.
    Spirv,
    /// WGSL source.
    Wgsl,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(version) => write!(f, "bytes form of TVM {version}"),
            Self::File(version) => write!(f, "file form of TVM {version}"),
            Self::Spirv => f.write_str("bare SPIR-V"),
            Self::Wgsl => f.write_str("WGSL source"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_number_names_the_layout_it_wrote() {
        for (release, layout) in [
            ("0.6.1", FormatVersion::V0_6_1),
            ("0.8", FormatVersion::V0_8),
            ("0.20.0", FormatVersion::V0_8),
            ("0.22", FormatVersion::V0_21),
            ("0.27.dev", FormatVersion::V0_24),
        ] {
            assert_eq!(release.parse::<FormatVersion>().unwrap(), layout);
        }
        for wrong in ["", "1.0", "0.", "0.5", "0.28", "0.x", "24"] {
            assert!(wrong.parse::<FormatVersion>().unwrap_err().message().contains(wrong));
        }
    }
}
