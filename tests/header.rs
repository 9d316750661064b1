//! The checked-in header is the one that the sources make. `BLESS=1` rewrites it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

/// Where the header's declarations are, in the order of the header.
const SOURCES: &[&str] = &[
    "status",
    "runtime/attributes",
    "capi/types",
    "capi/library",
    "capi/device",
    "capi/memory",
    "capi/stream",
    "capi/timer",
    "capi/profiler",
    "capi/module",
    "capi/function",
    "capi/dlpack",
    "capi/api",
];

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

/// `dlopen` users see the same functions as those who link.
#[test]
fn the_function_table_has_every_function_with_the_same_arguments() {
    let header = without_comments(&generated());
    let (types, functions) = header.split_once("extern \"C\" {").expect("the functions");
    let (_, table) = types.split_once("typedef struct DlhalApi {").expect("the table");
    let (table, _) = table.split_once("} DlhalApi;").expect("its end");
    let (functions, _) = functions.split_once('}').expect("their end");
    let prototypes: Vec<_> = functions
        .split(';')
        .filter_map(|text| text.split_once("dlhal_"))
        .map(|(_, prototype)| prototype.split_once('(').expect("a prototype"))
        .filter(|(name, _)| *name != "get_api")
        .collect();
    assert!(prototypes.len() > 60, "{prototypes:?}");
    for (name, arguments) in &prototypes {
        let field = format!("(*{name})({arguments};");
        assert!(table.contains(&field), "no field `{field}` in {table}");
    }
    // The first field is the size; the last `;` has nothing behind it.
    assert_eq!(table.split(';').count() - 2, prototypes.len());
}

/// Everything but comments and the preprocessor's lines, with single spaces.
fn without_comments(header: &str) -> String {
    let lines = header.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join(" ");
    let mut rest = text.as_str();
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, rest)| rest);
    }
    kept.push_str(rest);
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}
