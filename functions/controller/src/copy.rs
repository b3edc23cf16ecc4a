//! One copy of a ClusterCatalog from a mirror.

use std::sync::Arc;

use model::{Current, Key, text::chain};
use publish::Catalog;
use source::MirrorLocation;
use store::StoreExt;
use sync::{Copier, HttpOrigin, SyncError, SyncOptions, SyncReport};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    catalog::ClusterCatalog,
    conditions::Fact,
    mirrors::{self, MirrorRefusal},
    poll::{Polled, unpacked},
    reconcile::Reconciler,
};

impl Reconciler {
    /// Copies the catalog that an annotation names. Nothing is asked of a registry.
    pub(crate) async fn copy(&self, object: &ClusterCatalog, catalog: &Catalog, annotation: &str) -> Polled {
        match self.try_copy(object, catalog, annotation).await {
            Ok(polled) => polled,
            Err(error) => Polled::failed(chain(&error), error.is_terminal()),
        }
    }

    async fn try_copy(
        &self,
        object: &ClusterCatalog,
        catalog: &Catalog,
        annotation: &str,
    ) -> Result<Polled, MirrorRefusal> {
        let location = mirrors::location(annotation)?;
        let access = self.mirrors.access(&location).await?;
        let repository = repository(&location);
        // The history of another source says nothing about this one.
        let served = object.status.resolved().and_then(|resolved| resolved.split_once('@'));
        let is_new = served.is_none_or(|(served, _)| served != repository);
        let limits = catalog.limits.clone().unwrap_or_default();
        let options = SyncOptions {
            source: location.to_string(),
            rollback: is_new,
            diverged: is_new,
            content_bytes: limits.catalog.content_bytes,
            trust: access.trust,
            upstream: Some(location.catalog().clone()),
            revision: catalog.source.pinned().map(ToString::to_string),
            available: true,
            copy_time: Some(limits.pull_time),
            permits: self.mirrors.permits.clone(),
            ..SyncOptions::default()
        };
        let address = location.mirror().parse().map_err(|_| MirrorRefusal::NotUrl)?;
        let origin = match HttpOrigin::new(address, access.http) {
            Ok(origin) => origin,
            Err(error) => return Ok(Polled::failed(chain(&error), false)),
        };
        let copier = Copier::new(Arc::new(origin), self.store.clone(), options);
        let name = catalog.name.clone();
        // A task of its own: a panic must not end the work on other catalogs.
        let copying = AbortOnDropHandle::new(tokio::spawn(async move { copier.copy(&name).await }));
        Ok(match copying.await {
            Ok(report) => {
                let metrics = &self.mirrors.metrics;
                metrics.count_outcome(&report.catalog, report.outcome, report.moved.bytes, report.moved);
                Polled {
                    fact: fact(object, &report, &repository),
                    interval: catalog.poll_interval(),
                    // The mirror may get to the digest that the object names.
                    is_retried: true,
                }
            }
            Err(error) => Polled::failed(format!("the copy was broken off: {error}"), false),
        })
    }

    /// True if what is published for an object may be from a mirror, so that its image has to be pulled although the digest is
    /// known: what a mirror says about an image is only believed while the object names that mirror.
    pub(crate) async fn is_copied(&self, object: &ClusterCatalog, catalog: &Catalog) -> bool {
        let key = Key::Current(catalog.name.clone());
        let Ok(Some((current, _))) = self.store.read_document::<Current>(&key).await else {
            return false;
        };
        // The status is written after a success only, so it tells what is published over failures and restarts. This program
        // signs nothing, so a signature is a mirror's.
        let published = object.status.resolved().and_then(|resolved| resolved.split_once('@'));
        !current.signatures.is_empty() || published.is_some_and(|(_, digest)| digest != current.source.revision)
    }
}

fn fact(object: &ClusterCatalog, report: &SyncReport, repository: &str) -> Fact {
    match (&report.error, report.image.or(report.content_hash)) {
        // A mirror without images has the hash of the lines, which changes with the content too.
        (None, Some(hash)) => {
            let reference = format!("{repository}@sha256:{hash}");
            Fact::Stored {
                unpacked: unpacked(&object.status, &reference),
                reference,
            }
        }
        (error, _) => Fact::Failed {
            message: format!("source catalog content: {}", report.error_text().unwrap_or_default()),
            is_terminal: matches!(error, Some(SyncError::Revision { .. })),
        },
    }
}

/// Returns `HOST/REPOSITORY` for the status. A mirror offers each catalog as an image under its name, so the reference can be pulled
/// where the mirror is at the root of its host.
///
/// The API allows fewer characters than a URL: other ones are left out.
fn repository(location: &MirrorLocation) -> String {
    let url = format!("{}{}", location.mirror(), location.catalog());
    let place = url.split_once("://").map_or(url.as_str(), |(_, place)| place);
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| is_port(port)) {
        Some((host, port)) => (host, format!(":{port}")),
        None => (authority, String::new()),
    };
    let parts = |text: &str, between: char, is_allowed: fn(char) -> bool| {
        let parts = text.split(|character| character == between || !is_allowed(character));
        let parts = parts.map(|part| part.trim_matches(['-', '.', '_']));
        parts
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(&between.to_string())
    };
    let host = parts(host, '.', |character| {
        character.is_ascii_alphanumeric() || character == '-'
    });
    let path = parts(&path.to_ascii_lowercase(), '/', |character| {
        character.is_ascii_alphanumeric() || ['-', '.', '_'].contains(&character)
    });
    format!("{host}{port}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_names_mirror_and_catalog_in_allowed_characters() {
        for (url, expected) in [
            ("https://mirror.example/catalogs/demo", "mirror.example/demo"),
            (
                "https://Mirror.example:8443/A/b/catalogs/demo.v4",
                "mirror.example:8443/a/b/demo.v4",
            ),
            ("http://mirror/catalogs/demo", "mirror/demo"),
            ("https://[fd00::1]:8443/catalogs/demo", "fd00.1:8443/demo"),
            ("https://my_host.example./x~y/catalogs/demo", "my.host.example/x/y/demo"),
        ] {
            assert_eq!(repository(&url.parse().unwrap()), expected);
        }
    }
}
