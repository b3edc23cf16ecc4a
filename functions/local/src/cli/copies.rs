//! Arguments of the commands that copy mirrors, and of `keygen`.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::Args;
use config::{byte_size, poll_interval};
use model::{CatalogName, Sha256};
use store::StorePlace;
use sync::Address;

use super::{ReportArgs, S3Args, StoreArgs, TrustArgs};

#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// URL of a mirror (a CDN, `serve`, any static file server over the folder of a store), or a store.
    #[arg(value_name = "FROM")]
    pub(crate) from: SyncOrigin,
    /// Store to bring up to date: a folder, or s3://BUCKET[/PREFIX].
    #[arg(value_name = "TO")]
    pub(crate) to: StorePlace,
    /// Catalogs to copy. Default: all that FROM lists in its catalogs.json.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
    /// Keep running and check for changes at this interval, from 1s to 365d.
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "10m", value_parser = poll_interval)]
    pub(crate) watch: Option<Duration>,
    /// Fetch all.json, the index and the image too. Default: build them from the shards, unless FROM is a folder.
    #[arg(long)]
    pub(crate) fetch_all: bool,
    /// Check the objects of TO against their hashes, and replace damaged ones.
    #[arg(long)]
    pub(crate) recheck: bool,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
    /// PEM bundle of certificates to trust in addition to the system's. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// File of header fields to send to FROM, one a line, such as `Authorization: Bearer ...`.
    #[arg(long, value_name = "FILE")]
    pub(crate) header_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// Accept a state with a lower serial than the present one.
    #[arg(long)]
    pub(crate) allow_rollback: bool,
    /// Accept a state that does not descend from the present one.
    #[arg(long)]
    pub(crate) allow_diverged: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Archive to write, or `-` for standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// Leave out the objects of the state with this content hash. May be repeated.
    #[arg(long, value_name = "CONTENT_HASH", conflicts_with = "receipt")]
    pub(crate) since: Vec<Sha256>,
    /// Leave out the objects in this output of `catalog-mirror receipt`.
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Pack all.json, the index and the image too. Default: the other side builds them from the shards.
    #[arg(long)]
    pub(crate) whole: bool,
    /// Write volumes of at most this size, such as 700MB or 4GiB: FILE.001.tar, FILE.002.tar and so on.
    #[arg(long, value_name = "SIZE", value_parser = byte_size)]
    pub(crate) volume_size: Option<u64>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Catalogs to export. Default: all of the store.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Write a receipt of the store to this file afterwards, for the next export.
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// All volumes of the archive, in any order, or `-` for one on standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReceiptArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Catalogs to include. Default: all of the store.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// File for the private key. The public key is written beside it, with `.pub` appended. Neither may exist.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// A mirror to copy from: the FROM of `sync` and `verify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyncOrigin {
    /// A mirror over HTTP or HTTPS, by its URL.
    Http(Address),
    /// A store that this program opens itself.
    Store(StorePlace),
}

impl FromStr for SyncOrigin {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("http://") || text.starts_with("https://") {
            Ok(Self::Http(text.parse()?))
        } else {
            Ok(Self::Store(text.parse()?))
        }
    }
}

impl SyncOrigin {
    /// Returns the store, if it is one.
    pub(crate) const fn store(&self) -> Option<&StorePlace> {
        match self {
            Self::Store(place) => Some(place),
            Self::Http(_) => None,
        }
    }
}

// Without user name and password, which a URL may contain.
impl fmt::Display for SyncOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(address) => address.fmt(f),
            Self::Store(place) => place.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_origin_scheme_decides_kind() {
        let parse = |text: &str| text.parse::<SyncOrigin>();
        assert!(matches!(parse("https://cdn.example/x"), Ok(SyncOrigin::Http(_))));
        assert!(matches!(parse("./http"), Ok(SyncOrigin::Store(StorePlace::Folder(_)))));
        assert!(parse("https://cdn.example/?token=1").is_err());
    }
}
