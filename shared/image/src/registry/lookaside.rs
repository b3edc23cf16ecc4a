//! Signatures that lie beside a registry, as files below a URL.

use bytes::Bytes;
use reqwest::{Method, StatusCode, Url};

use crate::error::Error;
use crate::registry::Session;
use crate::registry::hop::{self, Hop, Refusal};
use crate::registry::waits::Waits;

/// As for registries.
const MOST_REDIRECTS: usize = 5;

impl Session {
    /// What lies at a URL, without credentials; `None` if nothing does.
    pub(crate) async fn beside(&self, url: &Url) -> Result<Option<Bytes>, Error> {
        if url.scheme() == "http" && !self.settings().is_plain(&hop::authority(url)) {
            return Err(self.failed(hop::refused(url, Refusal::PlainHttp)));
        }
        let mut waits = Waits::new(&self.settings().retry);
        loop {
            match self.look_beside(url).await {
                Ok(found) => return Ok(found),
                Err(error) => self.pause(&mut waits, error).await?,
            }
        }
    }

    async fn look_beside(&self, home: &Url) -> Result<Option<Bytes>, Error> {
        // Its operator has named it, as he has the registry.
        let mut hop = Hop::home(home.clone()).map_err(|fault| self.failed(fault))?;
        for _ in 0..=MOST_REDIRECTS {
            let response = self.exchange(&hop, self.start(Method::GET, &hop)).await?;
            match response.status() {
                StatusCode::NOT_FOUND => return Ok(None),
                StatusCode::OK => {
                    let limit = ("signatureBytes", self.limits().signature_bytes);
                    return self.body(response, limit, home.path()).await.map(Some);
                }
                status if status.is_redirection() => {
                    let sender = self.client.0.http.sender(&response);
                    let next = hop.redirect(response.headers(), sender, self.settings());
                    hop = next.map_err(|fault| self.failed_at(response.url(), fault))?;
                }
                status => return Err(self.failed(self.fault(status, response.headers(), home.path()))),
            }
        }
        Err(self.failed(hop::refused(&hop.url, Refusal::TooMany)))
    }
}
