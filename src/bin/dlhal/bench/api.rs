//! The library as a C program calls it, in safe clothes: every call below is one of the header's.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use dlhal::capi::*;
use dlhal::runtime::DeviceAttr;
use dlhal::{DlhalStatus, Error, Result};
use dlpark::DlpackFlags;
use dlpark::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensorVersioned, DLPackVersion,
    DLTensor,
};

const BYTE: DLDataType = DLDataType { code: DLDataTypeCode::UINT, bits: 8, lanes: 1 };
const UINT32: DLDataType = DLDataType { code: DLDataTypeCode::UINT, bits: 32, lanes: 1 };
const HANDLE: DLDataType = DLDataType { code: DLDataTypeCode::OPAQUEHANDLE, bits: 64, lanes: 1 };
const HOST: DLDevice = DLDevice { device_type: DLDeviceType::CPU, device_id: 0 };
const PAGE: usize = 4096;

/// A device.
#[derive(Clone, Copy)]
pub(super) struct Api {
    device: DLDevice,
}

/// One page of host memory.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

/// Bytes on the host or a device, with the DLTensor that describes them.
pub(super) struct Tensor {
    raw: DLTensor,
    /// What `raw.shape` points to.
    shape: Vec<i64>,
    owner: Owner,
}

enum Owner {
    /// Ordinary memory of this process.
    Pages(Vec<Page>),
    /// Memory of a device, or pinned memory, by the address that frees it.
    Device(DLDevice, *mut c_void),
}

/// A stream.
pub(super) struct Stream {
    device: DLDevice,
    raw: DlhalStream,
}

/// A module.
pub(super) struct Module(DlhalModule);

/// A function of a module.
pub(super) struct Function(DlhalFunction);

// SAFETY: the header lets threads share a function; its handle is a number.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// A prepared launch.
pub(super) struct Launch(DlhalLaunch);

/// Host memory that the device was shown, for as long as this lives.
pub(super) struct Import<'a> {
    tensor: DlhalTensor,
    device: DLDevice,
    /// The memory itself, to be copied from and to where it lies.
    pub(super) memory: &'a mut Tensor,
}

/// A kernel to make a module of: `buffers` buffers, then `numbers` 32-bit numbers.
pub(super) struct KernelSource<'a> {
    pub(super) name: &'a str,
    pub(super) spirv: &'a [u8],
    pub(super) buffers: usize,
    pub(super) numbers: usize,
}

/// Packed arguments: addresses and integers alone.
pub(super) struct Args(Vec<DlhalValue>);

impl Args {
    /// Buffers, then numbers, then the groups in x and the threads of a group.
    pub(super) fn new(buffers: &[&Tensor], numbers: &[u32], groups: u32, threads: u32) -> Self {
        let handle = |tensor: &&Tensor| DlhalValue {
            r#type: DLHAL_VALUE_HANDLE,
            reserved: 0,
            value: DlhalValuePayload { as_handle: tensor.raw.data },
        };
        let int = |number: u32| DlhalValue {
            r#type: DLHAL_VALUE_INT,
            reserved: 0,
            value: DlhalValuePayload { as_int: i64::from(number) },
        };
        let integers = numbers.iter().copied().chain([groups, threads]).map(int);
        Self(buffers.iter().map(handle).chain(integers).collect())
    }
}

impl Api {
    /// A device by its number.
    pub(super) fn open(device_id: i32) -> Result<Self> {
        let device = DLDevice { device_type: DLDeviceType::VULKAN, device_id };
        // SAFETY: no pointer is passed.
        check(unsafe { dlhal_device_sync(device) })?;
        Ok(Self { device })
    }

    /// An attribute.
    pub(super) fn text(&self, attr: DeviceAttr) -> Result<String> {
        let bytes = sized(|buffer, capacity, needed| {
            // SAFETY: the buffer has room for `capacity` bytes.
            unsafe {
                dlhal_device_get_attr_string(
                    self.device,
                    attr as i32,
                    buffer.cast(),
                    capacity,
                    needed,
                )
            }
        })?;
        Ok(CStr::from_bytes_until_nul(&bytes).unwrap_or_default().to_string_lossy().into_owned())
    }

    /// Device memory that lives until it is dropped.
    pub(super) fn tensor(&self, size: usize) -> Result<Tensor> {
        let data = self.allocate(size)?;
        Ok(Tensor::new(self.device, data, size, Owner::Device(self.device, data)))
    }

    /// Allocates device memory.
    pub(super) fn allocate(&self, size: usize) -> Result<*mut c_void> {
        let mut data = ptr::null_mut();
        // SAFETY: the pointer is that of a variable.
        check(unsafe { dlhal_alloc_data_space(self.device, size, 64, BYTE, &mut data) })?;
        Ok(data)
    }

    /// Frees device memory.
    pub(super) fn free(&self, data: *mut c_void) -> Result<()> {
        // SAFETY: an address that is not an allocation's is refused.
        check(unsafe { dlhal_free_data_space(self.device, data) })
    }

    /// Pinned memory of the library, seen from the host.
    pub(super) fn pinned(&self, size: usize) -> Result<Tensor> {
        let shape = [size as i64];
        let (mut data, mut host) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the pointers are those of variables and of a literal.
        check(unsafe {
            dlhal_alloc_data_space_with_scope(
                self.device,
                1,
                shape.as_ptr(),
                BYTE,
                c"host".as_ptr(),
                &mut data,
            )
        })?;
        let owner = Owner::Device(self.device, data);
        // SAFETY: as above.
        check(unsafe { dlhal_get_host_pointer(self.device, data, &mut host) })?;
        let mut tensor = Tensor::new(HOST, host, size, owner);
        tensor.bytes_mut().fill(1);
        Ok(tensor)
    }

    /// Shows the device ordinary host memory.
    pub(super) fn import<'a>(&self, memory: &'a mut Tensor) -> Result<Import<'a>> {
        let mut managed = DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: ptr::null_mut(),
            deleter: None,
            flags: DlpackFlags::empty(),
            dl_tensor: memory.raw,
        };
        let mut tensor = ptr::null_mut();
        // SAFETY: with no deleter the struct is not read after the call; the memory is borrowed for
        // as long as the import lives.
        check(unsafe { dlhal_dlpack_import(&mut managed, self.device, &mut tensor) })?;
        Ok(Import { tensor, device: self.device, memory })
    }

    /// A stream of its own.
    pub(super) fn stream(&self) -> Result<Stream> {
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is that of a variable.
        check(unsafe { dlhal_stream_create(self.device, &mut raw) })?;
        Ok(Stream { device: self.device, raw })
    }

    /// Gives unused memory back to the driver; how much that was.
    pub(super) fn trim(&self) -> Result<u64> {
        let mut released = 0;
        // SAFETY: the pointer is that of a variable.
        check(unsafe { dlhal_device_trim(self.device, &mut released) })?;
        Ok(released)
    }

    /// The compiled kernels.
    pub(super) fn pipeline_cache(&self) -> Result<Vec<u8>> {
        sized(|buffer, capacity, needed| {
            // SAFETY: the buffer has room for `capacity` bytes.
            unsafe { dlhal_device_get_pipeline_cache(self.device, buffer, capacity, needed) }
        })
    }

    /// Takes compiled kernels that an earlier process kept; whether they were of use.
    pub(super) fn set_pipeline_cache(&self, bytes: &[u8]) -> Result<bool> {
        let mut taken = false;
        // SAFETY: the slice is valid for the call, the pointer that of a variable.
        check(unsafe {
            dlhal_device_set_pipeline_cache(
                self.device,
                bytes.as_ptr().cast(),
                bytes.len(),
                &mut taken,
            )
        })?;
        Ok(taken)
    }

    /// The bytes of a module of these kernels, with block and thread extents in x as launch tags.
    pub(super) fn module_bytes(&self, sources: &[KernelSource<'_>]) -> Result<Vec<u8>> {
        let tags = [c"blockIdx.x".as_ptr(), c"threadIdx.x".as_ptr()];
        let types: Vec<Vec<DLDataType>> = sources
            .iter()
            .map(|source| [vec![HANDLE; source.buffers], vec![UINT32; source.numbers]].concat())
            .collect();
        let names: Vec<CString> =
            sources.iter().map(|source| name(source.name)).collect::<Result<_>>()?;
        let descs: Vec<DlhalKernelDesc> = (sources.iter().zip(&names).zip(&types))
            .map(|((source, name), types)| DlhalKernelDesc {
                struct_size: size_of::<DlhalKernelDesc>(),
                name: name.as_ptr(),
                entry_point: ptr::null(),
                code: source.spirv.as_ptr().cast(),
                code_size: source.spirv.len(),
                arg_types: types.as_ptr(),
                num_args: types.len(),
                launch_tags: tags.as_ptr(),
                num_tags: tags.len(),
            })
            .collect();
        let mut raw = ptr::null_mut();
        // SAFETY: what the descriptions point to outlives the call.
        check(unsafe { dlhal_module_create_from_spirv(descs.as_ptr(), descs.len(), &mut raw) })?;
        let module = Module(raw);
        sized(|buffer, capacity, needed| {
            // SAFETY: the buffer has room for `capacity` bytes.
            unsafe { dlhal_module_save_to_bytes(module.0, ptr::null(), buffer, capacity, needed) }
        })
    }

    /// Loads a module.
    pub(super) fn load(&self, bytes: &[u8]) -> Result<Module> {
        let mut raw = ptr::null_mut();
        // SAFETY: the slice is valid for the call, the pointer that of a variable.
        check(unsafe {
            dlhal_module_load_from_bytes(bytes.as_ptr().cast(), bytes.len(), &mut raw)
        })?;
        Ok(Module(raw))
    }

    /// Launches a function.
    #[inline]
    pub(super) fn launch(&self, function: &Function, args: &Args, stream: &Stream) -> Result<()> {
        let (args, count) = (args.0.as_ptr(), args.0.len());
        // SAFETY: the arguments are valid for the call.
        check(unsafe { dlhal_function_launch(function.0, self.device, stream.raw, args, count) })
    }

    /// Prepares a launch.
    pub(super) fn prepare(&self, function: &Function, args: &Args) -> Result<Launch> {
        let mut raw = ptr::null_mut();
        let (args, count) = (args.0.as_ptr(), args.0.len());
        // SAFETY: the arguments are valid for the call, the pointer is that of a variable.
        check(unsafe { dlhal_launch_create(function.0, self.device, args, count, &mut raw) })?;
        Ok(Launch(raw))
    }
}

impl Stream {
    /// Copies a tensor.
    pub(super) fn copy(&self, from: &Tensor, to: &mut Tensor) -> Result<()> {
        // SAFETY: both tensors are whole, and what they describe is theirs.
        check(unsafe { dlhal_copy_data_from_to(&from.raw, &mut to.raw, self.raw) })
    }

    /// Waits for all its work.
    #[inline]
    pub(super) fn sync(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        check(unsafe { dlhal_stream_sync(self.device, self.raw) })
    }

    /// Hands its work to the device.
    pub(super) fn flush(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        check(unsafe { dlhal_stream_flush(self.device, self.raw) })
    }
}

impl Module {
    /// A function of it.
    pub(super) fn function(&self, wanted: &str) -> Result<Function> {
        let mut raw = ptr::null_mut();
        let wanted = name(wanted)?;
        // SAFETY: the name is valid for the call, the pointer that of a variable.
        check(unsafe { dlhal_module_get_function(self.0, wanted.as_ptr(), &mut raw) })?;
        Ok(Function(raw))
    }
}

impl Launch {
    /// Runs it.
    #[inline]
    pub(super) fn run(&mut self, stream: &Stream) -> Result<()> {
        // SAFETY: the handles are alive.
        check(unsafe { dlhal_launch_run(self.0, stream.raw) })
    }
}

impl Tensor {
    /// Ordinary memory of the process, written once.
    pub(super) fn ordinary(size: usize) -> Self {
        let mut pages = vec![Page([1; PAGE]); size.div_ceil(PAGE)];
        let data = pages.as_mut_ptr().cast();
        Self::new(HOST, data, size, Owner::Pages(pages))
    }

    fn new(device: DLDevice, data: *mut c_void, size: usize, owner: Owner) -> Self {
        let mut shape = vec![size as i64];
        let raw = DLTensor {
            data,
            device,
            ndim: 1,
            dtype: BYTE,
            shape: shape.as_mut_ptr(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        };
        Self { raw, shape, owner }
    }

    /// All but its first bytes, of the same memory.
    pub(super) fn skip(mut self, bytes: usize) -> Self {
        self.shape[0] -= bytes as i64;
        self.raw.byte_offset += bytes as u64;
        self
    }

    /// Its bytes.
    pub(super) fn size(&self) -> usize {
        self.shape[0] as usize
    }

    /// What the host sees; empty for memory of a device.
    pub(super) fn bytes(&self) -> &[u8] {
        if self.raw.device != HOST {
            return &[];
        }
        // SAFETY: a tensor on the host has as many bytes there, all written once.
        unsafe { std::slice::from_raw_parts(self.raw.data.cast(), self.size()) }
    }

    /// As [`Self::bytes`].
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        if self.raw.device != HOST {
            return &mut [];
        }
        // SAFETY: as above, and the tensor is borrowed for as long.
        unsafe { std::slice::from_raw_parts_mut(self.raw.data.cast(), self.size()) }
    }
}

/// The last error, if `status` is one.
#[inline]
fn check(status: DlhalStatus) -> Result<()> {
    if status == DlhalStatus::Ok { Ok(()) } else { Err(last_error(status)) }
}

#[cold]
fn last_error(status: DlhalStatus) -> Error {
    // SAFETY: the text lives until this thread's next failing call.
    let message = unsafe { CStr::from_ptr(dlhal_last_error_message()) };
    Error::new(status, message.to_string_lossy())
}

fn name(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid("a name with a zero in it"))
}

/// The bytes that a call gives which first tells how many there are.
fn sized(mut call: impl FnMut(*mut c_void, usize, *mut usize) -> DlhalStatus) -> Result<Vec<u8>> {
    let mut needed = 0;
    check(call(ptr::null_mut(), 0, &mut needed))?;
    let mut bytes = vec![0u8; needed];
    check(call(bytes.as_mut_ptr().cast(), bytes.len(), &mut needed))?;
    bytes.truncate(needed);
    Ok(bytes)
}

impl Drop for Tensor {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Pages(pages) => debug_assert!(!pages.is_empty() || self.size() == 0),
            // SAFETY: the address was allocated for this tensor alone.
            &Owner::Device(device, data) => drop(unsafe { dlhal_free_data_space(device, data) }),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, and nobody else's.
        unsafe { dlhal_stream_free(self.device, self.raw) };
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { dlhal_module_free(self.0) };
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { dlhal_function_free(self.0) };
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { dlhal_launch_free(self.0) };
    }
}

impl Drop for Import<'_> {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { dlhal_tensor_free(self.tensor) };
        // SAFETY: no pointer is passed. After it the memory is its owner's again.
        unsafe { dlhal_device_sync(self.device) };
    }
}
