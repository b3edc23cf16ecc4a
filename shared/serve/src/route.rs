use std::borrow::Cow;

use layout::{CatalogName, Key};

use crate::{error::Error, fields::decode, registry};

/// What a path asks for. The names are those of the metrics' label, so their number is bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    Health,
    Ready,
    OpenApi,
    Catalogs,
    /// A document of the store that changes: `catalogs.json`, `status.json`.
    Document(Key),
    Current(Cow<'a, str>),
    /// An object that its key names for ever.
    Immutable(Key),
    All(Cow<'a, str>),
    Metas(Cow<'a, str>),
    Packages(Cow<'a, str>),
    Package(Cow<'a, str>, Cow<'a, str>),
    ContentHash(Cow<'a, str>),
    Changes(Cow<'a, str>),
    /// Catalogs as container images.
    Registry(registry::Target<'a>),
}

impl<'a> Target<'a> {
    /// Reads the path of a URL. Catalog names are checked, so a bad one is told from an unknown one.
    pub(crate) fn parse(path: &'a str) -> Result<Self, Error> {
        let path = path.strip_prefix('/').ok_or(Error::UnknownPath)?;
        match path {
            "healthz" => Ok(Self::Health),
            "readyz" => Ok(Self::Ready),
            "openapi.json" => Ok(Self::OpenApi),
            "catalogs" => Ok(Self::Catalogs),
            "catalogs.json" => Ok(Self::Document(Key::Catalogs)),
            "v2" => Ok(Self::Registry(registry::Target::Base)),
            _ => match path.strip_prefix("v2/") {
                Some(rest) => registry::Target::parse(rest).map(Self::Registry),
                None => Self::below(path),
            },
        }
    }

    fn below(path: &'a str) -> Result<Self, Error> {
        match path.strip_prefix("catalogs/").and_then(|rest| rest.split_once('/')) {
            Some((name, rest)) => Self::of_catalog(path, name, rest),
            None => Self::shared(path),
        }
    }

    fn of_catalog(path: &str, name: &'a str, rest: &'a str) -> Result<Self, Error> {
        let name = decode(name);
        check_name(&name)?;
        match rest {
            "current.json" => Ok(Self::Current(name)),
            "all.json" | "api/v1/all" => Ok(Self::All(name)),
            "api/v1/metas" => Ok(Self::Metas(name)),
            "packages" => Ok(Self::Packages(name)),
            "content-hash" => Ok(Self::ContentHash(name)),
            "changes" => Ok(Self::Changes(name)),
            _ => match rest.strip_prefix("packages/") {
                Some(package) if !package.is_empty() && !package.contains('/') => {
                    Ok(Self::Package(name, decode(package)))
                }
                _ => Self::shared(path),
            },
        }
    }

    fn shared(path: &str) -> Result<Self, Error> {
        match Key::parse(path) {
            Some(key @ Key::Status(_)) => Ok(Self::Document(key)),
            Some(key @ (Key::Snapshot(..) | Key::Index(..) | Key::All(..) | Key::Shard(_) | Key::Blob(_))) => {
                Ok(Self::Immutable(key))
            }
            // What writers remember for themselves is no business of readers; the others are matched before.
            Some(
                Key::Layers(_) | Key::Notified(_) | Key::Intent(..) | Key::Sweep | Key::Catalogs | Key::Current(_),
            )
            | None => Err(Error::UnknownPath),
        }
    }

    pub(crate) const fn label(&self) -> Route {
        match self {
            Self::Health | Self::Ready => Route::Probe,
            Self::OpenApi => Route::OpenApi,
            Self::Catalogs => Route::Catalogs,
            Self::Document(_) | Self::Current(_) => Route::Document,
            Self::Immutable(_) => Route::Immutable,
            Self::All(_) => Route::All,
            Self::Metas(_) => Route::Metas,
            Self::Packages(_) => Route::Packages,
            Self::Package(..) => Route::Package,
            Self::ContentHash(_) => Route::ContentHash,
            Self::Changes(_) => Route::Changes,
            Self::Registry(registry::Target::Blob(..)) => Route::RegistryBlob,
            Self::Registry(_) => Route::Registry,
        }
    }
}

/// The `route` label of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Route {
    Probe,
    OpenApi,
    Catalogs,
    Document,
    Immutable,
    All,
    Metas,
    Packages,
    Package,
    ContentHash,
    Changes,
    Registry,
    RegistryBlob,
    Unknown,
}

impl Route {
    pub(crate) const ALL: [Self; 14] = [
        Self::Probe,
        Self::OpenApi,
        Self::Catalogs,
        Self::Document,
        Self::Immutable,
        Self::All,
        Self::Metas,
        Self::Packages,
        Self::Package,
        Self::ContentHash,
        Self::Changes,
        Self::Registry,
        Self::RegistryBlob,
        Self::Unknown,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::OpenApi => "openapi",
            Self::Catalogs => "catalogs",
            Self::Document => "document",
            Self::Immutable => "immutable",
            Self::All => "all",
            Self::Metas => "metas",
            Self::Packages => "packages",
            Self::Package => "package",
            Self::ContentHash => "content-hash",
            Self::Changes => "changes",
            Self::Registry => "registry",
            Self::RegistryBlob => "registry-blob",
            Self::Unknown => "unknown",
        }
    }
}

/// A name that is an escape sequence away from a good one is that one (RFC 3986, section 6.2.2.2).
fn check_name(name: &str) -> Result<(), Error> {
    name.parse::<CatalogName>().map(|_| ()).map_err(Error::CatalogName)
}

#[cfg(test)]
mod tests {
    use layout::{Form, Sha256};

    use super::*;

    fn hash() -> Sha256 {
        Sha256::of(b"")
    }

    #[test]
    fn every_path_of_the_contract_has_its_target() {
        let c = || Cow::Borrowed("v4.20");
        let name = || "v4.20".parse().unwrap();
        let all = format!("/catalogs/v4.20/{}/all.json.gz", hash());
        let shard = format!("/packages/sha256/{}.json.zst", hash());
        let blob = format!("/blobs/sha256/{}", hash());
        for (path, target) in [
            ("/healthz", Target::Health),
            ("/readyz", Target::Ready),
            ("/openapi.json", Target::OpenApi),
            ("/catalogs", Target::Catalogs),
            ("/catalogs.json", Target::Document(Key::Catalogs)),
            ("/catalogs/v4.20/status.json", Target::Document(Key::Status(name()))),
            ("/catalogs/v4.20/current.json", Target::Current(c())),
            ("/catalogs/v4.20/api/v1/all", Target::All(c())),
            ("/catalogs/v4.20/all.json", Target::All(c())),
            ("/catalogs/v4.20/api/v1/metas", Target::Metas(c())),
            ("/catalogs/v4.20/packages", Target::Packages(c())),
            ("/catalogs/v4%2e20/packages/a%2Fb", Target::Package(c(), "a/b".into())),
            ("/catalogs/v4.20/content-hash", Target::ContentHash(c())),
            ("/catalogs/v4.20/changes", Target::Changes(c())),
            (&all, Target::Immutable(Key::All(name(), hash(), Form::Gzip))),
            (&shard, Target::Immutable(Key::Shard(hash()))),
            (&blob, Target::Immutable(Key::Blob(hash()))),
            ("/v2", Target::Registry(registry::Target::Base)),
            ("/v2/", Target::Registry(registry::Target::Base)),
            ("/v2/v4.20/tags/list", Target::Registry(registry::Target::Tags(c()))),
        ] {
            assert_eq!(Target::parse(path).unwrap(), target, "{path}");
        }
    }

    #[test]
    fn bad_names_are_told_from_unknown_paths() {
        for path in [
            "/catalogs/A/all.json",
            "/catalogs//x",
            "/catalogs/../current.json",
            "/catalogs/a_b/nothing",
        ] {
            assert!(matches!(Target::parse(path), Err(Error::CatalogName(_))), "{path}");
        }
        for path in [
            "/",
            "",
            "*",
            "/catalogs/",
            "/catalogs/a",
            "/catalogs/a/",
            "/catalogs/a/layers.json",
            "/catalogs/a/notified.json",
            "/catalogs/a/packages/",
            "/catalogs/a/packages/b/c",
            "/catalogs/a/0/all.json",
            "//healthz",
        ] {
            assert!(matches!(Target::parse(path), Err(Error::UnknownPath)), "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(path in "/?(catalogs|packages)?/?\\PC{0,20}/\\PC{0,20}") {
            let _ = Target::parse(&path);
        }
    }
}
