mod tree;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ::sync::{ArchiveError, Pack, PackOptions, Receipt, WrittenVolume};
use clap::Args;
use config::byte_size;
use inspect::published;
use model::CatalogName;
use serde_json::json;
use store::Store;

use self::tree::TreeArgs;
use crate::args::{Access, StoreArgs};
use crate::table::{Column, Table, print_done};
use terminal::{bytes, print_bytes, print_json, until_closed};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Archive to write: FILE.tar is written as FILE.001.tar. A folder gets one that is named by
    /// catalog, day and content hash, and `-` is standard output.
    #[arg(long, value_name = "FILE", required_unless_present = "static")]
    to: Option<PathBuf>,
    #[command(flatten)]
    tree: TreeArgs,
    /// Leave out the objects of the state with this content hash, or with these first digits of it.
    /// May be repeated.
    #[arg(long, value_name = "CONTENT_HASH", conflicts_with = "receipt")]
    since: Vec<String>,
    /// Leave out the objects in this output of `catalog-mirror receipt`.
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Pack all.json, the index and the image too. Default: the other side builds them from the
    /// shards.
    #[arg(long)]
    whole: bool,
    /// Write volumes of at most this size, such as 700MB or 4GiB: FILE.001.tar, FILE.002.tar and so
    /// on. Default: one volume.
    #[arg(long, value_name = "SIZE", value_parser = byte_size)]
    volume_size: Option<u64>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Catalogs to export. Default: all of the store.
    #[arg(value_name = "NAME")]
    names: Vec<CatalogName>,
}

#[derive(Debug, Args)]
pub(crate) struct ReceiptArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Catalogs to include. Default: all of the store.
    #[arg(value_name = "NAME")]
    names: Vec<CatalogName>,
}

impl ExportArgs {
    /// Returns true if the command runs until a signal ends it.
    pub(crate) const fn runs_for_long(&self) -> bool {
        self.tree.watch.is_some()
    }
}

#[expect(clippy::disallowed_methods, reason = "only the own store is read")]
pub(crate) async fn run(args: ExportArgs) -> anyhow::Result<()> {
    let Some(mut to) = args.to.clone() else {
        return tree::run(&args.tree, &args.store, args.json).await;
    };
    let is_url = to.to_string_lossy().contains("://");
    anyhow::ensure!(!is_url, "--to names a file or a folder, not a URL");
    let is_special = to.exists() && !to.is_dir() && !to.is_file();
    anyhow::ensure!(
        !is_special,
        "--to {} is not a regular file: write - for standard output",
        to.display()
    );
    let store = args.store.open_alone(Access::Read).await?;
    let names = published::some_names(&store, &args.names).await?;
    let options = PackOptions {
        since: since(&store, &names, &args).await?,
        whole: args.whole,
        volume_bytes: args.volume_size,
        exported_at: Some(SystemTime::now()),
    };
    let pack = Pack::plan(store, &names, &options).await?;
    if to.is_dir() {
        to.push(pack.manifest().file_name());
    }
    let is_file = to != Path::new("-");
    let json = args.json;
    // An archive is written and synced by blocking calls, for minutes.
    let (pack, volumes) =
        tokio::task::spawn_blocking(move || write(&to, args.volume_size, pack)).await??;
    if is_file && json {
        let manifest = pack.manifest();
        print_json(&json!({
            "catalogs": manifest.catalogs,
            "objects": manifest.objects.len(),
            "bytes": manifest.objects.iter().map(|object| object.size).sum::<u64>(),
            "volumes": volumes,
        }))?;
    } else if is_file {
        print_done(&volumes, false)?;
        let packed = pack.manifest().catalogs.iter();
        let hashes: BTreeSet<_> = packed.map(|packed| packed.content_hash).collect();
        let options: String = hashes
            .iter()
            .map(|hash| format!(" --since {hash}"))
            .collect();
        terminal::print_done(&format!(
            "what changes after this: catalog-mirror export{options}"
        ))?;
    }
    Ok(())
}

/// Returns the states that the archive leaves out.
async fn since(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
    args: &ExportArgs,
) -> anyhow::Result<Receipt> {
    let Some(path) = &args.receipt else {
        let mut hashes = Vec::new();
        for digits in &args.since {
            hashes.push(published::content_hash(store, names, digits).await?);
        }
        return Ok(Receipt::of_contents(&**store, names, &hashes).await?);
    };
    Ok(Receipt::read(path)?)
}

/// Writes all volumes. Returns their files: none for an archive on standard output.
fn write(
    to: &Path,
    volume_size: Option<u64>,
    pack: Pack,
) -> anyhow::Result<(Pack, Vec<WrittenVolume>)> {
    if to == Path::new("-") {
        anyhow::ensure!(
            volume_size.is_none(),
            "volumes need files, not standard output"
        );
        match pack.write(1, io::BufWriter::new(io::stdout().lock())) {
            Err(ArchiveError::Write(error)) => until_closed(Err(error))?,
            written => drop(written?),
        }
        return Ok((pack, Vec::new()));
    }
    let volumes = pack.write_files(to)?;
    Ok((pack, volumes))
}

pub(crate) async fn run_receipt(args: ReceiptArgs) -> anyhow::Result<()> {
    let store = args.store.open_alone(Access::Read).await?;
    let bytes = published::receipt(&store, &args.names).await?;
    print_bytes(&bytes)
}

impl Table for WrittenVolume {
    const COLUMNS: &'static [Column<Self>] = &[
        ("VOLUME", |volume| volume.file.clone()),
        ("SIZE", |volume| bytes(volume.stored.size)),
        ("SHA256", |volume| volume.stored.sha256.to_string()),
    ];
}
