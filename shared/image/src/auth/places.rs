//! Where credential files are looked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A file that may hold credentials.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// Somebody named it, so its absence is an error.
    pub(crate) is_required: bool,
}

/// The files in the order they are asked: those that were named, else what the environment says.
pub(crate) fn places(named: &[PathBuf], env: impl Fn(&str) -> Option<OsString>) -> Vec<Place> {
    let required = |path: PathBuf| Place {
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
        .map(|path| Place {
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
        let show = |place: Place| (place.path.display().to_string(), place.is_required);
        places(&named, get).into_iter().map(show).collect()
    }

    fn all(paths: &[&str], required: bool) -> Vec<(String, bool)> {
        paths.iter().map(|path| ((*path).to_owned(), required)).collect()
    }

    #[test]
    fn the_order_is_that_of_podman() {
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
