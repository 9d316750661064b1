//! How a kernel is called: its argument types and launch tags, as TVM's `FunctionInfo` has them.

use std::fmt;

use super::dtype::DataType;

/// A kernel's calling convention, as written in a file or given by the caller.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Signature {
    /// The function's name, which is also its entry point's name in the shader.
    pub name: String,
    /// The arguments in order. A `handle` is a buffer, all else a scalar.
    pub arg_types: Vec<DataType>,
    /// The launch tags in order, spelled as in the file. [`LaunchTag::parse`] reads one.
    pub launch_tags: Vec<String>,
    /// One number per argument, from TVM 0.21 on; all others have none.
    pub extra_tags: Vec<i32>,
}

/// What one launch tag asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchTag {
    /// `blockIdx.x`, `.y`, `.z` (0, 1, 2): the launch argument is the grid's extent on that axis.
    BlockIdx(usize),
    /// `threadIdx.x`, `.y`, `.z`: the launch argument must equal the local size on that axis.
    ThreadIdx(usize),
    /// The launch argument is the size of dynamic workgroup memory in bytes.
    DynSharedMemory,
    /// `paramWriteAccess:[…]`: whether each buffer is written. No launch argument.
    ParamWriteAccess(Vec<bool>),
    /// A hint that changes nothing here. No launch argument.
    Hint,
    /// A tag this library does not know: the kernel cannot be launched, since what the tag
    /// demands is unknown.
    Unknown(String),
}

impl LaunchTag {
    /// Reads one tag.
    pub fn parse(tag: &str) -> Self {
        let axis = |name: &str| match name {
            "x" => Some(0),
            "y" => Some(1),
            "z" => Some(2),
            _ => None,
        };
        if let Some(axis) = tag.strip_prefix("blockIdx.").and_then(axis) {
            return Self::BlockIdx(axis);
        }
        if let Some(axis) = tag.strip_prefix("threadIdx.").and_then(axis) {
            return Self::ThreadIdx(axis);
        }
        // The passes' name space was renamed from `tir` to `tirx`; the spelling of the second
        // name is TVM's.
        match tag.strip_prefix("tir.").or_else(|| tag.strip_prefix("tirx.")) {
            Some("use_dyn_shared_memory") => return Self::DynSharedMemory,
            Some("use_programtic_dependent_launch") => return Self::Hint,
            _ => {}
        }
        match tag.strip_prefix("paramWriteAccess:").and_then(write_access) {
            Some(flags) => Self::ParamWriteAccess(flags),
            None => Self::Unknown(tag.to_owned()),
        }
    }

    /// Whether a launch argument belongs to the tag.
    pub fn takes_argument(&self) -> bool {
        matches!(self, Self::BlockIdx(_) | Self::ThreadIdx(_) | Self::DynSharedMemory)
    }
}

impl fmt::Display for LaunchTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AXES: [char; 3] = ['x', 'y', 'z'];
        match self {
            Self::BlockIdx(axis) => write!(f, "blockIdx.{}", AXES[axis % 3]),
            Self::ThreadIdx(axis) => write!(f, "threadIdx.{}", AXES[axis % 3]),
            Self::DynSharedMemory => f.write_str("dynamic shared memory"),
            Self::ParamWriteAccess(flags) => {
                f.write_str("paramWriteAccess:[")?;
                for (i, written) in flags.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { "," }, u8::from(*written))?;
                }
                f.write_str("]")
            }
            Self::Hint => f.write_str("hint"),
            Self::Unknown(tag) => f.write_str(tag),
        }
    }
}

/// `[1,0,0]`: one digit per buffer.
fn write_access(list: &str) -> Option<Vec<bool>> {
    let inner = list.strip_prefix('[')?.strip_suffix(']')?;
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    inner
        .split(',')
        .map(|flag| match flag.trim() {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_in_both_name_spaces() {
        assert_eq!(LaunchTag::parse("blockIdx.z"), LaunchTag::BlockIdx(2));
        assert_eq!(LaunchTag::parse("threadIdx.y"), LaunchTag::ThreadIdx(1));
        assert_eq!(LaunchTag::parse("tir.use_dyn_shared_memory"), LaunchTag::DynSharedMemory);
        assert_eq!(LaunchTag::parse("tirx.use_dyn_shared_memory"), LaunchTag::DynSharedMemory);
        assert_eq!(
            LaunchTag::parse("paramWriteAccess:[1,0,1]"),
            LaunchTag::ParamWriteAccess(vec![true, false, true])
        );
        assert_eq!(LaunchTag::parse("paramWriteAccess:[]"), LaunchTag::ParamWriteAccess(vec![]));
    }

    #[test]
    fn only_extents_and_dynamic_memory_take_a_launch_argument() {
        let takes = |tag| LaunchTag::parse(tag).takes_argument();
        assert!(takes("blockIdx.x") && takes("threadIdx.x") && takes("tir.use_dyn_shared_memory"));
        assert!(!takes("paramWriteAccess:[1]"));
        assert!(!takes("tir.use_programtic_dependent_launch"));
    }

    #[test]
    fn an_unknown_tag_is_kept_as_it_is() {
        for tag in ["", "blockIdx.w", "vthread", "paramWriteAccess:[2]", "paramWriteAccess:1"] {
            assert_eq!(LaunchTag::parse(tag), LaunchTag::Unknown(tag.to_owned()));
        }
    }
}
