//! Link arguments of the shared library: a versioned soname, and never unloaded (exported tensors'
//! deleters live in it, so code may be called after the host's `dlclose`). Its own names are its
//! own even where the process has others like them: another copy of it, open for everybody, say.
//! `DLHAL_BUILD_DIR` hands this build's target folder to the tests that open the shared library.

fn main() {
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libdlhal.so.{major}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
}
