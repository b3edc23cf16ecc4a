use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use ::sync::{Archive, Importer, Manifest, SyncOptions, VolumeFile, archive_files};
use anyhow::Context;
use clap::Args;
use model::Outcome;

use terminal::{Exit, printable, remark, short};

use crate::args::{Access, AllowArgs, ReportArgs, StoreArgs, TrustArgs};
use crate::reports::print_copies;
use crate::{progress, wiring};
use inspect::published::receipt;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    allow: AllowArgs,
    #[command(flatten)]
    trust: TrustArgs,
    /// Write a receipt of the store to this file afterwards, for the next export.
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
    /// All volumes of the archive, in any order, or `-` for one on standard input. FILE.tar, as
    /// `export --to` was told it, stands for FILE.001.tar and those that follow.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(crate) async fn run(args: ImportArgs) -> anyhow::Result<Exit> {
    let trust = wiring::trust(&args.trust)?;
    let files = args.files.iter().flat_map(|path| archive_files(path));
    let volumes: anyhow::Result<_> = files.map(|path| open_input(&path)).collect();
    // The archive is read before the store is opened: a damaged one must not create a store.
    let archive = Archive::open(volumes?).await?;
    // A new site begins with its first import, so the store may be missing.
    let store = args.store.open_alone(Access::Create).await?;
    let options = SyncOptions {
        trust,
        ..args.allow.options(archive_name(&args.files[0]))
    };
    let exported = described(&args.files, archive.manifest());
    let importer = Importer::new(archive, store.clone(), options);
    let shown = progress::show_copy(importer.progress(), args.report.json);
    let reports = importer.run().await;
    shown.finish_and_clear();
    let reports = reports.with_context(|| exported.clone())?;
    let exit = print_copies(&reports, args.report)?;
    if reports
        .iter()
        .all(|report| report.outcome == Outcome::Unchanged)
    {
        remark(&format!(
            "{exported} brings nothing new: the store has its state already"
        ));
    }
    if let Some(path) = &args.receipt {
        let bytes = receipt(&store, &[]).await?;
        fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(exit)
}

/// Returns an archive as `status.json` names it, without the folders above it.
fn archive_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    format!("archive {}", name.display())
}

/// Returns the archive in words: its file, the states that it holds, and the time of its export.
fn described(files: &[PathBuf], manifest: &Manifest) -> String {
    let mut facts = Vec::new();
    for packed in &manifest.catalogs {
        let content = short(&packed.content_hash);
        facts.push(format!(
            "{} {content} at serial {}",
            packed.name, packed.serial
        ));
    }
    if let Some(time) = &manifest.exported_at {
        facts.push(format!("exported at {}", printable(time)));
    }
    format!("the archive {} ({})", files[0].display(), facts.join(", "))
}

/// Opens a volume that a command names. A pipe is copied to a temporary file first: an archive is
/// read several times.
fn open_input(path: &Path) -> anyhow::Result<VolumeFile> {
    let (name, mut pipe): (String, Box<dyn Read>) = if path == Path::new("-") {
        ("standard input".to_owned(), Box::new(io::stdin().lock()))
    } else if work::is_of_shell(path) {
        (path.display().to_string(), Box::new(File::open(path)?))
    } else {
        return wiring::open_volume(path);
    };
    let context = || format!("cannot copy {name} to a temporary file");
    let mut copy = tempfile::tempfile().with_context(context)?;
    io::copy(&mut pipe, &mut copy).with_context(context)?;
    copy.rewind()?;
    Ok((name, copy))
}
