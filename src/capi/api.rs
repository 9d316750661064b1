//! The table of all functions, for programs that open the library with `dlopen`.

use std::ffi::{c_char, c_int, c_void};

use dlpark::ffi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor};

use super::args::Out;
use super::boundary::boundary;
use super::types::{
    DLHAL_ABI_VERSION, DeviceAttrNumber, DlhalAddressInfo, DlhalEvent, DlhalFunction,
    DlhalFunctionInfo, DlhalKernelDesc, DlhalLaunch, DlhalLogCallback, DlhalMemoryStatistics,
    DlhalModule, DlhalStream, DlhalTensor, DlhalTimer, DlhalValue, LogLevelNumber, StatusNumber,
};
use super::{device, dlpack, function, library, memory, module, profiler, stream, timer};
use crate::{DlhalStatus, Error};

/// Every function of this header. A field's function is documented under its name with `dlhal_`
/// before it.
#[repr(C)]
#[allow(non_snake_case, reason = "DLPack calls a parameter SetError")]
#[allow(missing_docs, reason = "each field is documented at the function that it points to")]
pub struct DlhalApi {
    /// sizeof(DlhalApi) of the library; a newer one has more fields at the end.
    pub struct_size: usize,
    pub abi_version: extern "C" fn() -> u32,
    pub version_string: extern "C" fn() -> *const c_char,
    pub status_string: extern "C" fn(status: StatusNumber) -> *const c_char,
    pub last_error_message: extern "C" fn() -> *const c_char,
    pub diagnose: unsafe extern "C" fn(
        buffer: *mut c_char,
        capacity: usize,
        needed: *mut usize,
    ) -> DlhalStatus,
    pub shutdown: unsafe extern "C" fn() -> DlhalStatus,
    pub set_log_callback: unsafe extern "C" fn(
        callback: DlhalLogCallback,
        context: *mut c_void,
        max_level: LogLevelNumber,
    ) -> DlhalStatus,
    pub device_count: unsafe extern "C" fn(count: *mut i32) -> DlhalStatus,
    pub set_device: unsafe extern "C" fn(device: DLDevice) -> DlhalStatus,
    pub get_device: unsafe extern "C" fn(device: *mut DLDevice) -> DlhalStatus,
    pub device_get_attr: unsafe extern "C" fn(
        device: DLDevice,
        attr: DeviceAttrNumber,
        value: *mut DlhalValue,
    ) -> DlhalStatus,
    pub device_get_attr_string: unsafe extern "C" fn(
        device: DLDevice,
        attr: DeviceAttrNumber,
        buffer: *mut c_char,
        capacity: usize,
        needed: *mut usize,
    ) -> DlhalStatus,
    pub device_get_target_property: unsafe extern "C" fn(
        device: DLDevice,
        name: *const c_char,
        value: *mut DlhalValue,
    ) -> DlhalStatus,
    pub device_get_target_property_string: unsafe extern "C" fn(
        device: DLDevice,
        name: *const c_char,
        buffer: *mut c_char,
        capacity: usize,
        needed: *mut usize,
    ) -> DlhalStatus,
    pub device_get_pipeline_cache: unsafe extern "C" fn(
        device: DLDevice,
        buffer: *mut c_void,
        capacity: usize,
        needed: *mut usize,
    ) -> DlhalStatus,
    pub device_set_pipeline_cache: unsafe extern "C" fn(
        device: DLDevice,
        bytes: *const c_void,
        size: usize,
        taken: *mut bool,
    ) -> DlhalStatus,
    pub device_get_memory_statistics: unsafe extern "C" fn(
        device: DLDevice,
        statistics: *mut DlhalMemoryStatistics,
    ) -> DlhalStatus,
    pub device_trim: unsafe extern "C" fn(device: DLDevice, released: *mut u64) -> DlhalStatus,
    pub device_sync: unsafe extern "C" fn(device: DLDevice) -> DlhalStatus,
    pub device_self_test: unsafe extern "C" fn(device: DLDevice) -> DlhalStatus,
    pub device_get_native_handles:
        unsafe extern "C" fn(device: DLDevice, handles: *mut u64) -> DlhalStatus,
    pub alloc_data_space: unsafe extern "C" fn(
        device: DLDevice,
        nbytes: usize,
        alignment: usize,
        type_hint: DLDataType,
        ptr: *mut *mut c_void,
    ) -> DlhalStatus,
    pub alloc_data_space_with_scope: unsafe extern "C" fn(
        device: DLDevice,
        ndim: i32,
        shape: *const i64,
        dtype: DLDataType,
        mem_scope: *const c_char,
        ptr: *mut *mut c_void,
    ) -> DlhalStatus,
    pub free_data_space: unsafe extern "C" fn(device: DLDevice, ptr: *mut c_void) -> DlhalStatus,
    pub get_host_pointer: unsafe extern "C" fn(
        device: DLDevice,
        ptr: *mut c_void,
        host: *mut *mut c_void,
    ) -> DlhalStatus,
    pub resolve_address: unsafe extern "C" fn(
        device: DLDevice,
        ptr: *const c_void,
        info: *mut DlhalAddressInfo,
    ) -> DlhalStatus,
    pub copy_data_from_to: unsafe extern "C" fn(
        from: *const DLTensor,
        to: *mut DLTensor,
        stream: DlhalStream,
    ) -> DlhalStatus,
    pub copy_bytes: unsafe extern "C" fn(
        from: *const c_void,
        from_offset: usize,
        from_device: DLDevice,
        to: *mut c_void,
        to_offset: usize,
        to_device: DLDevice,
        nbytes: usize,
        stream: DlhalStream,
    ) -> DlhalStatus,
    pub alloc_workspace: unsafe extern "C" fn(
        device: DLDevice,
        nbytes: usize,
        type_hint: DLDataType,
        ptr: *mut *mut c_void,
    ) -> DlhalStatus,
    pub free_workspace: unsafe extern "C" fn(device: DLDevice, ptr: *mut c_void) -> DlhalStatus,
    pub stream_create:
        unsafe extern "C" fn(device: DLDevice, stream: *mut DlhalStream) -> DlhalStatus,
    pub stream_free: unsafe extern "C" fn(device: DLDevice, stream: DlhalStream) -> DlhalStatus,
    pub stream_sync: unsafe extern "C" fn(device: DLDevice, stream: DlhalStream) -> DlhalStatus,
    pub stream_flush: unsafe extern "C" fn(device: DLDevice, stream: DlhalStream) -> DlhalStatus,
    pub set_stream: unsafe extern "C" fn(device: DLDevice, stream: DlhalStream) -> DlhalStatus,
    pub get_stream: unsafe extern "C" fn(device: DLDevice, stream: *mut DlhalStream) -> DlhalStatus,
    pub sync_stream_from_to:
        unsafe extern "C" fn(device: DLDevice, src: DlhalStream, dst: DlhalStream) -> DlhalStatus,
    pub event_create: unsafe extern "C" fn(device: DLDevice, event: *mut DlhalEvent) -> DlhalStatus,
    pub event_record: unsafe extern "C" fn(event: DlhalEvent, stream: DlhalStream) -> DlhalStatus,
    pub event_query: unsafe extern "C" fn(event: DlhalEvent, done: *mut bool) -> DlhalStatus,
    pub event_sync: unsafe extern "C" fn(event: DlhalEvent, timeout_ns: u64) -> DlhalStatus,
    pub stream_wait_event: unsafe extern "C" fn(
        device: DLDevice,
        stream: DlhalStream,
        event: DlhalEvent,
    ) -> DlhalStatus,
    pub event_free: unsafe extern "C" fn(event: DlhalEvent) -> DlhalStatus,
    pub module_load_from_file:
        unsafe extern "C" fn(path: *const c_char, module: *mut DlhalModule) -> DlhalStatus,
    pub module_save_to_file: unsafe extern "C" fn(
        module: DlhalModule,
        path: *const c_char,
        version: *const c_char,
    ) -> DlhalStatus,
    pub module_load_from_bytes: unsafe extern "C" fn(
        bytes: *const c_void,
        size: usize,
        module: *mut DlhalModule,
    ) -> DlhalStatus,
    pub module_save_to_bytes: unsafe extern "C" fn(
        module: DlhalModule,
        version: *const c_char,
        buffer: *mut c_void,
        capacity: usize,
        needed: *mut usize,
    ) -> DlhalStatus,
    pub module_create_from_spirv: unsafe extern "C" fn(
        kernels: *const DlhalKernelDesc,
        count: usize,
        module: *mut DlhalModule,
    ) -> DlhalStatus,
    pub module_create_from_wgsl: unsafe extern "C" fn(
        source: *const c_char,
        length: usize,
        module: *mut DlhalModule,
    ) -> DlhalStatus,
    pub module_get_function_count:
        unsafe extern "C" fn(module: DlhalModule, count: *mut usize) -> DlhalStatus,
    pub module_get_function_name: unsafe extern "C" fn(
        module: DlhalModule,
        index: usize,
        buffer: *mut c_char,
        capacity: usize,
        needed: *mut usize,
    ) -> DlhalStatus,
    pub module_get_source: unsafe extern "C" fn(
        module: DlhalModule,
        function: *const c_char,
        format: *const c_char,
        buffer: *mut c_void,
        capacity: usize,
        needed: *mut usize,
    ) -> DlhalStatus,
    pub module_get_function: unsafe extern "C" fn(
        module: DlhalModule,
        name: *const c_char,
        function: *mut DlhalFunction,
    ) -> DlhalStatus,
    pub module_free: unsafe extern "C" fn(module: DlhalModule) -> DlhalStatus,
    pub function_get_info:
        unsafe extern "C" fn(function: DlhalFunction, info: *mut DlhalFunctionInfo) -> DlhalStatus,
    pub function_get_arg_type: unsafe extern "C" fn(
        function: DlhalFunction,
        index: usize,
        r#type: *mut DLDataType,
    ) -> DlhalStatus,
    pub function_get_launch_tag: unsafe extern "C" fn(
        function: DlhalFunction,
        index: usize,
        buffer: *mut c_char,
        capacity: usize,
        needed: *mut usize,
    ) -> DlhalStatus,
    pub function_free: unsafe extern "C" fn(function: DlhalFunction) -> DlhalStatus,
    pub function_launch: unsafe extern "C" fn(
        function: DlhalFunction,
        device: DLDevice,
        stream: DlhalStream,
        args: *const DlhalValue,
        num_args: usize,
    ) -> DlhalStatus,
    pub launch_create: unsafe extern "C" fn(
        function: DlhalFunction,
        device: DLDevice,
        args: *const DlhalValue,
        num_args: usize,
        launch: *mut DlhalLaunch,
    ) -> DlhalStatus,
    pub launch_set_arg: unsafe extern "C" fn(
        launch: DlhalLaunch,
        index: usize,
        value: *const DlhalValue,
    ) -> DlhalStatus,
    pub launch_run: unsafe extern "C" fn(launch: DlhalLaunch, stream: DlhalStream) -> DlhalStatus,
    pub launch_free: unsafe extern "C" fn(launch: DlhalLaunch) -> DlhalStatus,
    pub tensor_allocate: unsafe extern "C" fn(
        prototype: *const DLTensor,
        tensor: *mut *mut DLManagedTensorVersioned,
    ) -> DlhalStatus,
    pub tensor_allocate_legacy: unsafe extern "C" fn(
        prototype: *const DLTensor,
        tensor: *mut *mut DLManagedTensor,
    ) -> DlhalStatus,
    pub dlpack_managed_tensor_allocator: unsafe extern "C" fn(
        prototype: *mut DLTensor,
        out: *mut *mut DLManagedTensorVersioned,
        error_ctx: *mut c_void,
        SetError: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>,
    ) -> c_int,
    pub dlpack_export: unsafe extern "C" fn(
        view: *const DLTensor,
        flags: u64,
        tensor: *mut *mut DLManagedTensorVersioned,
    ) -> DlhalStatus,
    pub dlpack_export_legacy: unsafe extern "C" fn(
        view: *const DLTensor,
        tensor: *mut *mut DLManagedTensor,
    ) -> DlhalStatus,
    pub dlpack_import: unsafe extern "C" fn(
        managed: *mut DLManagedTensorVersioned,
        target: DLDevice,
        tensor: *mut DlhalTensor,
    ) -> DlhalStatus,
    pub dlpack_import_legacy: unsafe extern "C" fn(
        managed: *mut DLManagedTensor,
        target: DLDevice,
        tensor: *mut DlhalTensor,
    ) -> DlhalStatus,
    pub tensor_get_view:
        unsafe extern "C" fn(tensor: DlhalTensor, view: *mut DLTensor) -> DlhalStatus,
    pub tensor_get_flags: unsafe extern "C" fn(tensor: DlhalTensor, flags: *mut u64) -> DlhalStatus,
    pub tensor_free: unsafe extern "C" fn(tensor: DlhalTensor) -> DlhalStatus,
    pub timer_create: unsafe extern "C" fn(device: DLDevice, timer: *mut DlhalTimer) -> DlhalStatus,
    pub timer_start: unsafe extern "C" fn(timer: DlhalTimer, stream: DlhalStream) -> DlhalStatus,
    pub timer_stop: unsafe extern "C" fn(timer: DlhalTimer, stream: DlhalStream) -> DlhalStatus,
    pub timer_elapsed: unsafe extern "C" fn(
        timer: DlhalTimer,
        timeout_ns: u64,
        nanoseconds: *mut u64,
    ) -> DlhalStatus,
    pub timer_free: unsafe extern "C" fn(timer: DlhalTimer) -> DlhalStatus,
    pub profiler_start: unsafe extern "C" fn(device: DLDevice, max_events: usize) -> DlhalStatus,
    pub profiler_stop: unsafe extern "C" fn(device: DLDevice) -> DlhalStatus,
    pub profiler_save_to_file:
        unsafe extern "C" fn(device: DLDevice, path: *const c_char) -> DlhalStatus,
    pub profiler_save_to_bytes: unsafe extern "C" fn(
        device: DLDevice,
        buffer: *mut c_void,
        capacity: usize,
        needed: *mut usize,
    ) -> DlhalStatus,
}

/// The function table, for programs that open the library with dlopen and look up this name alone.
///
/// @param version  DLHAL_ABI_VERSION of the header that the program was built with.
/// @param api      gets the table, which lives for ever.
/// @return DLHAL_STATUS_UNSUPPORTED when the library has another version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_get_api(version: u32, api: *mut *const DlhalApi) -> DlhalStatus {
    boundary(|| {
        let api = Out::new(api, "api")?;
        if version != DLHAL_ABI_VERSION {
            return Err(Error::unsupported(format!(
                "version {version} was asked for; this library has version {DLHAL_ABI_VERSION}"
            )));
        }
        api.write(&raw const API);
        Ok(())
    })
}

static API: DlhalApi = DlhalApi {
    struct_size: size_of::<DlhalApi>(),
    abi_version: library::dlhal_abi_version,
    version_string: library::dlhal_version_string,
    status_string: library::dlhal_status_string,
    last_error_message: library::dlhal_last_error_message,
    diagnose: library::dlhal_diagnose,
    shutdown: library::dlhal_shutdown,
    set_log_callback: library::dlhal_set_log_callback,
    device_count: device::dlhal_device_count,
    set_device: device::dlhal_set_device,
    get_device: device::dlhal_get_device,
    device_get_attr: device::dlhal_device_get_attr,
    device_get_attr_string: device::dlhal_device_get_attr_string,
    device_get_target_property: device::dlhal_device_get_target_property,
    device_get_target_property_string: device::dlhal_device_get_target_property_string,
    device_get_pipeline_cache: device::dlhal_device_get_pipeline_cache,
    device_set_pipeline_cache: device::dlhal_device_set_pipeline_cache,
    device_get_memory_statistics: device::dlhal_device_get_memory_statistics,
    device_trim: device::dlhal_device_trim,
    device_sync: device::dlhal_device_sync,
    device_self_test: device::dlhal_device_self_test,
    device_get_native_handles: device::dlhal_device_get_native_handles,
    alloc_data_space: memory::dlhal_alloc_data_space,
    alloc_data_space_with_scope: memory::dlhal_alloc_data_space_with_scope,
    free_data_space: memory::dlhal_free_data_space,
    get_host_pointer: memory::dlhal_get_host_pointer,
    resolve_address: memory::dlhal_resolve_address,
    copy_data_from_to: memory::dlhal_copy_data_from_to,
    copy_bytes: memory::dlhal_copy_bytes,
    alloc_workspace: memory::dlhal_alloc_workspace,
    free_workspace: memory::dlhal_free_workspace,
    stream_create: stream::dlhal_stream_create,
    stream_free: stream::dlhal_stream_free,
    stream_sync: stream::dlhal_stream_sync,
    stream_flush: stream::dlhal_stream_flush,
    set_stream: stream::dlhal_set_stream,
    get_stream: stream::dlhal_get_stream,
    sync_stream_from_to: stream::dlhal_sync_stream_from_to,
    event_create: stream::dlhal_event_create,
    event_record: stream::dlhal_event_record,
    event_query: stream::dlhal_event_query,
    event_sync: stream::dlhal_event_sync,
    stream_wait_event: stream::dlhal_stream_wait_event,
    event_free: stream::dlhal_event_free,
    module_load_from_file: module::dlhal_module_load_from_file,
    module_save_to_file: module::dlhal_module_save_to_file,
    module_load_from_bytes: module::dlhal_module_load_from_bytes,
    module_save_to_bytes: module::dlhal_module_save_to_bytes,
    module_create_from_spirv: module::dlhal_module_create_from_spirv,
    module_create_from_wgsl: module::dlhal_module_create_from_wgsl,
    module_get_function_count: module::dlhal_module_get_function_count,
    module_get_function_name: module::dlhal_module_get_function_name,
    module_get_source: module::dlhal_module_get_source,
    module_get_function: module::dlhal_module_get_function,
    module_free: module::dlhal_module_free,
    function_get_info: function::dlhal_function_get_info,
    function_get_arg_type: function::dlhal_function_get_arg_type,
    function_get_launch_tag: function::dlhal_function_get_launch_tag,
    function_free: function::dlhal_function_free,
    function_launch: function::dlhal_function_launch,
    launch_create: function::dlhal_launch_create,
    launch_set_arg: function::dlhal_launch_set_arg,
    launch_run: function::dlhal_launch_run,
    launch_free: function::dlhal_launch_free,
    tensor_allocate: dlpack::dlhal_tensor_allocate,
    tensor_allocate_legacy: dlpack::dlhal_tensor_allocate_legacy,
    dlpack_managed_tensor_allocator: dlpack::dlhal_dlpack_managed_tensor_allocator,
    dlpack_export: dlpack::dlhal_dlpack_export,
    dlpack_export_legacy: dlpack::dlhal_dlpack_export_legacy,
    dlpack_import: dlpack::dlhal_dlpack_import,
    dlpack_import_legacy: dlpack::dlhal_dlpack_import_legacy,
    tensor_get_view: dlpack::dlhal_tensor_get_view,
    tensor_get_flags: dlpack::dlhal_tensor_get_flags,
    tensor_free: dlpack::dlhal_tensor_free,
    timer_create: timer::dlhal_timer_create,
    timer_start: timer::dlhal_timer_start,
    timer_stop: timer::dlhal_timer_stop,
    timer_elapsed: timer::dlhal_timer_elapsed,
    timer_free: timer::dlhal_timer_free,
    profiler_start: profiler::dlhal_profiler_start,
    profiler_stop: profiler::dlhal_profiler_stop,
    profiler_save_to_file: profiler::dlhal_profiler_save_to_file,
    profiler_save_to_bytes: profiler::dlhal_profiler_save_to_bytes,
};
