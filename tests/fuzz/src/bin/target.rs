//! Main program of all targets; the environment variable `FUZZ_TARGET` says which one. libFuzzer
//! calls it with one input after another. Without libFuzzer, it is called with the files on the
//! command line.
#![cfg_attr(fuzzing, no_main)]
#![expect(clippy::print_stdout, reason = "what it prints is its result")]

use std::{env, sync::LazyLock};

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = env::var("FUZZ_TARGET").unwrap_or_default();
    let target = fuzz::TARGETS.iter().find(|(other, _)| *other == name);
    target.expect("FUZZ_TARGET is the name of a target").1
});

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| TARGET(input));

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    for path in env::args_os().skip(1) {
        TARGET(&std::fs::read(&path)?);
        println!("{}: nothing is wrong", path.display());
    }
    Ok(())
}
