//! Paths of credential files, in the order in which podman reads them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Files that may hold credentials, in the order of use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CredentialFiles {
    pub(crate) paths: Vec<PathBuf>,
    /// True if the user named the files, so that the absence of one is an error.
    pub(crate) are_required: bool,
}

/// Returns the named files, else those of the environment.
pub(crate) fn credential_files(named: &[PathBuf], env: impl Fn(&str) -> Option<OsString>) -> CredentialFiles {
    let env = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut paths = named.to_vec();
    if named.is_empty() {
        paths.extend(env("REGISTRY_AUTH_FILE"));
    }
    let are_required = !paths.is_empty();
    if !are_required {
        let home = env("HOME");
        let in_home = |rest: &str| home.as_deref().map(|home: &Path| home.join(rest));
        let config = env("XDG_CONFIG_HOME").or_else(|| in_home(".config"));
        let docker = env("DOCKER_CONFIG").or_else(|| in_home(".docker"));
        let usual = [
            env("XDG_RUNTIME_DIR").map(|dir| dir.join("containers/auth.json")),
            config.map(|dir| dir.join("containers/auth.json")),
            docker.map(|dir| dir.join("config.json")),
        ];
        paths.extend(usual.into_iter().flatten());
    }
    CredentialFiles { paths, are_required }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(named: &[&str], env: &[(&str, &str)]) -> CredentialFiles {
        let named: Vec<_> = named.iter().map(PathBuf::from).collect();
        let get = |name: &str| {
            env.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        };
        credential_files(&named, get)
    }

    fn all(paths: &[&str], are_required: bool) -> CredentialFiles {
        let paths = paths.iter().map(PathBuf::from).collect();
        CredentialFiles { paths, are_required }
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
        assert_eq!(paths(&[], &[("REGISTRY_AUTH_FILE", "")]), all(&[], false));
    }
}
