//! Credentials, from the files and helpers of podman, skopeo and docker.

mod document;
mod error;
mod helper;
mod login;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::auth::document::AuthDocument;

pub use error::CredentialsError;
pub use login::Login;

/// Files that may hold credentials, in the order in which podman reads them.
#[derive(Debug, PartialEq, Eq)]
struct CredentialFiles {
    paths: Vec<PathBuf>,
    /// True if the user named the files, so that the absence of one is an error.
    are_required: bool,
}

/// Finds the credentials for a repository: in the documents in memory, then in `files`, which must
/// all be readable. The default files are read only if there are neither.
///
/// # Errors
/// Configured credentials that cannot be read.
pub async fn find_login(
    held: &Logins,
    files: &[PathBuf],
    registry: &str,
    repository: &str,
) -> Result<Option<Login>, CredentialsError> {
    let held = held.documents();
    for document in held.iter() {
        if let Some(login) = document.find(registry, repository).await? {
            return Ok(Some(login));
        }
    }
    if files.is_empty() && !held.is_empty() {
        return Ok(None);
    }
    let files = credential_files(files, |name| std::env::var_os(name));
    for path in files.paths {
        if let Some(document) = AuthDocument::open(path, files.are_required)?
            && let Some(login) = document.find(registry, repository).await?
        {
            return Ok(Some(login));
        }
    }
    Ok(None)
}

/// Returns the named files, else those of the environment.
fn credential_files(named: &[PathBuf], env: impl Fn(&str) -> Option<OsString>) -> CredentialFiles {
    let path = |name: &str| match env(name) {
        Some(value) if !value.is_empty() => Some(PathBuf::from(value)),
        _ => None,
    };
    let mut paths = named.to_vec();
    if named.is_empty() {
        paths.extend(path("REGISTRY_AUTH_FILE"));
    }
    if !paths.is_empty() {
        return CredentialFiles {
            paths,
            are_required: true,
        };
    }
    let home = path("HOME");
    if let Some(runtime) = path("XDG_RUNTIME_DIR") {
        paths.push(runtime.join("containers/auth.json"));
    }
    if let Some(config) = path("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config"))) {
        paths.push(config.join("containers/auth.json"));
    }
    if let Some(docker) = path("DOCKER_CONFIG").or_else(|| Some(home.as_ref()?.join(".docker"))) {
        paths.push(docker.join("config.json"));
    }
    CredentialFiles {
        paths,
        are_required: false,
    }
}

type AuthDocuments = Arc<[AuthDocument]>;

/// Documents in the format of `podman login`, in memory, for machines that get them from a vault.
/// Clones share the documents, and a change takes effect with the next pull.
#[derive(Clone, Debug, Default)]
pub struct Logins(Arc<RwLock<AuthDocuments>>);

impl Logins {
    /// Replaces all documents. Each has a name for errors.
    ///
    /// # Errors
    /// The first malformed document, without a quote. The former documents then stay.
    pub fn set<'a>(
        &self,
        documents: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), CredentialsError> {
        let mut parsed = Vec::new();
        for (name, text) in documents {
            parsed.push(AuthDocument::parse(name.to_owned(), text.as_bytes())?);
        }
        *self.0.write() = parsed.into();
        Ok(())
    }

    pub(crate) fn documents(&self) -> AuthDocuments {
        Arc::clone(&self.0.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_replaces_documents_of_all_copies_unless_one_is_broken_and_prints_no_secret() {
        let logins = Logins::default();
        let good = r#"{"auths": {"quay.io": {"username": "u", "password": "hunter2"}}}"#;
        let copy = logins.clone();
        logins.set([("old", good), ("older", good)]).unwrap();
        logins.set([("vault", good)]).unwrap();
        let shown = format!("{logins:?}");
        assert!(
            shown.contains("vault") && !shown.contains("hunter2"),
            "{shown}"
        );
        let broken = ("other", r#"{"auths": "hunter2"}"#);
        let error = logins
            .set([("vault", good), broken])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("other") && !error.contains("hunter2"),
            "{error}"
        );
        assert_eq!(copy.documents().len(), 1);
    }

    fn found(named: &[&str], env: &[(&str, &str)]) -> CredentialFiles {
        let named: Vec<_> = named.iter().map(PathBuf::from).collect();
        let get = |name: &str| {
            let found = env.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        credential_files(&named, get)
    }

    fn all(paths: &[&str], are_required: bool) -> CredentialFiles {
        let paths = paths.iter().map(PathBuf::from).collect();
        CredentialFiles {
            paths,
            are_required,
        }
    }

    #[test]
    fn credential_files_have_the_order_of_podman() {
        let home = [("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/1")];
        let usual = [
            "/run/1/containers/auth.json",
            "/h/.config/containers/auth.json",
            "/h/.docker/config.json",
        ];
        assert_eq!(found(&[], &home), all(&usual, false));
        assert_eq!(
            found(&[], &[("DOCKER_CONFIG", "/d")]),
            all(&["/d/config.json"], false)
        );
        assert_eq!(
            found(&[], &[("REGISTRY_AUTH_FILE", "/a"), home[0]]),
            all(&["/a"], true)
        );
        assert_eq!(found(&["/x", "/y"], &home), all(&["/x", "/y"], true));
        assert_eq!(found(&[], &[("REGISTRY_AUTH_FILE", "")]), all(&[], false));
    }
}
