//! The TVM-shaped device API: devices, memory, streams, copies, modules and launches.

mod append_only;
mod memory;
mod timeline;
mod usage;
