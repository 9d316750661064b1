//! The types that the header declares.

use std::ffi::{c_char, c_void};

use dlpark::ffi::DLDataType;

use crate::runtime::{AddressInfo, MemoryStatistics};

/// Version of the function table and of the binary interface. It changes only when a program built
/// against an older header would break.
pub const DLHAL_ABI_VERSION: u32 = 1;

/// A `DlhalStatus` as C passes it: any number.
pub type StatusNumber = i32;

/// A `DlhalDeviceAttr` as C passes it: any number.
pub type DeviceAttrNumber = i32;

/// How much the log tells.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DlhalLogLevel {
    /// Nothing.
    Off = 0,
    /// Failures that no status reports.
    Error = 1,
    /// What works, but not as one might think: a software device, a driver known to be faulty.
    Warn = 2,
    /// What was chosen: devices, fallbacks.
    Info = 3,
    /// Everything.
    Debug = 4,
}

/// A `DlhalLogLevel` as C passes it: any number.
pub type LogLevelNumber = i32;

/// Receives one line of the log, without a line end. It may be called from any thread, also from
/// several at once, and may call this library. `message` lives until it returns.
pub type DlhalLogCallback = Option<
    unsafe extern "C" fn(context: *mut c_void, level: LogLevelNumber, message: *const c_char),
>;

/// DlhalValue::type: nothing: the answer is not known.
pub const DLHAL_VALUE_NONE: i32 = 0;
/// DlhalValue::type: `value.as_int`, 0 or 1.
pub const DLHAL_VALUE_BOOL: i32 = 1;
/// DlhalValue::type: `value.as_int`.
pub const DLHAL_VALUE_INT: i32 = 2;
/// DlhalValue::type: `value.as_uint`.
pub const DLHAL_VALUE_UINT: i32 = 3;
/// DlhalValue::type: `value.as_float`.
pub const DLHAL_VALUE_FLOAT: i32 = 4;
/// DlhalValue::type: the 16 bits of an IEEE half-precision number in `value.as_uint`.
pub const DLHAL_VALUE_FLOAT16: i32 = 5;
/// DlhalValue::type: `value.as_handle`: an address in the device's memory.
pub const DLHAL_VALUE_HANDLE: i32 = 6;
/// DlhalValue::type: `value.as_handle`: a `const DLTensor *`; the argument is the address `data + byte_offset`.
pub const DLHAL_VALUE_TENSOR: i32 = 7;

/// A number, an address or a tensor, with its type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DlhalValue {
    /// One of DLHAL_VALUE_NONE to DLHAL_VALUE_TENSOR.
    pub r#type: i32,
    /// 0.
    pub reserved: u32,
    /// The member that `type` names.
    pub value: DlhalValuePayload,
}

/// What a `DlhalValue` holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub union DlhalValuePayload {
    /// For `DLHAL_VALUE_BOOL` and `DLHAL_VALUE_INT`.
    pub as_int: i64,
    /// For `DLHAL_VALUE_UINT` and `DLHAL_VALUE_FLOAT16`.
    pub as_uint: u64,
    /// For `DLHAL_VALUE_FLOAT`.
    pub as_float: f64,
    /// For `DLHAL_VALUE_HANDLE` and `DLHAL_VALUE_TENSOR`.
    pub as_handle: *mut c_void,
}

/// Memory of a device, in bytes. Set `struct_size` to sizeof before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlhalMemoryStatistics {
    /// In: sizeof(DlhalMemoryStatistics). Out: how much of it was filled.
    pub struct_size: usize,
    /// Bytes of live allocations, as they were asked for.
    pub live_bytes: u64,
    /// Live allocations.
    pub live_allocations: u64,
    /// The most `live_bytes` there has been.
    pub peak_bytes: u64,
    /// Bytes held of the driver, for allocations, caches and staging.
    pub reserved_bytes: u64,
    /// Memory objects held of the driver.
    pub memory_objects: u64,
    /// Bytes of `reserved_bytes` that no allocation uses; `dlhal_device_trim` gives them back.
    pub cached_bytes: u64,
    /// Bytes of `reserved_bytes` that stage copies between host and device.
    pub staging_bytes: u64,
}

/// Where an address lies. Set `struct_size` to sizeof before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlhalAddressInfo {
    /// In: sizeof(DlhalAddressInfo). Out: how much of it was filled.
    pub struct_size: usize,
    /// The address of the allocation's first byte.
    pub allocation_base: u64,
    /// Bytes of the allocation.
    pub allocation_size: u64,
    /// Bytes from the allocation's first byte to the address.
    pub offset: u64,
    /// The driver's buffer (VkBuffer) that holds the allocation.
    pub native_buffer: u64,
    /// Bytes from the start of that buffer to the address.
    pub native_offset: u64,
}

/// A kernel to make a module of. Set `struct_size` to sizeof before the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DlhalKernelDesc {
    /// sizeof(DlhalKernelDesc).
    pub struct_size: usize,
    /// The function's name in the module.
    pub name: *const c_char,
    /// The SPIR-V entry point; null for the one called `name`, or the only one.
    pub entry_point: *const c_char,
    /// The SPIR-V; need not be aligned.
    pub code: *const c_void,
    /// Bytes of `code`.
    pub code_size: usize,
    /// Types of the arguments: `kDLOpaqueHandle` for a buffer, else a scalar.
    pub arg_types: *const DLDataType,
    /// Arguments.
    pub num_args: usize,
    /// Launch tags, for example `blockIdx.x`; a launch takes one extent per tag.
    pub launch_tags: *const *const c_char,
    /// Launch tags.
    pub num_tags: usize,
}

/// What a function takes. Set `struct_size` to sizeof before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlhalFunctionInfo {
    /// In: sizeof(DlhalFunctionInfo). Out: how much of it was filled.
    pub struct_size: usize,
    /// Arguments, launch extents not counted.
    pub num_args: usize,
    /// Launch tags.
    pub num_tags: usize,
    /// Values that a launch takes: arguments, then launch extents.
    pub num_launch_args: usize,
    /// Threads of a workgroup in x, y and z.
    pub local_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_memory_bytes: u32,
    /// Bytes of the scalar arguments as the kernel reads them.
    pub scalar_bytes: u32,
    /// 1 if the scalars are in a uniform buffer, 0 if they are push constants.
    pub scalars_in_uniform_buffer: u32,
}

impl From<MemoryStatistics> for DlhalMemoryStatistics {
    fn from(statistics: MemoryStatistics) -> Self {
        Self {
            struct_size: 0,
            live_bytes: statistics.live_bytes,
            live_allocations: statistics.live_allocations,
            peak_bytes: statistics.peak_bytes,
            reserved_bytes: statistics.reserved_bytes,
            memory_objects: statistics.memory_objects,
            cached_bytes: statistics.unused_bytes,
            staging_bytes: statistics.staging_bytes,
        }
    }
}

impl From<AddressInfo> for DlhalAddressInfo {
    fn from(info: AddressInfo) -> Self {
        Self {
            struct_size: 0,
            allocation_base: info.allocation_base,
            allocation_size: info.allocation_size,
            offset: info.offset,
            native_buffer: info.native_buffer,
            native_offset: info.native_offset,
        }
    }
}

macro_rules! versioned {
    ($($name:ident)*) => {
        $(impl super::args::Versioned for $name {
            fn set_struct_size(&mut self, size: usize) {
                self.struct_size = size;
            }
        })*
    };
}

versioned!(DlhalMemoryStatistics DlhalAddressInfo DlhalFunctionInfo);

/// A queue of work in order.
pub struct DlhalStreamHandle(());
/// A stream. Null is the calling thread's own default stream, or the one that it has set.
pub type DlhalStream = *mut DlhalStreamHandle;

/// A point in a stream's work.
pub struct DlhalEventHandle(());
/// An event.
pub type DlhalEvent = *mut DlhalEventHandle;

/// Measures the time that a stretch of a stream's work takes.
pub struct DlhalTimerHandle(());
/// A timer.
pub type DlhalTimer = *mut DlhalTimerHandle;

/// Kernels with their signatures, as loaded or created.
pub struct DlhalModuleHandle(());
/// A module. It never changes, and threads can share it.
pub type DlhalModule = *mut DlhalModuleHandle;

/// A kernel of a module.
pub struct DlhalFunctionHandle(());
/// A function. It lives on when its module is freed.
pub type DlhalFunction = *mut DlhalFunctionHandle;

/// A function with arguments, checked and ready to run many times.
pub struct DlhalLaunchHandle(());
/// A prepared launch. One thread at a time may change or run it.
pub type DlhalLaunch = *mut DlhalLaunchHandle;

/// A DLPack tensor that was taken over.
pub struct DlhalTensorHandle(());
/// An imported tensor.
pub type DlhalTensor = *mut DlhalTensorHandle;
