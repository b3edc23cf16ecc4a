//! Manifests and configs: small, in one piece, verified.

use bytes::Bytes;
use oci_client::Reference;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, Url};

use crate::digest::{Digest, DigestError};
use crate::error::Error;
use crate::manifest::Blob;
use crate::place::Check;
use crate::registry::exchange::Ask;
use crate::registry::waits::Waits;
use crate::registry::{Fault, Session, foreign};

const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

const DIGEST_HEADER: &str = "docker-content-digest";

impl Session {
    /// The digest a tag has now: one HEAD, or one GET where the registry has no HEAD or no digest header.
    pub(crate) async fn resolve(&self, reference: &Reference) -> Result<Digest, Error> {
        let tag = reference.tag().unwrap_or("latest");
        if !self.has_no_head() {
            if let Some(digest) = self.head(tag).await? {
                return Ok(digest);
            }
            self.learn_no_head();
        }
        let what = format!("tag {tag}");
        let response = self.send(&ask(Method::GET, tag, &what)).await?;
        let promised = self.promised(&response)?;
        let body = self.small_body(response, "manifest").await?;
        match promised {
            Some(digest) => digest.verify("manifest", body).map(|_| digest),
            None => Ok(Digest::of(&body)),
        }
    }

    /// Whether there is a manifest of that digest or tag: one HEAD, or one GET where the registry has no HEAD.
    pub(crate) async fn exists(&self, version: &str) -> Result<bool, Error> {
        let what = format!("manifest {version}");
        let found = match self.has_no_head() {
            true => self.send(&ask(Method::GET, version, &what)).await,
            false => self.send(&ask(Method::HEAD, version, &what)).await,
        };
        let Err(Error::Registry(error)) = found else {
            return found.map(|_| true);
        };
        match &error.fault {
            Fault::NotFound { .. } => Ok(false),
            fault if is_headless(fault) && !self.has_no_head() => {
                self.learn_no_head();
                Box::pin(self.exists(version)).await
            }
            _ => Err(Error::Registry(error)),
        }
    }

    async fn head(&self, tag: &str) -> Result<Option<Digest>, Error> {
        let what = format!("tag {tag}");
        match self.send(&ask(Method::HEAD, tag, &what)).await {
            Ok(response) => self.promised(&response),
            Err(Error::Registry(error)) if is_headless(&error.fault) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn promised(&self, response: &Response) -> Result<Option<Digest>, Error> {
        let Some(value) = response.headers().get(DIGEST_HEADER) else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(value.as_bytes());
        let digest = text.parse().map(Some);
        digest.map_err(|_| {
            let shown = foreign::shown(&text, &self.secrets());
            self.failed_at(response.url(), Fault::Digest(DigestError::of(shown)))
        })
    }

    /// The manifest or index `digest`. What the body hashes to counts, not what a header says.
    pub(crate) async fn manifest(&self, digest: &Digest) -> Result<Bytes, Error> {
        let what = format!("manifest {digest}");
        let limit = ("manifestBytes", self.settings().limits.manifest_bytes);
        let body = self.whole(&ask(Method::GET, digest.as_str(), &what), limit).await?;
        digest.verify("manifest", body)
    }

    pub(crate) async fn config(&self, blob: &Blob) -> Result<Bytes, Error> {
        let limit = ("configBytes", self.settings().limits.config_bytes);
        self.small_blob("config", blob, limit).await
    }

    /// A blob in one piece, verified.
    pub(crate) async fn small_blob(
        &self,
        kind: &'static str,
        blob: &Blob,
        limit: (&'static str, u64),
    ) -> Result<Bytes, Error> {
        let what = format!("{kind} {}", blob.digest);
        let path = format!("blobs/{}", blob.digest);
        let ask = Ask {
            method: Method::GET,
            path,
            accept: None,
            from: 0,
            what: &what,
        };
        let body = self.whole(&ask, limit).await?;
        let mut check = Check::new(kind, blob);
        check.update(&body)?;
        check.finish().map(|()| body)
    }

    /// A small body, asked for again if it breaks off.
    pub(crate) async fn whole(&self, ask: &Ask<'_>, limit: (&'static str, u64)) -> Result<Bytes, Error> {
        self.whole_from(ask, limit).await.map(|(_, _, body)| body)
    }

    /// The same, with where it came from and its headers.
    pub(crate) async fn whole_from(
        &self,
        ask: &Ask<'_>,
        limit: (&'static str, u64),
    ) -> Result<(Url, HeaderMap, Bytes), Error> {
        let mut waits = Waits::new(&self.settings().retry);
        loop {
            let response = self.send(ask).await?;
            let (from, headers) = (response.url().clone(), response.headers().clone());
            match self.body(response, limit, ask.what).await {
                Ok(body) => return Ok((from, headers, body)),
                Err(error) => self.pause(&mut waits, error).await?,
            }
        }
    }
}

/// How a registry answers that has no HEAD.
fn is_headless(fault: &Fault) -> bool {
    match fault {
        Fault::PlainRefused => true,
        Fault::Status(status) => matches!(status.as_u16(), 400 | 405 | 501),
        _ => false,
    }
}

fn ask<'a>(method: Method, reference: &str, what: &'a str) -> Ask<'a> {
    Ask {
        method,
        path: format!("manifests/{reference}"),
        accept: Some(ACCEPT),
        from: 0,
        what,
    }
}
