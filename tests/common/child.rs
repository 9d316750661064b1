//! Tests in processes of their own, since the environment says which way the library goes and since
//! validation messages count for the process.

use std::process::Command;

/// Runs one of this binary's ignored tests behind validation, with variables set and whatever else
/// `prepare` does. What it printed.
pub(crate) fn run(
    test: &str,
    environment: &[(&str, &str)],
    prepare: impl FnOnce(&mut Command),
) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test, "--nocapture"]);
    command.env("DLHAL_VALIDATION", std::env::var("DLHAL_VALIDATION").unwrap_or("1".to_owned()));
    prepare(&mut command);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test} {environment:?}: {}\n{text}", output.status);
    assert!(text.contains("1 passed"), "{test} {environment:?}: the test did not run\n{text}");
    text.into_owned()
}
