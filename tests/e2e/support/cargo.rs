use std::{env, path::PathBuf, process::Command, sync::OnceLock};

use serde_json::Value;

/// Returns the root folder of the source tree.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the tree")
        .to_owned()
}

/// Returns a command of the cargo that runs these tests, without the variables that name their
/// package: the build script of ring depends on them, so that ring and all that uses it would be
/// compiled here, and again by the next build.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root());
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in
        names.filter(|name| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_"))
    {
        command.env_remove(name);
    }
    command
}

/// Returns `cargo metadata` of the workspace for this machine and for the Worker, read once.
pub(crate) fn metadata() -> &'static Value {
    static METADATA: OnceLock<Value> = OnceLock::new();
    METADATA.get_or_init(|| {
        let host = said(Command::new("rustc").arg("-vV"));
        let host = host
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .expect("rustc names its host")
            .to_owned();
        let fixed = "metadata --format-version=1 --locked --filter-platform wasm32-unknown-unknown --filter-platform";
        let arguments = fixed.split(' ').chain([host.as_str()]);
        serde_json::from_str(&said(command().args(arguments))).expect("cargo metadata prints JSON")
    })
}

/// Runs a command, which must succeed, and returns its standard output.
pub(crate) fn said(command: &mut Command) -> String {
    let output = command.output().expect("the command can be run");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("the output is text")
}
