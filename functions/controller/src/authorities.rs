//! Certificates of authorities, which are read again while the program runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use publish::Mirror;
use tokio::time::sleep;

use crate::schedule::LastPolls;

/// Time between two looks at the files. The kubelet brings a changed Secret or ConfigMap within a
/// minute or two.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// Paths and bytes of files, to see whether they change.
type Content = Vec<(PathBuf, Vec<u8>)>;

/// Returns the files of authorities for registries: those of the folder with the ending `.crt`, as
/// containers/image reads it (containers-certs.d(5)).
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn certificates(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    work::files_with_extension(folder, "crt").with_context(|| {
        format!(
            "cannot read the folder {} (--pull-cas-dir)",
            folder.display()
        )
    })
}

fn content(folder: &Path) -> anyhow::Result<Content> {
    let mut content = Content::new();
    for file in certificates(folder)? {
        let bytes = fs::read(&file)?;
        content.push((file, bytes));
    }
    Ok(content)
}

/// Uses the files of the folder as they are from now on, whenever they change, until it is dropped.
/// All catalogs are polled after a change, because some may have waited for it.
pub(crate) async fn watch(folder: PathBuf, mirror: Arc<Mirror>, polls: Arc<LastPolls>) {
    let mut known = content(&folder).ok();
    loop {
        sleep(LOOK_INTERVAL).await;
        // Files that cannot be read are being replaced.
        let Ok(found) = content(&folder) else {
            continue;
        };
        if known.as_ref() == Some(&found) {
            continue;
        }
        let files: Vec<PathBuf> = found.iter().map(|(file, _)| file.clone()).collect();
        known = Some(found);
        match mirror.trust_ca_files(&files) {
            Ok(()) => {
                polls.poll_all();
                tracing::info!("the certificates of authorities have changed");
            }
            Err(error) => tracing::warn!(
                error = model::text::chain(&error),
                "cannot use the changed certificates of authorities; those before stay in use"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_the_crt_files_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for name in ["b.crt", "a.crt", "key.pem"] {
            fs::write(folder.join(name), name).unwrap();
        }
        let expected = ["a.crt", "b.crt"].map(|name| (folder.join(name), name.as_bytes().to_vec()));
        assert_eq!(content(folder).unwrap(), expected);
        fs::remove_dir_all(folder).unwrap();
        let error = format!("{:#}", certificates(folder).unwrap_err());
        assert!(error.contains("--pull-cas-dir"), "{error}");
    }
}
