//! The files by which drivers and layers make themselves known to the loader, looked up the way the
//! loader does, to say why one of them was left out.

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What a manifest comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The library opens and is a driver.
    Works { library: String, api_version: String },
    /// A filter variable leaves it out.
    LeftOut(String),
    /// Missing, unreadable, not JSON, or its library does not open.
    Broken(String),
}

/// A driver's manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DriverManifest {
    pub(super) path: PathBuf,
    pub(super) state: State,
}

/// A layer by its manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LayerManifest {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) implicit: bool,
    /// Whether it is in every instance of this process, and why or why not; or what is broken.
    pub(super) active: Result<(bool, String), String>,
}

/// All driver manifests that the loader considers, in its order. Opens the drivers' libraries, and
/// leaves them open.
pub(super) fn drivers(environment: &Environment<'_>) -> Vec<DriverManifest> {
    let chosen = environment
        .get("VK_DRIVER_FILES")
        .map(|files| ("VK_DRIVER_FILES", files))
        .or_else(|| environment.get("VK_ICD_FILENAMES").map(|files| ("VK_ICD_FILENAMES", files)));
    let mut files = match &chosen {
        Some((_, files)) => listed(files),
        None => {
            let mut files = listed(&environment.get("VK_ADD_DRIVER_FILES").unwrap_or_default());
            files.extend(manifests_in(search_folders(environment, "icd.d")));
            files
        }
    };
    files.dedup();
    files
        .into_iter()
        .map(|path| {
            let state = match filter(environment, "DRIVERS", &file_name(&path), false) {
                Some(reason) => State::LeftOut(reason),
                None => driver_state(&path),
            };
            DriverManifest { path, state }
        })
        .collect()
}

/// All layers by their manifests: implicit ones first.
pub(super) fn layers(environment: &Environment<'_>) -> Vec<LayerManifest> {
    let folders = |chosen: &str, added: &str, folder: &str| match environment.get(chosen) {
        Some(paths) => listed(&paths),
        None => {
            let mut files = listed(&environment.get(added).unwrap_or_default());
            files.extend(manifests_in(search_folders(environment, folder)));
            files
        }
    };
    let implicit =
        folders("VK_IMPLICIT_LAYER_PATH", "VK_ADD_IMPLICIT_LAYER_PATH", "implicit_layer.d");
    let explicit = folders("VK_LAYER_PATH", "VK_ADD_LAYER_PATH", "explicit_layer.d");
    let mut layers: Vec<LayerManifest> =
        implicit.into_iter().flat_map(|path| layers_of(environment, path, true)).collect();
    layers.extend(explicit.into_iter().flat_map(|path| layers_of(environment, path, false)));
    layers
}

/// One line on what drivers there are, for an error's message.
pub(super) fn driver_summary() -> String {
    let environment = Environment::of_process();
    let found = drivers(&environment);
    if found.is_empty() {
        let folders: Vec<String> = search_folders(&environment, "icd.d")
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        return match environment.get("VK_DRIVER_FILES") {
            Some(_) => "VK_DRIVER_FILES names no driver file".to_owned(),
            None => format!("no driver file in {}", folders.join(", ")),
        };
    }
    let list: Vec<String> = found.iter().map(DriverManifest::to_string).collect();
    format!("driver files: {}", list.join("; "))
}

/// The driver files that work, and the others with what is wrong with them.
pub(super) fn working_and_broken_drivers() -> (Vec<String>, Vec<String>) {
    let (mut working, mut broken) = (Vec::new(), Vec::new());
    for driver in drivers(&Environment::of_process()) {
        match driver.state {
            State::Works { .. } => working.push(driver.path.display().to_string()),
            State::Broken(_) => broken.push(driver.to_string()),
            State::LeftOut(_) => {}
        }
    }
    (working, broken)
}

/// One line on the manifests, of drivers and layers, that are broken, for an error's message.
pub(super) fn fault_summary() -> String {
    let (_, mut faults) = working_and_broken_drivers();
    faults.extend(layers(&Environment::of_process()).into_iter().filter_map(|layer| {
        layer.active.err().map(|reason| format!("{}: {reason}", layer.path.display()))
    }));
    if faults.is_empty() {
        "all manifests of drivers and layers can be read".to_owned()
    } else {
        format!("broken manifests: {}", faults.join("; "))
    }
}

/// The names of the implicit layers that are in every instance of the process.
pub(super) fn active_implicit_layers() -> Vec<String> {
    layers(&Environment::of_process())
        .into_iter()
        .filter(|layer| layer.implicit && matches!(layer.active, Ok((true, _))))
        .map(|layer| layer.name)
        .collect()
}

impl std::fmt::Display for DriverManifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.state {
            State::Works { library, api_version } => {
                write!(f, "{path}: {library} opens (Vulkan {api_version})")
            }
            State::LeftOut(reason) => write!(f, "{path}: left out, {reason}"),
            State::Broken(reason) => write!(f, "{path}: {reason}"),
        }
    }
}

type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Environment variables, the process's or a test's.
pub(super) struct Environment<'a>(Box<Lookup<'a>>);

impl<'a> Environment<'a> {
    /// The process's.
    pub(super) fn of_process() -> Self {
        Self::new(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Any.
    pub(super) fn new(lookup: impl Fn(&str) -> Option<String> + 'a) -> Self {
        Self(Box::new(lookup))
    }

    /// A variable that is set and not empty; the loader treats empty ones as not set.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }
}

/// The folders that the loader searches for manifests on Linux, in its order.
pub(super) fn search_folders(environment: &Environment<'_>, folder: &str) -> Vec<PathBuf> {
    let home = environment.get("HOME");
    let under_home = |variable: &str, default: &str| {
        environment.get(variable).or_else(|| home.as_ref().map(|home| format!("{home}/{default}")))
    };
    let mut roots: Vec<String> = Vec::new();
    let mut add = |list: &str| roots.extend(list.split(':').map(str::to_owned));
    if let Some(config) = under_home("XDG_CONFIG_HOME", ".config") {
        add(&config);
    }
    add(&environment.get("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc/xdg".to_owned()));
    add("/usr/local/etc:/etc");
    if let Some(data) = under_home("XDG_DATA_HOME", ".local/share") {
        add(&data);
    }
    add(&environment
        .get("XDG_DATA_DIRS")
        .unwrap_or_else(|| "/usr/local/share:/usr/share".to_owned()));
    roots
        .iter()
        .filter(|root| !root.is_empty())
        .map(|root| Path::new(root).join("vulkan").join(folder))
        .collect()
}

/// The manifests in folders that exist, sorted by name within each.
fn manifests_in(folders: Vec<PathBuf>) -> Vec<PathBuf> {
    folders.iter().flat_map(|folder| manifests_of(folder)).collect()
}

fn manifests_of(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files
}

/// A variable's colon-separated files, folders replaced by the manifests in them.
fn listed(paths: &str) -> Vec<PathBuf> {
    paths
        .split(':')
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .flat_map(|path| if path.is_dir() { manifests_of(&path) } else { vec![path] })
        .collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Why the loader's filter variables leave a driver's manifest or a layer out.
fn filter(environment: &Environment<'_>, kind: &str, name: &str, implicit: bool) -> Option<String> {
    let disable = format!("VK_LOADER_{kind}_DISABLE");
    if let Some(globs) = environment.get(&disable)
        && matches_any(&globs, name, implicit)
    {
        return Some(format!("{disable}={globs}"));
    }
    let select = format!("VK_LOADER_{kind}_SELECT");
    match environment.get(&select) {
        Some(globs) if kind == "DRIVERS" && !matches_any(&globs, name, implicit) => {
            Some(format!("{select}={globs}"))
        }
        _ => None,
    }
}

/// Whether one of the comma-separated globs matches, as the loader reads them: `*` at either end,
/// case does not count, and `~all~`, `~implicit~`, `~explicit~` stand for kinds.
fn matches_any(globs: &str, name: &str, implicit: bool) -> bool {
    let name = name.to_ascii_lowercase();
    globs.split(',').map(str::to_ascii_lowercase).any(|glob| match glob.as_str() {
        "" => false,
        "~all~" | "*" | "**" => true,
        "~implicit~" => implicit,
        "~explicit~" => !implicit,
        glob => match (glob.strip_prefix('*'), glob.strip_suffix('*')) {
            (Some(_), Some(_)) => name.contains(&glob[1..glob.len() - 1]),
            (Some(end), None) => name.ends_with(end),
            (None, Some(start)) => name.starts_with(start),
            (None, None) => name == glob,
        },
    })
}

#[derive(Deserialize)]
struct DriverFile {
    #[serde(rename = "ICD")]
    icd: Icd,
}

#[derive(Deserialize)]
struct Icd {
    library_path: String,
    #[serde(default)]
    api_version: String,
}

fn driver_state(path: &Path) -> State {
    let file: DriverFile = match read(path) {
        Ok(file) => file,
        Err(reason) => return State::Broken(reason),
    };
    let library = library_path(path, &file.icd.library_path);
    match open_driver(&library) {
        Ok(()) => State::Works { library, api_version: file.icd.api_version },
        Err(reason) => State::Broken(reason),
    }
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "the file is missing".to_owned(),
        _ => format!("the file cannot be read: {error}"),
    })?;
    serde_json::from_str(&text).map_err(|error| format!("the file is not a manifest: {error}"))
}

/// A path with a folder in it is relative to the manifest; a bare name is left to the dynamic
/// linker.
fn library_path(manifest: &Path, library: &str) -> String {
    if library.contains('/') && !library.starts_with('/') {
        manifest.parent().unwrap_or(Path::new("")).join(library).to_string_lossy().into_owned()
    } else {
        library.to_owned()
    }
}

/// Opens a driver's library as the loader would, for the dynamic linker's reason if it refuses.
fn open_driver(library: &str) -> Result<(), String> {
    let name = CString::new(library).map_err(|_| "library_path has a zero byte".to_owned())?;
    // SAFETY: opening a library runs its initialisers, as the loader itself does with this file.
    // It is never closed, so that no thread-local destructor of it is left dangling.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(last_linker_error());
    }
    // SAFETY: the handle is open and the name is a C string.
    let symbol = unsafe { libc::dlsym(handle, c"vk_icdGetInstanceProcAddr".as_ptr()) };
    if symbol.is_null() {
        return Err(format!("{library} is no Vulkan driver: it has no vk_icdGetInstanceProcAddr"));
    }
    Ok(())
}

fn last_linker_error() -> String {
    // SAFETY: the text belongs to this thread until its next call of the dynamic linker.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the dynamic linker gives no reason".to_owned();
    }
    // SAFETY: as above; it is a C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[derive(Deserialize)]
struct LayerFile {
    layer: Option<Layer>,
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    name: String,
    #[serde(default)]
    enable_environment: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    disable_environment: std::collections::BTreeMap<String, String>,
}

fn layers_of(environment: &Environment<'_>, path: PathBuf, implicit: bool) -> Vec<LayerManifest> {
    match read::<LayerFile>(&path) {
        Ok(file) => file
            .layer
            .into_iter()
            .chain(file.layers)
            .map(|layer| LayerManifest {
                path: path.clone(),
                implicit,
                active: Ok(activity(environment, &layer, implicit)),
                name: layer.name,
            })
            .collect(),
        Err(reason) => {
            let name = file_name(&path);
            vec![LayerManifest { path, name, implicit, active: Err(reason) }]
        }
    }
}

/// Whether a layer is in every instance of the process, and what decides it.
fn activity(environment: &Environment<'_>, layer: &Layer, implicit: bool) -> (bool, String) {
    let enabled = ["VK_INSTANCE_LAYERS", "VK_LOADER_LAYERS_ENABLE"].into_iter().find(|variable| {
        let list = environment.get(variable).unwrap_or_default().replace(':', ",");
        matches_any(&list, &layer.name, implicit)
    });
    if let Some(variable) = enabled {
        return (true, format!("{variable} names it"));
    }
    if let Some(reason) = filter(environment, "LAYERS", &layer.name, implicit) {
        return (false, reason);
    }
    if !implicit {
        return (false, "explicit, nothing asks for it".to_owned());
    }
    if let Some(variable) =
        layer.disable_environment.keys().find(|variable| environment.get(variable).is_some())
    {
        return (false, format!("{variable} is set"));
    }
    match layer.enable_environment.iter().next() {
        None => (true, "implicit".to_owned()),
        Some((variable, value)) if environment.get(variable).as_ref() == Some(value) => {
            (true, format!("{variable}={value}"))
        }
        Some((variable, value)) => (false, format!("{variable}={value} would turn it on")),
    }
}

#[cfg(test)]
#[path = "manifests_tests.rs"]
mod tests;
