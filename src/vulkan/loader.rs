//! The Vulkan loader, opened at run time: nothing of Vulkan is needed for this library to load.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::vk;
use once_cell::sync::OnceCell;

use super::manifests;
use super::options::Options;
use crate::{Error, Result};

/// The names tried, in order, unless `DLHAL_VULKAN_LOADER` gives one.
const NAMES: [&str; 2] = ["libvulkan.so.1", "libvulkan.so"];

/// An open loader.
pub(crate) struct Loader {
    /// Its functions.
    pub(crate) entry: ash::Entry,
    /// The file, as the dynamic linker resolved it.
    pub(crate) path: String,
    /// The highest instance version it implements; at least 1.1.
    pub(crate) api_version: u32,
}

/// The process's one loader. A static is never dropped, so the loader is never closed: drivers
/// leave thread-local destructors behind that run long after the last Vulkan call.
static LOADER: OnceCell<Loader> = OnceCell::new();

/// The loader, opened on the first call that succeeds. Later calls return the same one, whatever
/// their options name; a failure is tried anew.
pub(crate) fn open(options: &Options) -> Result<&'static Loader> {
    LOADER.get_or_try_init(|| Loader::open(options))
}

impl Loader {
    fn open(options: &Options) -> Result<Self> {
        let names: Vec<OsString> = match &options.loader {
            Some(path) => vec![path.clone()],
            None => NAMES.iter().map(OsString::from).collect(),
        };
        let mut failures = Vec::new();
        for name in &names {
            match load(name).and_then(|entry| Self::with(entry, name)) {
                Ok(loader) => return Ok(loader),
                Err(error) => failures.push(error.message().to_owned()),
            }
        }
        let source = match options.loader {
            Some(_) => "as DLHAL_VULKAN_LOADER says",
            None => "on the dynamic linker's search path",
        };
        Err(Error::unavailable(format!(
            "no Vulkan loader: looked {source} for {} ({}); install the Vulkan loader (Debian: \
             libvulkan1) or name one in DLHAL_VULKAN_LOADER",
            names.iter().map(|name| name.to_string_lossy()).collect::<Vec<_>>().join(", "),
            failures.join("; ")
        )))
    }

    fn with(entry: ash::Entry, name: &OsStr) -> Result<Self> {
        let path = file_of_loader().unwrap_or_else(|| name.to_string_lossy().into_owned());
        // SAFETY: the entry's functions are those of an open loader.
        let version = unsafe { entry.try_enumerate_instance_version() }
            .map_err(|error| {
                Error::unavailable(format!(
                    "{path}: vkEnumerateInstanceVersion: {error}; {}",
                    manifests::fault_summary()
                ))
            })?
            .unwrap_or(vk::API_VERSION_1_0);
        if version < vk::API_VERSION_1_1 {
            return Err(Error::unavailable(format!(
                "{path}: the loader implements Vulkan {}, at least 1.1 is needed",
                super::version_text(version)
            )));
        }
        Ok(Self { entry, path, api_version: version })
    }
}

/// The library's handle, kept for the process's life.
static HANDLE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The loader's own `vkGetInstanceProcAddr`.
const GET_INSTANCE_PROC_ADDR: &CStr = c"vkGetInstanceProcAddr";

/// Opens a library and takes its functions.
fn load(name: &OsStr) -> Result<ash::Entry> {
    let c_name = CString::new(name.as_bytes())
        .map_err(|_| Error::unavailable(format!("{}: a zero in the name", name.display())))?;
    // SAFETY: opening a library runs its initialisers; the names are those of the Vulkan loader,
    // or a path that whoever controls the environment vouches for.
    let handle = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    // The dynamic linker's text begins with the name.
    if handle.is_null() {
        return Err(Error::unavailable(linker_error()));
    }
    if symbol(handle, GET_INSTANCE_PROC_ADDR.as_ptr()).is_null() {
        return Err(Error::unavailable(linker_error()));
    }
    HANDLE.store(handle, Ordering::Release);
    // SAFETY: `resolve` is what the type says, for an open loader.
    Ok(unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr: resolve }) })
}

/// `vkGetInstanceProcAddr` that a host program cannot come between. The loader looks its own
/// functions up by name among all libraries of the process, and a program or library that has a
/// `vkCreateInstance` of its own, be it a function or a pointer to one, would be found first. So
/// what the loader exports is taken from it directly.
unsafe extern "system" fn resolve(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    let handle = HANDLE.load(Ordering::Acquire);
    let exported = symbol(handle, name);
    if !exported.is_null() {
        // SAFETY: a symbol that the loader exports under a command's name is that command.
        return unsafe { std::mem::transmute::<*mut c_void, vk::PFN_vkVoidFunction>(exported) };
    }
    let get = symbol(handle, GET_INSTANCE_PROC_ADDR.as_ptr());
    // SAFETY: `load` has seen that this handle has the symbol, which is of this type.
    let get = unsafe { std::mem::transmute::<*mut c_void, vk::PFN_vkGetInstanceProcAddr>(get) };
    // SAFETY: the caller's own arguments, whose validity it vouches for.
    unsafe { get(instance, name) }
}

/// The address of an open library's symbol, or null.
fn symbol(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: `handle` is one that `dlopen` gave and nobody closes; `name` is a C string, as the
    // constant here is and as Vulkan demands of `vkGetInstanceProcAddr`'s callers.
    unsafe { libc::dlsym(handle, name) }
}

/// What the dynamic linker says of its last failure on this thread.
fn linker_error() -> String {
    // SAFETY: takes no arguments; the text lives until this thread's next call of its kind.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the dynamic linker failed without a word".to_owned();
    }
    // SAFETY: not null, so a C string that lives until the next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The file that a loaded library's code came from.
fn file_of_loader() -> Option<String> {
    let handle = HANDLE.load(Ordering::Acquire);
    let code = symbol(handle, GET_INSTANCE_PROC_ADDR.as_ptr()).cast_const();
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked about; `info` is writable and of the right type.
    let found = unsafe { libc::dladdr(code, info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }
    // SAFETY: zeroed bytes are a valid `Dl_info`, and `dladdr` has filled it.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: on success `dli_fname` is a C string that lives as long as the library stays open.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DlhalStatus;

    fn failure(path: &str) -> Error {
        let options = Options { loader: Some(path.into()), ..Options::default() };
        match Loader::open(&options) {
            Ok(loader) => panic!("{path} opened as {}", loader.path),
            Err(error) => error,
        }
    }

    #[test]
    fn a_missing_loader_is_a_status_that_says_what_was_looked_for_and_where() {
        let error = failure("/nowhere/libvulkan.so.1");
        assert_eq!(error.status(), DlhalStatus::Unavailable);
        assert!(error.message().contains("/nowhere/libvulkan.so.1"), "{error}");
        assert!(error.message().contains("DLHAL_VULKAN_LOADER"), "{error}");
        assert!(error.message().contains("No such file"), "{error}");
    }

    #[test]
    fn a_library_that_is_no_loader_is_refused() {
        let error = failure("libc.so.6");
        assert_eq!(error.status(), DlhalStatus::Unavailable);
        assert!(error.message().contains("vkGetInstanceProcAddr"), "{error}");
    }
}
