//! The runtime over the null driver: order, lifetimes and failures, looked at command by command.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod copies;
mod copy_kernel;
mod failures;
mod lifetimes;
mod memory;
mod order;
mod profiler;
mod support;
mod timers;
#[path = "../common/trace.rs"]
mod trace;
