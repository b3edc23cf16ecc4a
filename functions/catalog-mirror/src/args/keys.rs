//! Keys of a command, and the configuration of files and keys.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use config::{Config, ConfigLoader, ConfigProblems};

const SIGNATURES: &str = "Signatures";

/// Keys of a mirror that publishes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeyArgs {
    /// Private key that signs publications. May be repeated: each key signs.
    #[arg(long, help_heading = SIGNATURES, value_name = "FILE")]
    pub(crate) signing_key: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}

/// Keys that verify what others have published.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TrustArgs {
    /// Public key. Publications must be signed by one of these keys. May be repeated.
    #[arg(long, help_heading = SIGNATURES, value_name = "FILE")]
    pub(crate) verify_key: Vec<PathBuf>,
}

/// Returns the configuration of files and keys, for commands that poll nothing.
pub(crate) fn files_and_keys(files: &[PathBuf], keys: &KeyArgs) -> Result<Config, ConfigProblems> {
    // These commands poll nothing, so the interval for catalogs without their own does not matter.
    loader(Duration::ZERO, files, keys).finish()
}

pub(crate) fn loader(interval: Duration, files: &[PathBuf], keys: &KeyArgs) -> ConfigLoader {
    let mut loader = ConfigLoader::new(interval);
    // Only this program links OpenPGP; the Lambda functions leave its crates out.
    #[cfg(feature = "openpgp")]
    loader.openpgp(trust::openpgp::read_keyring);
    files.iter().for_each(|file| loader.file(file));
    for file in &keys.signing_key {
        loader.signing_key("--signing-key", &file.display().to_string());
    }
    for file in &keys.trust.verify_key {
        loader.verify_key("--verify-key", &file.display().to_string());
    }
    loader
}
