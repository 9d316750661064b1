//! What a profile calls things: commands of the device, and work of the host.

use std::sync::Arc;

/// From where to where a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
    OnDevice,
    BetweenDevices,
}

/// What a command is, as its recorder knows it. Costs nothing to make.
#[derive(Clone, Copy)]
pub(crate) enum Label<'a> {
    /// A launch of the kernel with this name.
    Kernel(&'a Arc<str>),
    /// A copy of so many bytes.
    Copy(Direction, u64),
    /// Something that a profile leaves out.
    Hidden,
}

/// What a thread of the host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostWork {
    /// A copy from its call to its return.
    Copy(Direction, u64),
    /// Moves bytes to or from device memory that the host sees.
    Mapped(Direction, u64),
    /// Moves bytes to or from staging memory.
    Staging(Direction, u64),
    /// Hands commands over to the device.
    Submit(u32),
    /// Waits for the device.
    Wait,
}

impl Direction {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ToDevice => "copy to device",
            Self::ToHost => "copy to host",
            Self::OnDevice => "copy on device",
            Self::BetweenDevices => "copy between devices",
        }
    }
}

impl HostWork {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Copy(direction, _) => direction.name(),
            Self::Mapped(Direction::ToHost, _) => "read mapped memory",
            Self::Mapped(..) => "write mapped memory",
            Self::Staging(Direction::ToHost, _) => "empty staging memory",
            Self::Staging(..) => "fill staging memory",
            Self::Submit(_) => "submit",
            Self::Wait => "wait for the device",
        }
    }
}
