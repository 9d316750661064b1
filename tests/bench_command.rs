//! `dlhal bench`, as it is called: what it prints and writes, and what it says of wrong usage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// `dlhal bench` with these arguments, under the validation layer.
fn bench(arguments: &[&str]) -> Output {
    // Set by cargo; a test that is run elsewhere is told by nextest.
    let program = std::env::var_os("NEXTEST_BIN_EXE_dlhal")
        .map_or(PathBuf::from(env!("CARGO_BIN_EXE_dlhal")), PathBuf::from);
    Command::new(program)
        .arg("bench")
        .args(arguments)
        .env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
        .env("VK_LAYER_ENABLES", "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn assert_success_without_messages(output: &Output) {
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("Validation") && !said.contains("SYNC-HAZARD"), "{said}");
}

#[track_caller]
fn assert_spread(samples: &Value) {
    let value = |name: &str| samples[name].as_f64().unwrap_or_else(|| panic!("{samples}: {name}"));
    assert!(0.0 < value("min"), "{samples}");
    assert!(value("min") <= value("median") && value("median") <= value("max"), "{samples}");
}

/// A folder that is gone in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_selected_operation_is_measured_beside_its_limit_and_drawn() {
    let folder = Folder::new("dlhal-bench-test");
    let (json, svg) = (folder.file("run.json"), folder.file("run.svg"));
    let names = [
        "allocate and free 4 KiB",
        "allocate and free 4 KiB, 8 threads",
        "host to device 4 KiB, idle tensor",
        "10,000 dependent launches, each",
        "10,000 independent launches, each",
        "96 dependent launches and synchronise",
        "one launch and synchronise",
    ];
    let mut arguments = vec!["--quick", "--json", &json, "--svg", &svg, "--only", "in flight"];
    names.iter().for_each(|name| arguments.extend(["--only", *name]));
    let output = bench(&arguments);
    assert_success_without_messages(&output);

    let run: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(run["dlhal"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["quick"], true);
    assert!(!run["device"]["name"].as_str().unwrap().is_empty());
    assert!(!run["device"]["driver"].as_str().unwrap().is_empty());
    let operations = run["operations"].as_array().unwrap();
    let found: Vec<&str> = operations.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(found, names);
    for operation in operations {
        assert_spread(&operation["ours"]);
        assert_spread(&operation["limit"]);
        let median = |who: &str| operation[who]["median"].as_f64().unwrap();
        let ratio = operation["ratio"].as_f64().unwrap();
        assert!((ratio - median("ours") / median("limit")).abs() < 1e-9, "{operation}");
    }
    let curve = &run["curves"][0];
    assert_eq!(curve["name"], "ns per launch, in flight");
    for line in curve["lines"].as_array().unwrap() {
        let points = line["points"].as_array().unwrap();
        assert!(points.len() > 1);
        points.iter().for_each(assert_spread);
    }

    let svg = std::fs::read_to_string(&svg).unwrap();
    assert!(svg.starts_with("<svg"));
    let picture = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = picture.descendants().filter_map(|node| node.text()).collect();
    for name in names {
        assert!(texts.contains(&name), "{name} is not drawn");
    }
    let table = text(&output.stdout);
    names.iter().for_each(|name| assert!(table.contains(name), "{name} is not in {table}"));
}

#[test]
fn a_second_process_is_measured_against_the_first() {
    let folder = Folder::new("dlhal-bench-processes");
    let json = folder.file("run.json");
    let output = bench(&["--quick", "--only", "first launch", "--json", &json]);
    assert_success_without_messages(&output);
    let run: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_spread(&run["operations"][0]["ours"]);
    assert_spread(&run["operations"][0]["limit"]);
}

#[test]
fn wrong_flags_show_the_usage() {
    for wrong in [&["--fast"][..], &["--json"], &["--device", "first"], &["--child", "none"]] {
        let output = bench(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(text(&output.stderr).contains("usage: dlhal"), "{wrong:?}");
    }
}

#[test]
fn an_operation_that_there_is_not_is_an_error_that_names_those_that_there_are() {
    let output = bench(&["--only", "teleport"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in ["teleport", "one launch and synchronise", "ns per launch, live tensors"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_device_that_there_is_not_is_an_error() {
    let output = bench(&["--device", "99", "--only", "one launch"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("99"), "{}", text(&output.stderr));
}

#[test]
fn ways_that_there_are_not_are_an_error_that_names_the_parts() {
    let output = bench(&["--ways", "teleport"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("on-device, host, waits"));
}
