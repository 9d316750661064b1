//! Workspaces: temporary memory that one thread takes and gives back in stack order again and
//! again. Each thread keeps what it gave back, so that its kernels do not wait for other threads'.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::device::Device;
use super::thread;
use crate::hal::MemoryKind;
use crate::{Error, Result};

/// Sizes are rounded up to this, so that patterns that vary a little still meet their workspaces.
const GRANULE: u64 = 4096;

/// One thread's workspaces on one device.
#[derive(Default)]
pub(crate) struct Workspaces {
    /// Those given back, the latest last.
    idle: Mutex<Vec<Workspace>>,
}

#[derive(Clone, Copy)]
struct Workspace {
    address: u64,
    size: u64,
}

/// Workspaces in use on a device, with the threads to whom they go back.
#[derive(Default)]
pub(crate) struct InUse {
    taken: Mutex<HashMap<u64, (Workspace, Arc<Workspaces>)>>,
}

/// Takes at least `size` bytes from the calling thread's workspaces; the address of the first.
pub fn allocate(device: &Arc<Device>, size: u64) -> Result<u64> {
    let own = thread::workspaces(device)?;
    let rounded = size.max(1).checked_next_multiple_of(GRANULE).ok_or_else(|| {
        Error::out_of_memory(format!("a workspace of {size} bytes is more than addresses count"))
    })?;
    let workspace = match own.take(rounded) {
        Some(workspace) => workspace,
        None => Workspace {
            address: device.allocate(rounded, GRANULE, MemoryKind::Device)?,
            size: rounded,
        },
    };
    device.workspaces_in_use().taken.lock().insert(workspace.address, (workspace, own));
    Ok(workspace.address)
}

/// Gives a workspace back, from any thread, to the thread that took it.
pub fn free(device: &Arc<Device>, address: u64) -> Result<()> {
    let taken = device.workspaces_in_use().taken.lock().remove(&address);
    let (workspace, owner) = taken.ok_or_else(|| {
        Error::not_found(format!(
            "address {address:#x} is no workspace in use on device {}: it was given back already, \
             or allocated otherwise",
            device.id()
        ))
    })?;
    owner.idle.lock().push(workspace);
    Ok(())
}

impl Workspaces {
    /// The smallest one that holds `size` and is not more than twice as large; of equals the latest.
    fn take(&self, size: u64) -> Option<Workspace> {
        let mut idle = self.idle.lock();
        let fits = |w: &Workspace| w.size >= size && w.size <= size.saturating_mul(2);
        let candidates = idle.iter().enumerate().rev().filter(|(_, w)| fits(w));
        let (best, _) = candidates.min_by_key(|(_, w)| w.size)?;
        Some(idle.remove(best))
    }

    /// Frees those that are not in use.
    pub(crate) fn trim(&self, device: &Arc<Device>) -> Result<()> {
        let idle = std::mem::take(&mut *self.idle.lock());
        idle.iter().try_for_each(|workspace| device.free(workspace.address))
    }
}
