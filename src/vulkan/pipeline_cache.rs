//! The pipeline cache, and the bytes in which it leaves the process.
//!
//! Drivers are known to crash on cache data that is not exactly theirs, so the bytes are wrapped
//! and nothing reaches the driver that does not check. All numbers are little-endian:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `DLHALPC1` |
//! | 8 | 16 | the device's UUID |
//! | 24 | 4 | the driver's version |
//! | 28 | 4 | zero |
//! | 32 | 8 | bytes of the payload |
//! | 40 | 8 | FNV-1a of the payload |
//! | 48 | | the payload: `vkGetPipelineCacheData`, whose own header names vendor, device and cache UUID |

use std::sync::Arc;

use ash::vk;
use parking_lot::RwLock;

use super::error;
use super::raw_device::RawDevice;
use crate::hal::DeviceProperties;
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"DLHALPC1";
const HEADER_BYTES: usize = 48;
/// `VkPipelineCacheHeaderVersionOne`: length, version, vendor, device, cache UUID.
const DRIVER_HEADER_BYTES: usize = 32;

/// The device's pipeline cache.
pub(super) struct PipelineCache {
    raw: Arc<RawDevice>,
    /// Locked for writing to merge, which the specification wants alone.
    vk: RwLock<vk::PipelineCache>,
    uuid: [u8; 16],
    driver_version: u32,
}

/// A cache that is merged into another and goes.
struct Loaded<'a> {
    raw: &'a RawDevice,
    vk: vk::PipelineCache,
}

impl PipelineCache {
    pub(super) fn create(raw: &Arc<RawDevice>, properties: &DeviceProperties) -> Result<Self> {
        Ok(Self {
            raw: raw.clone(),
            vk: RwLock::new(create(raw, &[])?),
            uuid: properties.uuid,
            driver_version: properties.driver_version,
        })
    }

    pub(super) fn create_pipeline(
        &self,
        raw: &RawDevice,
        info: &vk::ComputePipelineCreateInfo<'_>,
    ) -> Result<vk::Pipeline> {
        let cache = self.vk.read();
        // SAFETY: VUID-vkCreateComputePipelines-pipelineCache-parent: of the same device; the
        // infos' module, layout and names live during the call.
        let created =
            unsafe { raw.vk.create_compute_pipelines(*cache, std::slice::from_ref(info), None) };
        match created {
            Ok(pipelines) => Ok(pipelines.first().copied().unwrap_or_default()),
            Err((pipelines, result)) => {
                for pipeline in pipelines {
                    // SAFETY: VUID-vkDestroyPipeline-pipeline-parameter: null or a pipeline that
                    // was made in spite of the result, and that nobody has.
                    unsafe { raw.vk.destroy_pipeline(pipeline, None) };
                }
                Err(error::pipeline("vkCreateComputePipelines", result))
            }
        }
    }

    /// The cache as bytes, in the format above.
    pub(super) fn bytes(&self) -> Result<Vec<u8>> {
        let payload = self.data()?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.uuid);
        bytes.extend_from_slice(&self.driver_version.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&checksum(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        Ok(bytes)
    }

    /// Adds bytes that [`Self::bytes`] gave on the same device and driver; says whether they were.
    pub(super) fn merge(&self, bytes: &[u8]) -> Result<bool> {
        let Some(payload) = self.payload(bytes) else { return Ok(false) };
        // The driver's own header says what `VkPhysicalDeviceProperties` would: it must be the one
        // that this driver writes.
        let own = self.data()?;
        let same = payload.len() >= DRIVER_HEADER_BYTES
            && own.get(..DRIVER_HEADER_BYTES) == payload.get(..DRIVER_HEADER_BYTES);
        if !same {
            return Ok(false);
        }
        let loaded = Loaded { raw: &self.raw, vk: create(&self.raw, payload)? };
        let cache = self.vk.write();
        // SAFETY: VUID-vkMergePipelineCaches-dstCache-00770: another cache than the source, held
        // alone by the lock.
        unsafe { self.raw.vk.merge_pipeline_caches(*cache, &[loaded.vk]) }
            .map_err(|result| error::memory("vkMergePipelineCaches", result))?;
        Ok(true)
    }

    fn data(&self) -> Result<Vec<u8>> {
        let cache = self.vk.read();
        // SAFETY: VUID-vkGetPipelineCacheData-pipelineCache-parent: of the same device.
        unsafe { self.raw.vk.get_pipeline_cache_data(*cache) }
            .map_err(|result| error::memory("vkGetPipelineCacheData", result))
    }

    fn payload<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (header, payload) = bytes.split_at_checked(HEADER_BYTES)?;
        let number = |at: usize| {
            header.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes)
        };
        let known = header.get(..8)? == MAGIC
            && header.get(8..24)? == self.uuid
            && header.get(24..28)? == self.driver_version.to_le_bytes()
            && number(32)? == payload.len() as u64
            && number(40)? == checksum(payload);
        known.then_some(payload)
    }
}

impl Drop for PipelineCache {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyPipelineCache-pipelineCache-parent: nobody creates pipelines with
        // it any more.
        unsafe { self.raw.vk.destroy_pipeline_cache(*self.vk.get_mut(), None) };
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyPipelineCache-pipelineCache-parent: it was only merged from.
        unsafe { self.raw.vk.destroy_pipeline_cache(self.vk, None) };
    }
}

fn create(raw: &RawDevice, data: &[u8]) -> Result<vk::PipelineCache> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
    // SAFETY: VUID-VkPipelineCacheCreateInfo-initialDataSize-00769: the data was got from this
    // driver (`payload`'s checks), or is empty.
    unsafe { raw.vk.create_pipeline_cache(&info, None) }
        .map_err(|result| error::memory("vkCreatePipelineCache", result))
        .map_err(|error: Error| error.within("pipeline cache"))
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
