//! Who owns an allocation beside the call that made it: exported tensors, and foreign tensors whose
//! host memory the device uses in place.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use super::device::Device;
use super::memory::Import;
use super::tensor::TensorView;
use crate::{Error, Result};

/// A share in an allocation, given up when dropped, on any thread. It keeps the device alive.
pub struct Share {
    device: Arc<Device>,
    address: u64,
}

impl Share {
    /// One more share in the allocation that holds `address`.
    pub fn of(device: &Arc<Device>, address: u64) -> Result<Self> {
        let start = device.memory().share(address)?;
        Ok(Self { device: device.clone(), address: start })
    }

    /// One more share in the allocation that holds all of a tensor on `device`, and whether it was
    /// imported read-only.
    pub fn of_range(device: &Arc<Device>, view: &TensorView<'_>) -> Result<(Self, bool)> {
        let address = view.address();
        let read_only = {
            let allocation = device.memory().find(address)?.lock();
            let live = allocation.live_at(address)?;
            let (first, end) = view.span();
            let fits =
                address.checked_add_signed(first).zip(address.checked_add_signed(end)).is_some_and(
                    |(first, end)| first >= live.address && end - live.address <= live.size,
                );
            if !fits {
                return Err(Error::invalid(format!(
                    "the tensor at {address:#x} spans bytes {first} to {end}, which leave its \
                     allocation of {} bytes at {:#x}",
                    live.size, live.address
                )));
            }
            live.read_only
        };
        Ok((Self::of(device, address)?, read_only))
    }

    /// Takes over the ownership that a fresh allocation gave its caller.
    pub fn from_allocation(device: &Arc<Device>, address: u64) -> Self {
        Self { device: device.clone(), address }
    }

    /// Drops `owner` once the allocation is freed and its last use on the device is over.
    pub fn keep(&self, owner: Box<dyn Any + Send>) -> Result<()> {
        self.device.memory().find(self.address)?.lock().live_at_mut(self.address)?.owner =
            Some(owner);
        Ok(())
    }

    /// Drops `owner` once the uses that the allocation has now are over.
    pub fn drop_after_uses(&self, owner: Box<dyn Any + Send>) {
        self.device.drop_after_uses(self.address, owner);
    }

    /// The device that the memory is on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Where the allocation starts.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // It fails only where the user freed the address once too often, and there is nobody to
        // tell; nothing is freed twice.
        if let Err(error) = self.device.free(self.address) {
            log::warn!("giving up a share in an allocation: {error}");
        }
    }
}

/// Makes `size` bytes of host memory at `host` an allocation of the device, without a copy. The
/// pages around it are made known to the driver as a whole, whatever the range's alignment.
///
/// # Safety
/// The memory must stay mapped, readable and, unless `read_only`, writable until the allocation is
/// freed and its last use on the device is over: until what [`Share::keep`] is given is dropped.
pub unsafe fn import_host_memory(
    device: &Arc<Device>,
    host: NonNull<u8>,
    size: u64,
    read_only: bool,
) -> Result<Share> {
    device.check_health()?;
    let alignment = device.properties().host_import_alignment.ok_or_else(|| {
        Error::unsupported(
            "this device cannot use the host's memory in place; allocate on the device and copy",
        )
    })?;
    let start = host.as_ptr() as u64;
    let first = start - start % alignment;
    let end =
        start.checked_add(size.max(1)).and_then(|end| end.checked_next_multiple_of(alignment));
    let end = end.ok_or_else(|| {
        Error::invalid(format!("{size} bytes at {start:#x} reach past the last address"))
    })?;
    let page = NonNull::new(first as *mut u8)
        .ok_or_else(|| Error::invalid(format!("host memory at {start:#x}, in the first page")))?;
    // SAFETY: memory is mapped by pages, of which `alignment` is one or a part, so the rest of the
    // first and last page is mapped as long as the caller's range is.
    let buffer = unsafe { device.hal().import_host_memory(page, end - first) }?;
    let import = Import { buffer, offset: start - first, size, read_only };
    Ok(Share { device: device.clone(), address: device.adopt(import)? })
}
