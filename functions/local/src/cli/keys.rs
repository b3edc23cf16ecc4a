//! The arguments that are about keys.

use std::path::PathBuf;

use clap::Args;

const SIGNATURES: &str = "Signatures";

/// For what is published here.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeyArgs {
    /// A private key that signs what is published. May be repeated: each of them signs.
    #[arg(long, help_heading = SIGNATURES, value_name = "FILE")]
    pub(crate) signing_key: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}

/// For what others have published.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TrustArgs {
    /// A public key. What is published has to be signed by it, or by another one of these. May be repeated.
    #[arg(long, help_heading = SIGNATURES, value_name = "FILE")]
    pub(crate) verify_key: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// The file to write the private key to; the public one goes beside it, with `.pub` at its end. Neither may exist.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
