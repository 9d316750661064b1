//! A folder for the files that child processes share, gone in the end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use dlhal::{DlhalStatus, Error, Result};

/// The folder.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dlhal-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)
            .map_err(|error| Error::new(DlhalStatus::Io, format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
