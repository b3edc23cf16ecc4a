use std::{
    fs::{self, File},
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

use anyhow::Context;
use model::{Document, ObjectDigest};
use serde_json::json;
use sync::{Pack, PackOptions, Since};

use crate::{
    cli::ExportArgs,
    exit::Exit,
    output::{self, store::WrittenVolume},
    published,
    stores::Access,
};

/// Write buffer in bytes, larger than most objects, so that slow media get long writes.
const BUFFER_BYTES: usize = 1 << 20;

pub(crate) async fn run(args: ExportArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Read).await?;
    let names = published::some_names(&*store, &args.names).await?;
    let names: Vec<_> = names.into_iter().collect();
    let options = PackOptions {
        since: since(&args)?,
        whole: args.whole,
        volume_bytes: args.volume_size,
    };
    let pack = Pack::plan(store, &names, &options).await?;
    let json = args.json;
    // An archive is written and synced by blocking calls, for minutes.
    let (pack, volumes) = tokio::task::spawn_blocking(move || write(&args, pack)).await??;
    match volumes {
        // Standard output is the archive itself.
        None => {}
        Some(volumes) if json => {
            let manifest = pack.manifest();
            output::print_json(&json!({
                "catalogs": manifest.catalogs,
                "objects": manifest.objects.len(),
                "bytes": manifest.objects.iter().map(|object| object.size).sum::<u64>(),
                "volumes": volumes,
            }))?;
        }
        Some(volumes) => output::print(&volumes, false)?,
    }
    Ok(Exit::Success)
}

fn since(args: &ExportArgs) -> anyhow::Result<Since> {
    let Some(path) = &args.receipt else {
        return Ok(if args.since.is_empty() {
            Since::Nothing
        } else {
            Since::Contents(args.since.clone())
        });
    };
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let receipt = sync::Receipt::from_bytes(&bytes).with_context(|| path.display().to_string())?;
    Ok(Since::Receipt(receipt))
}

/// Writes all volumes. Returns none of them for an archive on standard output.
fn write(args: &ExportArgs, pack: Pack) -> anyhow::Result<(Pack, Option<Vec<WrittenVolume>>)> {
    if args.to == Path::new("-") {
        anyhow::ensure!(args.volume_size.is_none(), "volumes need files, not standard output");
        pack.write(1, BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()))?;
        return Ok((pack, None));
    }
    let mut volumes = Vec::new();
    for volume in 1..=pack.manifest().volumes {
        let path = match args.volume_size {
            Some(_) => numbered(&args.to, volume),
            None => args.to.clone(),
        };
        volumes.push(WrittenVolume {
            file: path.display().to_string(),
            stored: write_file(&pack, volume, &path)?,
        });
    }
    Ok((pack, Some(volumes)))
}

/// Writes one volume. The file gets its name when it is complete and on the medium.
fn write_file(pack: &Pack, volume: u32, path: &Path) -> anyhow::Result<ObjectDigest> {
    let context = || format!("cannot write {}", path.display());
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let file = File::create(&partial).with_context(context)?;
    let written = pack
        .write(volume, BufWriter::with_capacity(BUFFER_BYTES, &file))
        .map_err(anyhow::Error::from)
        .and_then(|stored| file.sync_all().map(|()| stored).with_context(context))
        .and_then(|stored| fs::rename(&partial, path).map(|()| stored).with_context(context));
    if written.is_err() {
        // The partial file is of no use. A second error would only hide the first one.
        drop(fs::remove_file(&partial));
    }
    written
}

/// Returns the name of a volume: `name.001.tar` for `name.tar`.
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
    fn numbered_volume_keeps_its_extension() {
        for (path, volume, expected) in [
            ("a/name.tar", 1, "a/name.001.tar"),
            ("name", 12, "name.012.tar"),
            ("v4.20.tar", 1000, "v4.20.1000.tar"),
        ] {
            assert_eq!(numbered(Path::new(path), volume), Path::new(expected));
        }
    }
}
