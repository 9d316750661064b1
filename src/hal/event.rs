//! Events: points inside the command buffers of one queue that later commands can wait for, so that
//! unrelated work between signal and wait overlaps (a barrier in two halves).

use std::any::Any;

/// An event. Created unsignalled.
pub trait Event: Send + Sync + 'static {
    /// For the driver to find its own type again.
    fn as_any(&self) -> &dyn Any;
}
