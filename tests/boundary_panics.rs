//! A panic inside any entry point is a status with a message, and the library goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::CStr;

use dlhal::DlhalStatus;
use dlhal::capi::{self, DLHAL_ABI_VERSION, DlhalApi, panic_in_next_call};

/// A function of the table, called with zeros: its body does not look at them, for it panics first.
trait CallWithZeros {
    fn call_with_zeros(self) -> DlhalStatus;
}

macro_rules! callable {
    ($($argument:ident)*) => {
        impl<$($argument),*> CallWithZeros
            for unsafe extern "C" fn($($argument),*) -> DlhalStatus
        {
            fn call_with_zeros(self) -> DlhalStatus {
                // SAFETY: the arguments are pointers, numbers and structs of them, for all of which
                // zeros are values.
                unsafe { self($(std::mem::zeroed::<$argument>()),*) }
            }
        }
    };
}

callable!();
callable!(A);
callable!(A B);
callable!(A B C);
callable!(A B C D);
callable!(A B C D E);
callable!(A B C D E F);
callable!(A B C D E F G);
callable!(A B C D E F G H);

fn api() -> &'static DlhalApi {
    let mut api = std::ptr::null();
    // SAFETY: the pointer is valid for writing.
    let status = unsafe { capi::dlhal_get_api(DLHAL_ABI_VERSION, &raw mut api) };
    assert_eq!(status, DlhalStatus::Ok);
    // SAFETY: the table lives for ever.
    unsafe { api.as_ref() }.expect("a table")
}

fn last_message() -> String {
    // SAFETY: the message is terminated, and this thread makes no other call meanwhile.
    let text = unsafe { CStr::from_ptr(capi::dlhal_last_error_message()) };
    text.to_string_lossy().into_owned()
}

fn check(name: &str, call: impl FnOnce() -> DlhalStatus) {
    panic_in_next_call();
    assert_eq!(call(), DlhalStatus::Internal, "{name}");
    assert!(last_message().contains("panic_in_next_call"), "{name}: {}", last_message());
}

macro_rules! check_all {
    ($api:ident: $($name:ident)*) => {{
        $(check(stringify!($name), || $api.$name.call_with_zeros());)*
        [$(stringify!($name)),*].len()
    }};
}

#[test]
fn a_panic_in_any_entry_point_is_a_status_and_the_library_goes_on() {
    let api = api();
    let checked = check_all!(api:
        diagnose shutdown set_log_callback device_count set_device get_device device_get_attr
        device_get_attr_string device_get_target_property device_get_target_property_string
        device_get_pipeline_cache device_set_pipeline_cache device_get_memory_statistics device_trim
        device_sync device_self_test device_get_native_handles alloc_data_space
        alloc_data_space_with_scope free_data_space get_host_pointer resolve_address
        copy_data_from_to copy_bytes alloc_workspace free_workspace stream_create stream_free
        stream_sync stream_flush set_stream get_stream sync_stream_from_to event_create event_record
        event_query event_sync stream_wait_event event_free module_load_from_file
        module_save_to_file module_load_from_bytes module_save_to_bytes module_create_from_spirv
        module_create_from_wgsl module_get_function_count module_get_function_name
        module_get_source module_get_function module_free function_get_info function_get_arg_type
        function_get_launch_tag function_free function_launch launch_create launch_set_arg
        launch_run launch_free tensor_allocate tensor_allocate_legacy dlpack_export
        dlpack_export_legacy dlpack_import dlpack_import_legacy tensor_get_view tensor_get_flags
        tensor_free timer_create timer_start timer_stop timer_elapsed timer_free profiler_start
        profiler_stop profiler_save_to_file profiler_save_to_bytes
    );
    // What cannot fail: four functions; what has no status of its own: one.
    let functions = (api.struct_size - size_of::<usize>()) / size_of::<usize>();
    assert_eq!(checked + 5, functions, "a function of the table is not checked");

    panic_in_next_call();
    // SAFETY: nothing is looked at before the panic.
    let failed = unsafe {
        (api.dlpack_managed_tensor_allocator)(
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            None,
        )
    };
    assert_eq!(failed, -1);

    // SAFETY: null is refused, not followed.
    let status = unsafe { (api.device_count)(std::ptr::null_mut()) };
    assert_eq!(status, DlhalStatus::InvalidArgument);
    assert_eq!(last_message(), "count is null");
}
