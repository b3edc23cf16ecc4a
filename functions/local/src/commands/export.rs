use std::{
    fs::{self, File},
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

use anyhow::Context;
use config::Config;
use layout::{Document, Stored};
use sync::{Pack, Packing, Since};

use super::receipt::chosen;
use crate::{
    cli::Export,
    exit::Exit,
    output::{self, copies::Written},
};

/// Larger than any object that is copied at once, so that media see long writes.
const BUFFER: usize = 1 << 20;

pub(crate) async fn run(args: Export) -> anyhow::Result<Exit> {
    let store = args.store.open_to_read(&Config::default()).await?;
    let names = chosen(&*store, args.names.clone()).await?;
    anyhow::ensure!(!names.is_empty(), "the store has no catalogs");
    let packing = Packing {
        since: since(&args)?,
        whole: args.whole,
        volume_bytes: args.volume_size,
    };
    let pack = Pack::plan(store, &names, &packing).await?;
    let (pack, volumes) = tokio::task::spawn_blocking(move || write(&args, pack)).await??;
    match (volumes, pack) {
        (None, _) => {}
        (Some((volumes, true)), pack) => output::copies::volumes_json(pack.manifest(), &volumes)?,
        (Some((volumes, false)), _) => output::copies::volumes_table(&volumes)?,
    }
    Ok(Exit::Fine)
}

fn since(args: &Export) -> anyhow::Result<Since> {
    let Some(path) = &args.receipt else {
        return Ok(if args.since.is_empty() {
            Since::Nothing
        } else {
            Since::Contents(args.since.clone())
        });
    };
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let receipt = sync::Receipt::from_bytes(&bytes).with_context(|| format!("{}", path.display()))?;
    Ok(Since::Receipt(receipt))
}

/// The volumes and whether they are to be told as JSON; nothing is told where the archive itself is the output.
type Told = Option<(Vec<Written>, bool)>;

fn write(args: &Export, pack: Pack) -> anyhow::Result<(Pack, Told)> {
    if args.to == Path::new("-") {
        anyhow::ensure!(args.volume_size.is_none(), "volumes need files, not standard output");
        pack.write(1, BufWriter::with_capacity(BUFFER, io::stdout().lock()))?;
        return Ok((pack, None));
    }
    let mut volumes = Vec::new();
    for volume in 1..=pack.manifest().volumes {
        let path = match args.volume_size {
            Some(_) => numbered(&args.to, volume),
            None => args.to.clone(),
        };
        volumes.push((path.display().to_string(), write_file(&pack, volume, &path)?));
    }
    Ok((pack, Some((volumes, args.json))))
}

/// A file has its name only when it is complete and on the medium.
fn write_file(pack: &Pack, volume: u32, path: &Path) -> anyhow::Result<Stored> {
    let context = || format!("cannot write {}", path.display());
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let file = File::create(&partial).with_context(context)?;
    let written = pack
        .write(volume, BufWriter::with_capacity(BUFFER, &file))
        .map_err(anyhow::Error::from)
        .and_then(|stored| file.sync_all().map(|()| stored).with_context(context))
        .and_then(|stored| fs::rename(&partial, path).map(|()| stored).with_context(context));
    if written.is_err() {
        // It is worthless, and the error says why; a second one would only hide that.
        drop(fs::remove_file(&partial));
    }
    written
}

/// `name.tar` gives `name.001.tar`.
fn numbered(path: &Path, volume: u32) -> PathBuf {
    let stem = path.with_extension("");
    let extension = path.extension().unwrap_or("tar".as_ref()).to_string_lossy();
    let mut name = stem.into_os_string();
    name.push(format!(".{volume:03}.{extension}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_numbered_before_their_extension() {
        for (path, volume, expected) in [
            ("a/name.tar", 1, "a/name.001.tar"),
            ("name", 12, "name.012.tar"),
            ("v4.20.tar", 1000, "v4.20.1000.tar"),
        ] {
            assert_eq!(numbered(Path::new(path), volume), Path::new(expected));
        }
    }
}
