use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use seal::SigningKey;

use crate::{cli::Keygen, exit::Exit};

pub(crate) fn run(args: &Keygen) -> anyhow::Result<Exit> {
    let private = SigningKey::generate_pem()?;
    let public = SigningKey::from_pem(private.as_bytes())?.public();
    let beside = beside(&args.file);
    anyhow::ensure!(!beside.exists(), "{} exists already", beside.display());
    write(&args.file, &private, 0o600)?;
    if let Err(error) = write(&beside, &public.to_pem(), 0o644) {
        // A private key without its public one is of no use, and would be in the way of the next try.
        fs::remove_file(&args.file).ok();
        return Err(error);
    }
    println!("{}  {}", public.id(), beside.display());
    Ok(Exit::Fine)
}

fn beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".pub");
    name.into()
}

/// A key that is there may be in use, so it is never replaced.
fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let mut file = file.with_context(failed)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(failed)
}
