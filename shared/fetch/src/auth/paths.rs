//! Paths of credential files, in the order in which podman reads them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A file that may hold credentials.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CredentialFile {
    pub(crate) path: PathBuf,
    /// True if the user named the file, so that its absence is an error.
    pub(crate) is_required: bool,
}

/// Returns the files in the order of use: the named ones, else those of the environment.
pub(crate) fn credential_files(named: &[PathBuf], env: impl Fn(&str) -> Option<OsString>) -> Vec<CredentialFile> {
    let required = |path: PathBuf| CredentialFile {
        path,
        is_required: true,
    };
    if !named.is_empty() {
        return named.iter().cloned().map(required).collect();
    }
    let env = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = env("REGISTRY_AUTH_FILE") {
        return vec![required(path)];
    }
    let home = env("HOME");
    let in_home = |rest: &str| home.as_deref().map(|home: &Path| home.join(rest));
    let config = env("XDG_CONFIG_HOME").or_else(|| in_home(".config"));
    let docker = env("DOCKER_CONFIG").or_else(|| in_home(".docker"));
    let usual = [
        env("XDG_RUNTIME_DIR").map(|dir| dir.join("containers/auth.json")),
        config.map(|dir| dir.join("containers/auth.json")),
        docker.map(|dir| dir.join("config.json")),
    ];
    usual
        .into_iter()
        .flatten()
        .map(|path| CredentialFile {
            path,
            is_required: false,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(named: &[&str], env: &[(&str, &str)]) -> Vec<(String, bool)> {
        let named: Vec<_> = named.iter().map(PathBuf::from).collect();
        let get = |name: &str| {
            env.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        };
        let show = |file: CredentialFile| (file.path.display().to_string(), file.is_required);
        credential_files(&named, get).into_iter().map(show).collect()
    }

    fn all(paths: &[&str], required: bool) -> Vec<(String, bool)> {
        paths.iter().map(|path| ((*path).to_owned(), required)).collect()
    }

    #[test]
    fn credential_files_have_the_order_of_podman() {
        let home = [("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/1")];
        let usual = [
            "/run/1/containers/auth.json",
            "/h/.config/containers/auth.json",
            "/h/.docker/config.json",
        ];
        assert_eq!(paths(&[], &home), all(&usual, false));
        assert_eq!(paths(&[], &[("DOCKER_CONFIG", "/d")]), all(&["/d/config.json"], false));
        assert_eq!(paths(&[], &[("REGISTRY_AUTH_FILE", "/a"), home[0]]), all(&["/a"], true));
        assert_eq!(paths(&["/x", "/y"], &home), all(&["/x", "/y"], true));
        assert_eq!(paths(&[], &[("REGISTRY_AUTH_FILE", "")]), []);
    }
}
