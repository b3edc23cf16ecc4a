//! Writes the seeds of all targets, and prints the names of the targets:
//! `seeds FOLDER [CATALOG...]`, where a catalog is a folder of FBC files.
#![expect(clippy::print_stdout, reason = "what it prints is its result")]

use std::{env, fs, io, path::PathBuf};

use fuzz::Seeds;

fn main() -> io::Result<()> {
    let mut folders = env::args_os().skip(1).map(PathBuf::from);
    let to = folders
        .next()
        .ok_or_else(|| io::Error::other("usage: seeds FOLDER [CATALOG...]"))?;
    let seeds = Seeds::new(&folders.collect::<Vec<_>>())?;
    for (target, seeds) in seeds.0 {
        let folder = to.join(target);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), seed)?;
        }
        println!("{target}");
    }
    Ok(())
}
