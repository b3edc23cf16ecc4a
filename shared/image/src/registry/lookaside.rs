//! Signatures that lie beside a registry, as files below a URL.

use bytes::Bytes;
use reqwest::{Method, StatusCode, Url};

use crate::error::Error;
use crate::registry::Session;
use crate::registry::exchange::Answer;
use crate::registry::hop::{self, Hop, Refusal};
use crate::registry::waits::Waits;

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
        let hop = Hop::home(home.clone()).map_err(|fault| self.failed(fault))?;
        let without_credentials = |hop: &Hop, _| self.start(Method::GET, hop);
        let Answer { response, .. } = self.follow_from(hop, without_credentials).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK => {
                let limit = ("signatureBytes", self.limits().signature_bytes);
                self.body(response, limit, home.path()).await.map(Some)
            }
            status => Err(self.failed(self.fault(status, response.headers(), home.path()))),
        }
    }
}
