//! Lists of what refers to a manifest, page by page.

use std::collections::BTreeSet;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};

use crate::digest::Digest;
use crate::error::Error;
use crate::registry::exchange::Ask;
use crate::registry::hop::{self, Refusal};
use crate::registry::{Fault, Session, link};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// How far a list has been read.
pub(crate) struct Pages {
    /// For people.
    what: String,
    next: Option<String>,
    /// As they were asked for.
    read: BTreeSet<String>,
}

impl Pages {
    pub(crate) const fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

impl Session {
    /// What refers to a manifest (OCI Distribution Specification v1.1, "Listing Referrers"). It is asked for all of it: a
    /// registry may apply a filter or not, and of the types that matter there are several.
    pub(crate) fn referrers(&self, digest: &Digest) -> Pages {
        Pages {
            what: format!("list of referrers of {digest}"),
            next: Some(self.path(&format!("referrers/{digest}"))),
            read: BTreeSet::new(),
        }
    }

    /// The index on the next page, if there is one; `None` also if the registry has no such list at all (404, which older
    /// registries vary).
    pub(crate) async fn page(&self, pages: &mut Pages) -> Result<Option<Bytes>, Error> {
        let Some(path) = pages.next.take() else {
            return Ok(None);
        };
        let is_first = pages.read.is_empty();
        pages.read.insert(path.clone());
        let ask = Ask {
            method: Method::GET,
            path,
            accept: Some(INDEX),
            from: 0,
            what: &pages.what,
        };
        let limit = ("manifestBytes", self.limits().manifest_bytes);
        match self.whole_from(&ask, limit).await {
            Ok((from, headers, body)) => {
                pages.next = self.next_page(&from, &headers, &pages.read)?;
                Ok(Some(body))
            }
            Err(Error::Registry(error)) if is_first && has_none(&error.fault) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where a page says that the next one is. Credentials go there, and what it says counts as much as what the registry
    /// itself says; so it has to be the registry's own.
    fn next_page(&self, from: &Url, headers: &HeaderMap, read: &BTreeSet<String>) -> Result<Option<String>, Error> {
        let Some(target) = link::next(headers) else {
            return Ok(None);
        };
        let Ok(to) = from.join(&target) else {
            return Err(self.failed(hop::refused(from, Refusal::NotUrl)));
        };
        let path = to
            .query()
            .map_or_else(|| to.path().to_owned(), |query| format!("{}?{query}", to.path()));
        let why = match hop::unusable(&to) {
            Some(why) => why,
            None if !hop::same_origin(&self.home("")?.url, &to) => Refusal::Elsewhere,
            None if read.contains(&path) => Refusal::ReadBefore,
            None => return Ok(Some(path)),
        };
        Err(self.failed(hop::refused(&to, why)))
    }
}

/// How a registry answers that has no lists of referrers.
fn has_none(fault: &Fault) -> bool {
    match fault {
        Fault::NotFound { .. } | Fault::PlainRefused => true,
        Fault::Status(status) => matches!(status.as_u16(), 400 | 405 | 406 | 501),
        _ => false,
    }
}
