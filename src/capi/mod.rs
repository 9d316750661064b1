//! The C boundary: `extern "C"` functions and nothing else that C can see.
//!
//! An entry point checks its arguments, calls one thing of [`crate::runtime`] below it and hands
//! the outcome back; it decides nothing. This is the only place where raw pointers from outside
//! are touched. The contract that makes it sound is the header's: a pointer that is not null is
//! valid for what the function's documentation says, for the length of the call. Null, misaligned
//! and overlong arguments are found out ([`args`]), stale and foreign handles too ([`handles`]).
//!
//! `include/dlhal/dlhal.h` is generated from the types and functions here; `tests/header.rs`
//! compares it.

#![allow(clippy::missing_safety_doc, reason = "the header's prose is each function's contract")]

mod api;
mod args;
mod boundary;
mod device;
mod dlpack;
mod dltensor;
mod export;
mod function;
mod handles;
mod import;
mod last_error;
mod library;
mod log;
mod memory;
mod module;
mod objects;
mod output;
mod profiler;
mod stream;
mod timer;
mod types;
mod values;

pub use api::*;
#[doc(hidden)]
pub use boundary::panic_in_next_call;
pub use device::*;
pub use dlpack::*;
pub use function::*;
pub use library::*;
pub use memory::*;
pub use module::*;
pub use profiler::*;
pub use stream::*;
pub use timer::*;
pub use types::*;
