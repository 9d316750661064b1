//! What drivers are known to do wrongly.

use ash::vk::DriverId;

use super::snapshot::{DriverNames, Snapshot};

/// `VkPhysicalDeviceProperties::vendorID` of its devices.
const NVIDIA: u32 = 0x10de;

/// What to know of a driver's results before trusting them; empty for most.
///
/// The rule for Mesa's software driver: 22.3 (Debian 12's 22.3.6) was seen to compute workgroup
/// reductions wrongly, 25.0 (25.0.7) to compute them rightly; versions before 22.3 are taken to be
/// no better, versions in between were not checked.
pub(crate) fn warnings(snapshot: &Snapshot) -> Vec<String> {
    let Some(driver) = &snapshot.driver else { return Vec::new() };
    if driver.id != DriverId::MESA_LLVMPIPE.as_raw() {
        return Vec::new();
    }
    let verdict = match mesa_version(driver) {
        Some(version) if version >= (25, 0) => return Vec::new(),
        Some(version) if version <= (22, 3) => {
            "computes workgroup reductions wrongly (known of Mesa 22.3)"
        }
        Some(_) => {
            "is not verified: Mesa 22.3 computes workgroup reductions wrongly, 25.0 is right"
        }
        None => "does not tell its version; Mesa 22.3 computes workgroup reductions wrongly",
    };
    vec![format!(
        "the software driver {} ({}) {verdict}; install Mesa 25.0 or newer (Debian 12: \
         mesa-vulkan-drivers of bookworm-backports) or choose another driver by VK_DRIVER_FILES",
        driver.name, driver.info
    )]
}

/// Whether a pipeline that is created while another thread submits may be broken.
///
/// Seen of NVIDIA's 580.159.04 on an H200: the first dispatch of such a pipeline never ends, and
/// the device hangs (docs/performance.md, "A hang of the H200"). Its other versions are taken to be
/// no better: what it costs is small.
pub(crate) fn pipelines_between_submissions(snapshot: &Snapshot) -> bool {
    match &snapshot.driver {
        Some(driver) => driver.id == DriverId::NVIDIA_PROPRIETARY.as_raw(),
        None => snapshot.vendor_id == NVIDIA,
    }
}

/// Major and minor out of `Mesa 25.0.7-2 (LLVM 15.0.6)`.
fn mesa_version(driver: &DriverNames) -> Option<(u32, u32)> {
    let version = driver.info.split_whitespace().skip_while(|word| *word != "Mesa").nth(1)?;
    let mut parts = version.split(|char: char| !char.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::recorded::{h200, lavapipe, lavapipe_22};
    use super::*;

    fn warnings_of(info: &str) -> Vec<String> {
        let mut snapshot = lavapipe();
        snapshot.driver.as_mut().unwrap().info = info.to_owned();
        warnings(&snapshot)
    }

    #[test]
    fn debian_12s_own_lavapipe_is_known_wrong_and_told_what_to_install() {
        let [warning] = &warnings(&lavapipe_22())[..] else { panic!() };
        assert!(warning.contains("computes workgroup reductions wrongly"), "{warning}");
        assert!(warning.contains("bookworm-backports"), "{warning}");
    }

    #[test]
    fn mesa_25_is_not_warned_of() {
        assert_eq!(warnings(&lavapipe()), Vec::<String>::new());
        assert_eq!(warnings_of("Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)"), Vec::<String>::new());
        assert_eq!(warnings_of("Mesa 26.1.0 (LLVM 20.1.0)"), Vec::<String>::new());
    }

    #[test]
    fn versions_in_between_are_said_to_be_not_verified() {
        for info in ["Mesa 23.1.0 (LLVM 15.0.6)", "Mesa 24.3.4-1 (LLVM 19.1.0)"] {
            let [warning] = &warnings_of(info)[..] else { panic!() };
            assert!(warning.contains("not verified"), "{warning}");
        }
    }

    #[test]
    fn a_version_that_cannot_be_read_is_said_to_be_unknown() {
        let [warning] = &warnings_of("git-1234abcd")[..] else { panic!() };
        assert!(warning.contains("does not tell its version"), "{warning}");
    }

    #[test]
    fn only_nvidias_pipelines_are_created_between_submissions() {
        assert!(pipelines_between_submissions(&h200()));
        assert!(!pipelines_between_submissions(&lavapipe()));
        let mut unnamed = h200();
        unnamed.driver = None;
        assert!(pipelines_between_submissions(&unnamed), "by its vendor");
        unnamed.vendor_id = 0x1002;
        assert!(!pipelines_between_submissions(&unnamed));
        let mut nvk = h200();
        nvk.driver.as_mut().unwrap().id = DriverId::MESA_NVK.as_raw();
        assert!(!pipelines_between_submissions(&nvk));
    }

    #[test]
    fn other_drivers_are_not_judged_by_mesas_versions() {
        let mut snapshot = h200();
        snapshot.driver.as_mut().unwrap().info = "22.3.6".to_owned();
        assert_eq!(warnings(&snapshot), Vec::<String>::new());
    }
}
