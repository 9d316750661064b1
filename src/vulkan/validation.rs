//! The Khronos validation layer, when `DLHAL_VALIDATION=1` asks for it: its messages go to the log
//! and are kept, so that a test fails on any.

use std::borrow::Cow;
use std::ffi::{CStr, c_void};

use ash::vk;
use parking_lot::Mutex;

/// The layer's name.
pub(crate) const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// More messages than this are logged but not kept.
const KEPT: usize = 1000;

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What validation has complained about in this process, oldest first (the first 1,000).
pub(crate) fn messages() -> Vec<String> {
    MESSAGES.lock().clone()
}

/// A messenger for errors and warnings.
pub(crate) fn messenger_info() -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(
            vk::DebugUtilsMessageSeverityFlagsEXT::ERROR
                | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING,
        )
        .message_type(
            vk::DebugUtilsMessageTypeFlagsEXT::GENERAL
                | vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION
                | vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE,
        )
        .pfn_user_callback(Some(on_message))
}

/// Called by the layers on any thread, inside the call that they complain about.
unsafe extern "system" fn on_message(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // The log's receiver is foreign code; a panic in it must not unwind into the driver.
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: the layers pass a valid structure for the length of the call.
        let Some(data) = (unsafe { data.as_ref() }) else { return };
        let text = message_text(data);
        let error = severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR);
        log::log!(if error { log::Level::Error } else { log::Level::Warn }, "{text}");
        // General messages are the loader's remarks on drivers and layers of the system, which say
        // nothing about how this library uses Vulkan.
        if kind != vk::DebugUtilsMessageTypeFlagsEXT::GENERAL {
            let mut messages = MESSAGES.lock();
            if messages.len() < KEPT {
                messages.push(text.into_owned());
            }
        }
    });
    vk::FALSE
}

fn message_text<'a>(data: &'a vk::DebugUtilsMessengerCallbackDataEXT<'_>) -> Cow<'a, str> {
    if data.p_message.is_null() {
        return Cow::Borrowed("(no text)");
    }
    // SAFETY: VUID-VkDebugUtilsMessengerCallbackDataEXT-pMessage-parameter: a C string.
    unsafe { CStr::from_ptr(data.p_message) }.to_string_lossy()
}
