//! The checked-in header is the one that the sources make. `BLESS=1` rewrites it.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the header's declarations are, in the order of the header.
const SOURCES: &[&str] = &["status", "capi/types", "capi/library"];

const HOW: &str = "BLESS=1 cargo test --test header";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root().join("src").join(source).with_extension("rs"));
    }
    let mut bytes = Vec::new();
    builder.generate().expect("the sources parse").write(&mut bytes);
    String::from_utf8(bytes).expect("a header in UTF-8")
}

#[test]
fn the_checked_in_header_is_the_one_that_the_sources_make() {
    let path = root().join("include/dlhal/dlhal.h");
    let new = generated();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &new).expect("the header can be written");
    }
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let line = new.lines().zip(old.lines()).position(|(new, old)| new != old);
    assert!(new == old, "{} differs from line {line:?} on; run `{HOW}`", path.display());
}

/// Compiles a file that uses the header, as every standard from C99 and C++11 on.
#[test]
fn the_header_stands_alone_in_every_standard_without_a_warning() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let body = "#include <dlhal/dlhal.h>\n\
                int main(void) { return dlhal_int(0).type == DLHAL_VALUE_INT ? 0 : 1; }\n";
    let compile = |compiler: &str, extension: &str, standards: &[&str]| {
        let source = folder.join(format!("alone.{extension}"));
        std::fs::write(&source, body).expect("a scratch file");
        for standard in standards {
            let output = Command::new(compiler)
                .arg(format!("-std={standard}"))
                .args(["-Wall", "-Wextra", "-Werror", "-pedantic-errors", "-fsyntax-only", "-I"])
                .arg(root().join("include"))
                .arg(&source)
                .output()
                .expect("a C compiler");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{compiler} -std={standard}:\n{text}");
        }
    };
    compile("cc", "c", &["c99", "c11", "c17"]);
    compile("c++", "cc", &["c++11", "c++14", "c++17", "c++20"]);
}
