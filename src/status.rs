//! What can go wrong: one status code for the caller's next step, one message for the person.

use std::ffi::CStr;
use std::fmt;

/// What a call that can fail returns; 0 is success. The numbers are stable.
///
/// The code says what the caller can do; `dlhal_last_error_message()` says what happened.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DlhalStatus {
    /// The call did what it says.
    Ok = 0,
    /// An argument is wrong in itself: null, out of range, overflowing. Correct it and call again.
    InvalidArgument = 1,
    /// The named device, function, file or handle does not exist (any more).
    NotFound = 2,
    /// The request makes sense, but this device, driver or build cannot do it.
    Unsupported = 3,
    /// Host or device memory is exhausted, after cached memory was given back. Free some, retry.
    OutOfMemory = 4,
    /// The device stopped working. Everything on it is lost; `dlhal_shutdown()`, then start anew.
    DeviceLost = 5,
    /// The deadline passed before the awaited point was reached. The work goes on; wait again.
    DeadlineExceeded = 6,
    /// The awaited work was given up because something before it failed.
    Aborted = 7,
    /// The call is not legal in the present state (after a fork, after shutdown, wrong device).
    FailedPrecondition = 8,
    /// A file or byte string is corrupt, truncated, or not of a known format.
    DataLoss = 9,
    /// The operating system refused to read or write.
    Io = 10,
    /// No loader, no driver or no usable device. `dlhal_diagnose()` says which.
    Unavailable = 11,
    /// A fault of this library. Please report the message.
    Internal = 12,
}

impl DlhalStatus {
    /// All statuses, in the order of their numbers.
    /// cbindgen:ignore
    pub const ALL: [Self; 13] = [
        Self::Ok,
        Self::InvalidArgument,
        Self::NotFound,
        Self::Unsupported,
        Self::OutOfMemory,
        Self::DeviceLost,
        Self::DeadlineExceeded,
        Self::Aborted,
        Self::FailedPrecondition,
        Self::DataLoss,
        Self::Io,
        Self::Unavailable,
        Self::Internal,
    ];

    /// The status's name in words.
    pub fn name(self) -> &'static str {
        self.c_name().to_str().unwrap_or_default()
    }

    /// [`Self::name`] as C takes it.
    pub fn c_name(self) -> &'static CStr {
        match self {
            Self::Ok => c"ok",
            Self::InvalidArgument => c"invalid argument",
            Self::NotFound => c"not found",
            Self::Unsupported => c"unsupported",
            Self::OutOfMemory => c"out of memory",
            Self::DeviceLost => c"device lost",
            Self::DeadlineExceeded => c"deadline exceeded",
            Self::Aborted => c"aborted",
            Self::FailedPrecondition => c"failed precondition",
            Self::DataLoss => c"data loss",
            Self::Io => c"I/O error",
            Self::Unavailable => c"unavailable",
            Self::Internal => c"internal error",
        }
    }
}

/// A failure: its status and a sentence that names the offending value and the limit it broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: DlhalStatus,
    message: String,
}

impl Error {
    /// `status` with `message`. The constructors below read better at the place of failure.
    pub fn new(status: DlhalStatus, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// The code.
    pub fn status(&self) -> DlhalStatus {
        self.status
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Puts `what: ` before the message, for example the kernel's name before a limit it broke.
    pub fn within(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $status:ident,)*) => {
        impl Error {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self {
                Self::new(DlhalStatus::$status, message)
            })*
        }
    };
}

constructors! {
    /// See [`DlhalStatus::InvalidArgument`].
    invalid => InvalidArgument,
    /// See [`DlhalStatus::NotFound`].
    not_found => NotFound,
    /// See [`DlhalStatus::Unsupported`].
    unsupported => Unsupported,
    /// See [`DlhalStatus::OutOfMemory`].
    out_of_memory => OutOfMemory,
    /// See [`DlhalStatus::DeviceLost`].
    device_lost => DeviceLost,
    /// See [`DlhalStatus::DeadlineExceeded`].
    deadline => DeadlineExceeded,
    /// See [`DlhalStatus::Aborted`].
    aborted => Aborted,
    /// See [`DlhalStatus::FailedPrecondition`].
    precondition => FailedPrecondition,
    /// See [`DlhalStatus::DataLoss`].
    data_loss => DataLoss,
    /// See [`DlhalStatus::Io`].
    io => Io,
    /// See [`DlhalStatus::Unavailable`].
    unavailable => Unavailable,
    /// See [`DlhalStatus::Internal`].
    internal => Internal,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status.name(), self.message)
    }
}

impl std::error::Error for Error {}

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_statuses_is_in_the_order_of_their_numbers() {
        for (number, status) in DlhalStatus::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, number);
        }
        assert_eq!(Error::io("disk full").to_string(), "I/O error: disk full");
    }
}
