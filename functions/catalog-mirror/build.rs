//! Records how the binary is built, and packs the example catalog image into it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let compiler = output_of(Command::new(variable("RUSTC")).arg("--version")).unwrap_or_default();
    let version = variable("CARGO_PKG_VERSION");
    println!("cargo::rustc-env=BUILD_VERSION={version} ({})", commit());
    let target = variable("TARGET");
    let profile = variable("PROFILE");
    let cryptography = match env::var_os("CARGO_CFG_FIPS") {
        Some(_) => "the FIPS module of AWS-LC",
        None => "ring",
    };
    println!(
        "cargo::rustc-env=BUILD_TOOLS={compiler} for {target} ({profile}), with {cryptography}"
    );
    pack_example(Path::new("example"));
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Returns the commit and its date, with `-dirty` for a changed tree. A source archive has no
/// commit.
fn commit() -> String {
    // A commit changes one of these; without them cargo would run this for every changed file of
    // the crate.
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/refs/heads");
    let described = output_of(Command::new("git").args([
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ]));
    let date = output_of(Command::new("git").args(["show", "--no-patch", "--format=%cs", "HEAD"]));
    match (described, date) {
        (Some(described), Some(date)) => format!("commit {described}, {date}"),
        _ => "commit unknown".to_owned(),
    }
}

/// Returns the standard output of a command that succeeds.
fn output_of(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}

/// Writes a table of the files of the OCI layout: relative path and bytes.
fn pack_example(root: &Path) {
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["", "blobs/sha256"] {
        let entries = fs::read_dir(root.join(folder)).expect("the example is part of the source");
        let paths = entries.flatten().map(|entry| entry.path());
        files.extend(paths.filter(|path| path.is_file()));
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(root).expect("listed below the root");
        let path = fs::canonicalize(&file).expect("a listed file exists");
        writeln!(table, "    ({name:?}, include_bytes!({path:?})),")
            .expect("a String takes everything");
    }
    table.push(']');
    let target = Path::new(&variable("OUT_DIR")).join("example.rs");
    fs::write(target, table).expect("cargo's OUT_DIR can be written");
}
