use std::{
    fs::{self, File},
    io::{self, Seek},
    path::{Path, PathBuf},
};

use anyhow::Context;
use config::Config;
use sync::{Archive, Importer, Settings, VolumeFile};

use super::{receipt, sync::print};
use crate::{cli::Import, exit::Exit, output, wiring};

pub(crate) async fn run(args: Import) -> anyhow::Result<Exit> {
    let trust = wiring::trust(&args.trust)?;
    let files = args.files.clone();
    let archive = tokio::task::spawn_blocking(move || Ok::<_, anyhow::Error>(Archive::open(open(&files)?)?)).await??;
    let store = args.store.open(&Config::default()).await?;
    let settings = Settings {
        source: format!("archive {}", args.files[0].display()),
        allow: (&args.allow).into(),
        trust,
        ..Settings::default()
    };
    let importer = Importer::new(archive, store.clone(), settings);
    let progress = output::progress::show_copy(importer.progress(), args.json);
    let reports = importer.run().await;
    progress.finish();
    let exit = print(&reports?, args.json)?;
    if let Some(path) = &args.receipt {
        let bytes = receipt::bytes(&*store, Vec::new()).await?;
        fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(exit)
}

fn open(paths: &[PathBuf]) -> anyhow::Result<Vec<VolumeFile>> {
    paths.iter().map(|path| open_one(path)).collect()
}

/// An archive is read several times before it is believed, so one that comes through a pipe is kept meanwhile.
fn open_one(path: &Path) -> anyhow::Result<VolumeFile> {
    if path != Path::new("-") {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        return Ok((path.display().to_string(), file));
    }
    let mut spool = tempfile::tempfile().context("cannot keep standard input in a temporary file")?;
    io::copy(&mut io::stdin().lock(), &mut spool).context("cannot keep standard input in a temporary file")?;
    spool.rewind()?;
    Ok(("standard input".to_owned(), spool))
}
