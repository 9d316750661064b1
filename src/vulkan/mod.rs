//! The Vulkan driver: snapshot, plan, create. Nothing outside this folder names a `vk::` type, and
//! nothing in it knows what a tensor is.

mod plan;
