//! Lists of the manifests that refer to a manifest, page by page; and signatures under tags, in
//! blobs and in files.

use std::mem::take;

use bytes::Bytes;
use fetch::RequestSpec;
use oci::{Digest, media_type};
use reqwest::{Method, StatusCode, Url};

use crate::Error;
use crate::registry::{ApiRequest, Session, if_found};

/// The progress of reading a list.
pub(crate) struct ListPages {
    /// Request for the next page; `None` after the last one.
    pub(crate) next: Option<ApiRequest>,
    is_first: bool,
}

impl Session {
    /// Starts the list of a manifest's referrers (OCI Distribution Specification v1.1, "Listing
    /// Referrers").
    pub(crate) fn referrers(&self, digest: &Digest) -> ListPages {
        let what = format!("list of referrers of {digest}");
        // No filter: a registry may ignore it, and several types matter.
        let url = self.url(&format!("referrers/{digest}"));
        self.list_pages(url, what, media_type::INDEX)
    }

    /// Starts a list at its first page.
    pub(crate) fn list_pages(&self, url: Url, what: String, media_type: &'static str) -> ListPages {
        let first = ApiRequest::new(Method::GET, url, what);
        ListPages {
            next: Some(first.accepting(media_type)),
            is_first: true,
        }
    }

    /// Returns the document on the next page. `None` after the last page, or if the registry has no
    /// such list at all.
    pub(crate) async fn next_page(&self, pages: &mut ListPages) -> Result<Option<Bytes>, Error> {
        let Some(request) = pages.next.take() else {
            return Ok(None);
        };
        let is_first = take(&mut pages.is_first);
        let limit = self.settings.limits.manifest();
        let mut retries = self.server.retries();
        let asked = retries.run(|| async {
            let response = self.attempt(&request).await?;
            let mut next = None;
            if let Some(link) = fetch::next_link(response.headers()) {
                let url = self.own_url(response.url(), &link);
                next = Some(url.map_err(|error| self.server.failed(error))?);
            }
            let page = self.body(response, limit, &request.what).await?;
            Ok((page, next))
        });
        match asked.await {
            Ok((page, next)) => {
                pages.next = next.map(|url| ApiRequest { url, ..request });
                Ok(Some(page))
            }
            // Older registries do not always say 404.
            Err(Error::Server(error))
                if is_first && (error.is_not_found() || error.lacks_api()) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the manifest or index under a tag, or `None` if there is no such tag.
    pub(crate) async fn tagged(&self, tag: &str) -> Result<Option<Bytes>, Error> {
        let request = self.manifest_request(Method::GET, tag);
        let limit = self.settings.limits.manifest();
        if_found(self.whole_document(&request, limit).await)
    }

    /// Returns the file at a URL, requested without credentials, or `None` if there is none.
    pub(crate) async fn file_at(&self, url: &Url) -> Result<Option<Bytes>, Error> {
        let limit = self.settings.limits.signature();
        let what = url.path();
        let mut retries = self.server.retries();
        let read = retries.run(|| async {
            let request = RequestSpec::default();
            let response = self.server.follow(url.clone(), &request).await?;
            match response.status() {
                StatusCode::NOT_FOUND => Ok(None),
                StatusCode::OK => self.body(response, limit, what).await.map(Some),
                status => {
                    let fault = self.status_fault(status, response.headers(), what);
                    Err(self.server.failed(fault))
                }
            }
        });
        read.await
    }
}
