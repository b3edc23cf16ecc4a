//! Certificates of authorities, which are read again while the program runs.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use tokio::time::sleep;

use crate::{flags::Flags, reconcile::Reconciler, replicas::Follower};

/// File with the authority of OpenShift's certificates for services, in each pod.
const SERVICE_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/service-ca.crt";

/// Time between two looks at the files. The kubelet brings a changed Secret or ConfigMap within a minute or two.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// Files whose certificates are trusted besides the system's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Authorities {
    /// Folder of authorities for registries, and for the replica that leads.
    folder: Option<PathBuf>,
    /// Files of authorities for the replica that leads. They need not exist.
    for_leader: Vec<PathBuf>,
}

/// Paths and bytes of files, to see whether they change.
type Content = Vec<(PathBuf, Vec<u8>)>;

impl Authorities {
    /// Returns the files that the flags name. The leader's certificate may be signed by that of `ca.crt` beside the own certificate.
    pub(crate) fn of(flags: &Flags) -> Self {
        let beside = flags.tls_cert.as_deref().map(|file| file.with_file_name("ca.crt"));
        Self {
            folder: flags.pull_cas_dir.clone(),
            for_leader: beside.into_iter().chain([SERVICE_CA.into()]).collect(),
        }
    }

    /// Returns the files for registries: those of the folder with the ending `.crt`, as containers/image reads it
    /// (containers-certs.d(5)).
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn for_registries(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Some(folder) = self.folder.as_deref() else {
            return Ok(Vec::new());
        };
        files(folder, "crt").with_context(|| format!("cannot read the folder {} (--pull-cas-dir)", folder.display()))
    }

    /// Returns the files for the replica that leads, those for registries among them.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn for_leader(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = self.for_registries()?;
        files.extend(self.for_leader.iter().filter(|file| file.is_file()).cloned());
        Ok(files)
    }

    fn content(&self) -> anyhow::Result<Content> {
        let read = |file: PathBuf| fs::read(&file).map(|bytes| (file, bytes));
        let content: io::Result<_> = self.for_leader()?.into_iter().map(read).collect();
        Ok(content?)
    }

    /// Uses the files as they are from now on, whenever they change, until it is dropped. All catalogs are polled after a change,
    /// because some may have waited for it.
    pub(crate) async fn watch(self, reconciler: Arc<Reconciler>, follower: Arc<Follower>) {
        let mut known = self.content().ok();
        loop {
            sleep(LOOK_INTERVAL).await;
            // Files that cannot be read are being replaced.
            let Ok(content) = self.content() else { continue };
            if known.as_ref() == Some(&content) {
                continue;
            }
            known = Some(content);
            match self.use_now(&reconciler, &follower) {
                Ok(()) => tracing::info!("the certificates of authorities have changed"),
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "cannot use the changed certificates of authorities; those before stay in use"
                    );
                }
            }
        }
    }

    fn use_now(&self, reconciler: &Reconciler, follower: &Follower) -> anyhow::Result<()> {
        reconciler.mirror.trust_ca_files(&self.for_registries()?)?;
        follower.forget_link();
        reconciler.poll_all();
        Ok(())
    }
}

/// Returns the files of a folder with this extension, in the order of their names.
pub(crate) fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let listed: io::Result<Vec<_>> = fs::read_dir(folder)?.collect();
    let mut files: Vec<PathBuf> = listed?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_the_crt_files_of_the_folder_and_those_for_the_leader_that_exist() {
        let folder = std::env::temp_dir().join(format!("controller-authorities-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["b.crt", "a.crt", "key.pem"] {
            fs::write(folder.join(name), name).unwrap();
        }
        let mut authorities = Authorities {
            folder: Some(folder.clone()),
            for_leader: vec![folder.join("key.pem"), folder.join("absent")],
        };
        assert_eq!(
            authorities.for_registries().unwrap(),
            [folder.join("a.crt"), folder.join("b.crt")]
        );
        let content = authorities.content().unwrap();
        let bytes: Vec<&[u8]> = content.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        assert_eq!(bytes, [b"a.crt".as_slice(), b"b.crt", b"key.pem"]);
        fs::remove_dir_all(&folder).unwrap();
        let error = format!("{:#}", authorities.for_leader().unwrap_err());
        assert!(error.contains("--pull-cas-dir"), "{error}");
        authorities.folder = None;
        assert!(authorities.for_leader().unwrap().is_empty());
    }
}
