//! The shell scripts as files: what a script loads must not replace what it loaded before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::cargo;

/// Returns the names of the functions that a text of bash defines at the beginning of a line.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (name, _) = line.split_once("()")?;
        let plain = name
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_');
        if name.is_empty() || !plain {
            return None;
        }
        Some(name)
    })
}

/// Returns the files that a script loads with `use NAME...`, which finds them in scripts/lib.
fn loaded(script: &str) -> Vec<PathBuf> {
    let names = script
        .lines()
        .filter_map(|line| line.strip_prefix("use "))
        .flat_map(str::split_whitespace);
    let files = ["common"].into_iter().chain(names);
    files
        .map(|name| cargo::root().join(format!("scripts/lib/{name}.sh")))
        .collect()
}

/// Returns the scripts that load files.
fn scripts() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["scripts", "scripts/checks"] {
        for entry in fs::read_dir(cargo::root().join(folder)).expect("the folder can be listed") {
            let path = entry.expect("the folder can be listed").path();
            let loads = fs::read_to_string(&path).is_ok_and(|text| text.contains("\nuse "));
            if loads {
                found.push(path);
            }
        }
    }
    found
}

/// A second function of one name replaces the first, and the part that wanted the first fails
/// where it is run alone.
#[test]
fn loaded_files_define_each_function_once() {
    let scripts = scripts();
    assert!(scripts.len() >= 6, "{scripts:?}");
    for script in scripts {
        let text = fs::read_to_string(&script).unwrap();
        let mut files = loaded(&text);
        files.push(script.clone());
        let mut places: BTreeMap<String, Vec<&Path>> = BTreeMap::new();
        for file in &files {
            let text = fs::read_to_string(file).unwrap_or_else(|_| panic!("{}", file.display()));
            for name in functions(&text) {
                places.entry(name.to_owned()).or_default().push(file);
            }
        }
        places.retain(|_, files| files.len() > 1);
        assert!(places.is_empty(), "{}: {places:?}", script.display());
    }
}

#[test]
fn functions_are_found_at_the_beginning_of_lines() {
    let text = "a() {\n  b() { :; }\n}\nc_1() { echo; }\necho ()\n# d()\n";
    assert_eq!(functions(text).collect::<Vec<_>>(), ["a", "c_1"]);
}

/// Python finds a module first in the folder of the script that it runs, so a script named as a
/// module of Python replaces it for all others.
#[test]
fn python_script_has_no_name_of_standard_module() {
    let listed = Command::new("python3")
        .args(["-c", "import sys; print(*sys.stdlib_module_names)"])
        .output()
        .expect("python3 runs");
    let modules = String::from_utf8(listed.stdout).unwrap();
    let modules: Vec<&str> = modules.split_whitespace().collect();
    assert!(modules.contains(&"typing"), "{modules:?}");
    let mut count = 0;
    for entry in fs::read_dir(cargo::root().join("scripts/lib")).expect("the folder can be listed")
    {
        let path = entry.expect("the folder can be listed").path();
        if path.extension().is_some_and(|ending| ending == "py") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(
                !modules.contains(&&*name),
                "{name} hides a module of Python"
            );
            count += 1;
        }
    }
    assert!(count > 10, "only {count} scripts were found");
}
