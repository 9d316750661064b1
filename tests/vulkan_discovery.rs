//! Finding loader, drivers and devices on machines where something is missing or broken. Each case
//! runs in a process of its own, whose environment is the case: a test of this file starts its own
//! executable again with one of the `child_` tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dlhal::DlhalStatus;
use dlhal::vulkan;

/// The lavapipe manifest that the set-up made, or the one that the environment chose.
fn lavapipe() -> String {
    ["DLHAL_TEST_SOFTWARE_DRIVER", "VK_DRIVER_FILES"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok())
        .expect("no software driver: run scripts/setup.sh and source .deps/env.sh")
}

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("dlhal-discovery-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the test `child` of this file in a new process and returns what it printed; it must pass.
fn run(child: &str, environment: &[(&str, &str)]) -> String {
    let Output { status, stdout, stderr } = start(child, environment, &[]);
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{child} ended with {status}\n{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "{child} is no test of this file\n{stdout}");
    stdout.into_owned()
}

fn start(child: &str, environment: &[(&str, &str)], without: &[&str]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", child, "--ignored", "--nocapture", "--test-threads=1"]);
    for (name, _) in std::env::vars() {
        if name.starts_with("DLHAL_") || name.starts_with("VK_") {
            command.env_remove(name);
        }
    }
    for name in without {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied()).output().unwrap()
}

/// Prints how many adapters there are and what each is, or the failure.
fn print_adapters() {
    match vulkan::load() {
        Ok(driver) => {
            println!("found {}", driver.adapters().len());
            for adapter in driver.adapters() {
                println!(
                    "{:?} {} {:?}",
                    adapter.info.device_type, adapter.info.name, adapter.usable
                );
            }
        }
        Err(error) => println!("failed: {error}"),
    }
}

#[test]
#[ignore = "started by other tests"]
fn child_prints_adapters() {
    print_adapters();
}

#[test]
#[ignore = "started by other tests"]
fn child_prints_diagnosis() {
    println!("{}", vulkan::diagnose());
}

#[test]
#[ignore = "started by other tests"]
fn child_loads_fifty_times() {
    for _ in 0..50 {
        let driver = vulkan::load().unwrap();
        assert_eq!(driver.adapters().len(), 1);
    }
}

#[test]
#[ignore = "started by other tests"]
fn child_ends_threads_after_giving_the_driver_up() {
    for _ in 0..100 {
        std::thread::spawn(|| {
            let driver = vulkan::load().unwrap();
            let usable = driver.adapters().iter().position(|one| one.usable.is_ok()).unwrap();
            let device = driver.create_device(usable).unwrap();
            device.wait_idle().unwrap();
            drop((device, driver));
            std::thread::sleep(std::time::Duration::from_millis(2));
        })
        .join()
        .unwrap();
    }
}

#[test]
#[ignore = "started by other tests"]
fn child_loads_on_eight_threads_at_once() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert_eq!(vulkan::load().unwrap().adapters().len(), 1);
                }
            });
        }
    });
}

#[test]
#[ignore = "started by other tests"]
fn child_finds_a_driver_that_is_named_later() {
    let error = vulkan::load().err().expect("VK_DRIVER_FILES names nothing");
    assert_eq!(error.status(), DlhalStatus::Unavailable);
    let lavapipe = std::env::var("LATER").unwrap();
    // SAFETY: this process has no other thread that reads the environment now.
    unsafe { std::env::set_var("VK_DRIVER_FILES", lavapipe) };
    assert_eq!(vulkan::load().unwrap().adapters().len(), 1);
}

#[test]
#[ignore = "started by other tests"]
fn child_creates_every_device_under_validation() {
    let driver = vulkan::load().unwrap();
    for index in 0..driver.adapters().len() {
        let device = driver.create_device(index).unwrap();
        assert_eq!(device.properties().name, driver.adapters()[index].info.name);
        device.wait_idle().unwrap();
    }
    assert_eq!(vulkan::validation_messages(), Vec::<String>::new());
}

#[test]
fn without_a_loader_the_status_says_what_was_looked_for() {
    let environment = [("DLHAL_VULKAN_LOADER", "/nowhere/libvulkan.so.1")];
    let text = run("child_prints_adapters", &environment);
    assert!(text.contains("failed: unavailable: no Vulkan loader"), "{text}");
    assert!(text.contains("/nowhere/libvulkan.so.1"), "{text}");
    let text = run("child_prints_diagnosis", &environment);
    assert!(text.contains("no Vulkan loader"), "{text}");
}

#[test]
fn without_a_driver_the_status_names_the_files_and_their_faults() {
    let text = run("child_prints_adapters", &[("VK_DRIVER_FILES", "/nowhere/icd.json")]);
    assert!(text.contains("failed: unavailable: no Vulkan device"), "{text}");
    assert!(text.contains("/nowhere/icd.json: the file is missing"), "{text}");
}

#[test]
fn broken_driver_files_beside_a_good_one_are_skipped() {
    let folder = Folder::new("broken");
    let driver = |library: &str| {
        format!(
            r#"{{"file_format_version":"1.0.0","ICD":{{"library_path":"{library}","api_version":"1.3.0"}}}}"#
        )
    };
    let files = [
        folder.file("gone.json", &driver("./libgone.so")),
        folder.file("libc.json", &driver("libc.so.6")),
        folder.file("text.json", "not a manifest"),
        lavapipe(),
    ];
    let mut back = files.clone();
    back.reverse();
    for order in [files, back] {
        run("child_loads_fifty_times", &[("VK_DRIVER_FILES", &order.join(":"))]);
    }
}

#[test]
fn broken_driver_files_are_diagnosed_one_by_one() {
    let files = format!("/nowhere/icd.json:{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let text = run("child_prints_diagnosis", &[("VK_DRIVER_FILES", &files)]);
    assert!(text.contains("/nowhere/icd.json: the file is missing"), "{text}");
    assert!(text.contains("Cargo.toml: the file is not a manifest"), "{text}");
    assert!(text.contains("no Vulkan device"), "{text}");
}

#[test]
fn a_broken_layer_file_that_stops_the_loader_is_named() {
    let folder = Folder::new("layer-file");
    folder.file("vulkan/implicit_layer.d/text.json", "not a manifest");
    let data = folder.0.display().to_string();
    let environment = [("XDG_DATA_HOME", data.as_str()), ("VK_DRIVER_FILES", &lavapipe())];
    let text = run("child_prints_diagnosis", &environment);
    assert!(text.contains("text.json: the file is not a manifest"), "{text}");
}

#[test]
fn home_and_xdg_may_be_unset() {
    let without = ["HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS"];
    let output = start("child_prints_adapters", &[("VK_DRIVER_FILES", &lavapipe())], &without);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("found 1"), "{text}");
}

#[test]
fn two_drivers_make_two_devices_in_either_order() {
    let Ok(second) = std::env::var("DLHAL_TEST_SOFTWARE_DRIVER_2") else {
        panic!("no second software driver: run scripts/setup.sh and source .deps/env.sh");
    };
    for files in [format!("{}:{second}", lavapipe()), format!("{second}:{}", lavapipe())] {
        let text = run("child_prints_adapters", &[("VK_DRIVER_FILES", &files)]);
        assert!(text.contains("found 2"), "{text}");
        assert_eq!(text.matches("Software llvmpipe").count(), 2, "{text}");
    }
}

#[test]
fn a_driver_named_after_a_failure_is_found() {
    let environment = [("VK_DRIVER_FILES", "/nowhere/icd.json"), ("LATER", &lavapipe())];
    run("child_finds_a_driver_that_is_named_later", &environment);
}

#[test]
fn threads_end_cleanly_after_the_driver_was_given_up() {
    run("child_ends_threads_after_giving_the_driver_up", &[("VK_DRIVER_FILES", &lavapipe())]);
}

#[test]
fn eight_threads_may_load_at_once() {
    run("child_loads_on_eight_threads_at_once", &[("VK_DRIVER_FILES", &lavapipe())]);
}

#[test]
fn validation_is_silent_when_devices_are_created() {
    for fallback in [
        "DLHAL_VALIDATION",
        "DLHAL_ROBUST_BUFFER_ACCESS",
        "DLHAL_FORCE_FENCES",
        "DLHAL_FORCE_DESCRIPTOR_POOLS",
        "DLHAL_FORCE_RESERVED_ADDRESSES",
        "DLHAL_FORCE_NO_HOST_IMPORT",
        "DLHAL_FORCE_OWN_BUDGET",
        "DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY",
        "DLHAL_FORCE_ONE_QUEUE",
        "DLHAL_FORCE_NO_TIMESTAMPS",
        "DLHAL_FORCE_PIPELINES_BETWEEN_SUBMISSIONS",
    ] {
        let environment = [
            ("VK_DRIVER_FILES", lavapipe()),
            ("DLHAL_VALIDATION", "1".to_owned()),
            (fallback, "1".to_owned()),
        ];
        let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
        run("child_creates_every_device_under_validation", &environment);
    }
}

/// Installs an implicit layer that lets no instance be created, for processes whose
/// `XDG_DATA_HOME` is the folder.
fn install_refusing_layer(folder: &Folder) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/layers/refusing_layer.c");
    let library = folder.0.join("librefusing_layer.so");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&library, &source])
        .output()
        .expect("the C compiler cc does not start");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    folder.file(
        "vulkan/implicit_layer.d/refusing.json",
        &format!(
            r#"{{"file_format_version":"1.1.2","layer":{{"name":"VK_LAYER_dlhal_refusing",
            "type":"GLOBAL","library_path":"{}","api_version":"1.3.0",
            "implementation_version":"1","description":"refuses",
            "disable_environment":{{"NO_REFUSING_LAYER":"1"}}}}}}"#,
            library.display()
        ),
    );
    folder.0.display().to_string()
}

#[test]
fn a_broken_implicit_layer_is_diagnosed_and_can_be_kept_out() {
    let folder = Folder::new("layer");
    let data = install_refusing_layer(&folder);
    let lavapipe = lavapipe();
    let with_layer = [("XDG_DATA_HOME", data.as_str()), ("VK_DRIVER_FILES", lavapipe.as_str())];

    let text = run("child_prints_adapters", &with_layer);
    assert!(text.contains("failed: unavailable") && text.contains("vkCreateInstance"), "{text}");
    assert!(text.contains("VK_LAYER_dlhal_refusing"), "{text}");
    let text = run("child_prints_diagnosis", &with_layer);
    assert!(text.contains("VK_LAYER_dlhal_refusing [implicit]: active"), "{text}");

    let kept_out = [with_layer[0], with_layer[1], ("DLHAL_DISABLE_IMPLICIT_LAYERS", "1")];
    let text = run("child_prints_adapters", &kept_out);
    assert!(text.contains("found 1"), "{text}");
    let text = run("child_prints_diagnosis", &kept_out);
    assert!(text.contains("VK_LAYER_dlhal_refusing [implicit]: not active"), "{text}");
}
