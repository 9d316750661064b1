//! Manifests, tested in folders of their own.

use super::*;

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("dlhal-manifests-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn environment<'a>(variables: &'a [(&'a str, &'a str)]) -> Environment<'a> {
    Environment::new(|name| {
        variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

fn states(variables: &[(&str, &str)]) -> Vec<String> {
    drivers(&environment(variables)).iter().map(ToString::to_string).collect()
}

fn driver_json(library: &str) -> String {
    format!(
        r#"{{"file_format_version":"1.0.0","ICD":{{"library_path":"{library}","api_version":"1.3.0"}}}}"#
    )
}

#[test]
fn each_broken_driver_file_is_listed_with_its_own_reason() {
    let folder = Folder::new("broken");
    let files = [
        (folder.path() + "/nothing.json", "the file is missing"),
        (folder.file("text.json", "hello"), "the file is not a manifest"),
        (folder.file("layer.json", r#"{"layer":{"name":"x"}}"#), "missing field `ICD`"),
        (folder.file("gone.json", &driver_json("./libnothing.so")), "cannot open shared object"),
        (folder.file("libc.json", &driver_json("libc.so.6")), "is no Vulkan driver"),
    ];
    let list = files.each_ref().map(|(path, _)| path.as_str()).join(":");
    let states = states(&[("VK_DRIVER_FILES", &list)]);
    assert_eq!(states.len(), files.len());
    for ((path, reason), state) in files.iter().zip(&states) {
        assert!(state.starts_with(path.as_str()) && state.contains(reason), "{state}");
    }
}

#[test]
fn a_relative_library_is_looked_for_beside_its_manifest() {
    let folder = Folder::new("relative");
    let file = folder.file("relative.json", &driver_json("../lib/libx.so"));
    let [state] = &states(&[("VK_DRIVER_FILES", &file)])[..] else { panic!() };
    assert!(state.contains(&format!("{}/../lib/libx.so", folder.path())), "{state}");
}

#[test]
fn a_folder_stands_for_the_manifests_in_it() {
    let folder = Folder::new("folder");
    folder.file("b.json", "");
    folder.file("a.json", "");
    folder.file("readme.txt", "");
    let states = states(&[("VK_DRIVER_FILES", &folder.path())]);
    assert_eq!(states.len(), 2);
    assert!(states[0].contains("a.json") && states[1].contains("b.json"), "{states:?}");
}

#[test]
fn the_standard_folders_are_searched_unless_driver_files_are_named() {
    let folder = Folder::new("standard");
    folder.file("data/vulkan/icd.d/found.json", "");
    let data = folder.path() + "/data";
    let searched = states(&[("XDG_DATA_DIRS", &data), ("XDG_CONFIG_DIRS", &data)]);
    assert!(searched.iter().any(|state| state.contains("found.json")), "{searched:?}");
    let named = states(&[("XDG_DATA_DIRS", &data), ("VK_ICD_FILENAMES", "/nothing.json")]);
    assert_eq!(named, ["/nothing.json: the file is missing"]);
}

#[test]
fn driver_files_win_over_the_older_variable() {
    let both = [("VK_DRIVER_FILES", "/new.json"), ("VK_ICD_FILENAMES", "/old.json")];
    assert_eq!(states(&both), ["/new.json: the file is missing"]);
}

#[test]
fn a_filter_variable_that_leaves_a_driver_out_is_named() {
    let left_out = states(&[
        ("VK_DRIVER_FILES", "/a/nvidia_icd.json:/a/lvp_icd.json"),
        ("VK_LOADER_DRIVERS_DISABLE", "*nvidia*"),
    ]);
    assert_eq!(
        left_out,
        [
            "/a/nvidia_icd.json: left out, VK_LOADER_DRIVERS_DISABLE=*nvidia*",
            "/a/lvp_icd.json: the file is missing"
        ]
    );
    let selected =
        states(&[("VK_DRIVER_FILES", "/a/nvidia_icd.json"), ("VK_LOADER_DRIVERS_SELECT", "lvp*")]);
    assert_eq!(selected, ["/a/nvidia_icd.json: left out, VK_LOADER_DRIVERS_SELECT=lvp*"]);
}

#[test]
fn home_may_be_unset() {
    let folders = search_folders(&environment(&[]), "icd.d");
    assert!(folders.contains(&PathBuf::from("/etc/vulkan/icd.d")));
    assert!(folders.contains(&PathBuf::from("/usr/share/vulkan/icd.d")));
    let with_home = search_folders(&environment(&[("HOME", "/home/x")]), "icd.d");
    assert!(with_home.contains(&PathBuf::from("/home/x/.local/share/vulkan/icd.d")));
}

#[test]
fn globs_are_read_as_the_loader_reads_them() {
    for (globs, name, implicit, matches) in [
        ("VK_LAYER_a", "vk_layer_A", false, true),
        ("*_a", "VK_LAYER_a", false, true),
        ("VK_*", "VK_LAYER_a", false, true),
        ("*LAYER*", "VK_LAYER_a", false, true),
        ("LAYER", "VK_LAYER_a", false, false),
        ("x,~implicit~", "VK_LAYER_a", true, true),
        ("~implicit~", "VK_LAYER_a", false, false),
        ("~explicit~", "VK_LAYER_a", false, true),
        ("~all~", "VK_LAYER_a", true, true),
        ("", "VK_LAYER_a", true, false),
    ] {
        assert_eq!(matches_any(globs, name, implicit), matches, "{globs} {name} {implicit}");
    }
}

/// Whether the implicit layer of `json` is active in an environment.
fn implicit_layer(json: &str, variables: &[(&str, &str)]) -> Result<(bool, String), String> {
    let folder = Folder::new(&format!("layer{}{}", json.len(), variables.len()));
    let file = folder.file("layer.json", json);
    let mut all = variables.to_vec();
    all.push(("VK_IMPLICIT_LAYER_PATH", &file));
    all.push(("VK_LAYER_PATH", "/nowhere"));
    let found: Vec<_> =
        layers(&environment(&all)).into_iter().filter(|layer| layer.implicit).collect();
    let [layer] = &found[..] else { panic!("{found:?}") };
    layer.active.clone()
}

const OVERLAY: &str = r#"{"layer":{"name":"VK_LAYER_x_overlay",
    "disable_environment":{"NO_OVERLAY":"1"}}}"#;
const OPTIONAL: &str = r#"{"layers":[{"name":"VK_LAYER_x_optional",
    "enable_environment":{"OVERLAY":"1"},"disable_environment":{"NO_OVERLAY":"1"}}]}"#;

#[test]
fn an_implicit_layer_is_active_unless_a_variable_disables_it() {
    assert!(implicit_layer(OVERLAY, &[]).unwrap().0);
    let (active, reason) = implicit_layer(OVERLAY, &[("NO_OVERLAY", "1")]).unwrap();
    assert!(!active && reason.contains("NO_OVERLAY"), "{reason}");
    let disable = [("VK_LOADER_LAYERS_DISABLE", "~implicit~"), ("HOME", "/")];
    let (active, reason) = implicit_layer(OVERLAY, &disable).unwrap();
    assert!(!active && reason.contains("VK_LOADER_LAYERS_DISABLE"), "{reason}");
}

#[test]
fn an_implicit_layer_that_waits_for_a_variable_is_active_only_with_it() {
    assert!(!implicit_layer(OPTIONAL, &[]).unwrap().0);
    assert!(implicit_layer(OPTIONAL, &[("OVERLAY", "1")]).unwrap().0);
    assert!(!implicit_layer(OPTIONAL, &[("OVERLAY", "0"), ("HOME", "/")]).unwrap().0);
}

#[test]
fn a_broken_layer_file_is_listed_with_its_reason() {
    let reason = implicit_layer("{", &[]).unwrap_err();
    assert!(reason.contains("not a manifest"), "{reason}");
}

#[test]
fn an_explicit_layer_is_active_only_when_asked_for() {
    let folder = Folder::new("explicit");
    let file = folder.file("layer.json", r#"{"layer":{"name":"VK_LAYER_x_capture"}}"#);
    let active = |variables: &[(&str, &str)]| {
        let mut all = variables.to_vec();
        all.extend([("VK_LAYER_PATH", file.as_str()), ("VK_IMPLICIT_LAYER_PATH", "/nowhere")]);
        let found = layers(&environment(&all));
        let layer = found.into_iter().find(|layer| layer.name == "VK_LAYER_x_capture").unwrap();
        layer.active.unwrap().0
    };
    assert!(!active(&[]));
    assert!(active(&[("VK_INSTANCE_LAYERS", "VK_LAYER_x_other:VK_LAYER_x_capture")]));
    assert!(active(&[("VK_LOADER_LAYERS_ENABLE", "*capture")]));
}
