use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use terminal::{print_json, print_line};
use trust::SigningKey;

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// Print JSON instead of a line.
    #[arg(long)]
    json: bool,
    /// File for the private key. The public key is written beside it, with `.pub` appended. Neither
    /// may exist.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &KeygenArgs) -> anyhow::Result<()> {
    let private = SigningKey::generate_pem()?;
    let public = SigningKey::from_pem(private.as_bytes())?.public();
    let public_path = args.file.with_added_extension("pub");
    anyhow::ensure!(
        !public_path.exists(),
        "{} exists already",
        public_path.display()
    );
    // Only the owner may read the private key, from the first byte on.
    write_new(&args.file, &private, 0o600)?;
    if let Err(error) = write_new(&public_path, &public.to_pem(), 0o644) {
        // A private key without its public key is of no use, and would block the next attempt.
        fs::remove_file(&args.file).ok();
        return Err(error);
    }
    if args.json {
        return print_json(&json!({
            "keyId": public.id(),
            "privateKey": args.file.display().to_string(),
            "publicKey": public_path.display().to_string(),
        }));
    }
    print_line(&format!("{}  {}", public.id(), public_path.display()))
}

/// Writes a new file. An existing one is never replaced: the key in it may be in use.
fn write_new(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let file = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}
