//! The arguments of the commands that copy mirrors.

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser},
};
use layout::{CatalogName, Sha256};
use sync::Address;

use super::{S3Args, StoreArgs, TrustArgs};
use crate::stores::StorePlace;

#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// The URL of a mirror (a CDN, a reader, any static file server over a store's folder), or a store.
    #[arg(value_name = "FROM", value_parser = FromPlace::parser())]
    pub(crate) from: FromPlace,
    /// The store to bring up to date: a folder, or s3://BUCKET[/PREFIX].
    #[arg(value_name = "TO", value_parser = StorePlace::parser())]
    pub(crate) to: StorePlace,
    /// Copy only these catalogs. Default: all that FROM lists in its catalogs.json.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
    /// Keep going, and look for changes at this interval.
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "10m", value_parser = humantime::parse_duration)]
    pub(crate) watch: Option<Duration>,
    /// Move all.json, the index and the image too. Default: make them of the shards, unless FROM is a folder.
    #[arg(long)]
    pub(crate) fetch_all: bool,
    /// Hash again what TO holds, and replace what is damaged.
    #[arg(long)]
    pub(crate) recheck: bool,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
    /// A bundle of certificates to trust besides the system's. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// A file of header fields to send to FROM, one a line, such as `Authorization: Bearer ...`.
    #[arg(long, value_name = "FILE")]
    pub(crate) header_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// Take a state with a lower serial than the one that is there.
    #[arg(long)]
    pub(crate) allow_rollback: bool,
    /// Take a state that does not descend from the one that is there.
    #[arg(long)]
    pub(crate) allow_diverged: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The archive to write, or `-` for standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// Leave out what the state with this content hash names. May be repeated.
    #[arg(long, value_name = "CONTENT_HASH", conflicts_with = "receipt")]
    pub(crate) since: Vec<Sha256>,
    /// Leave out what the other side holds, as its `catalog-mirror receipt` says.
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Pack all.json, the index and the image too, rather than let the other side make them of the shards.
    #[arg(long)]
    pub(crate) whole: bool,
    /// Write volumes of at most this size, such as 4GiB: FILE.001.tar, FILE.002.tar ...
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) volume_size: Option<u64>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Export only these catalogs.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Write afterwards what the store holds, for the next export.
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// All volumes of the archive, in any order, or `-` for one on standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Receipt {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Only of these catalogs.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

/// Where a copy comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FromPlace {
    /// A mirror behind HTTP.
    Http(Address),
    /// A store.
    Store(StorePlace),
}

impl FromPlace {
    fn parse(text: OsString) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        match text
            .to_str()
            .filter(|text| text.starts_with("http://") || text.starts_with("https://"))
        {
            Some(text) => Ok(Self::Http(text.parse()?)),
            None => Ok(Self::Store(StorePlace::parse(text)?)),
        }
    }

    pub(super) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(Self::parse)
    }
}

/// Without secrets.
impl fmt::Display for FromPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(address) => address.fmt(f),
            Self::Store(place) => place.fmt(f),
        }
    }
}

impl From<&AllowArgs> for sync::Allow {
    fn from(args: &AllowArgs) -> Self {
        Self {
            rollback: args.allow_rollback,
            diverged: args.allow_diverged,
        }
    }
}

/// `700MB`, `4GiB`, `650MiB` or plain bytes.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        _ => return Err("a size is a number and kB, MB, GB, KiB, MiB or GiB".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "a size starts with a number".to_owned())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "the size is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("10", 10), ("4GiB", 4 << 30), ("700MB", 700_000_000), ("1 KiB", 1024)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", "-1", "1.5GiB", "1TiB", "99999999999GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn from_is_a_url_only_where_it_says_so() {
        let parse = |text: &str| FromPlace::parse(text.into());
        assert!(matches!(parse("https://cdn.example/x"), Ok(FromPlace::Http(_))));
        assert!(matches!(parse("./http"), Ok(FromPlace::Store(StorePlace::Folder(_)))));
        assert!(parse("https://cdn.example/?token=1").is_err());
    }
}
