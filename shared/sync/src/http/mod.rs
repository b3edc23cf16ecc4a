//! A mirror behind HTTP: a CDN, a reader, or nothing but a static file server over a store's folder.

mod address;
mod body;
mod clients;
mod error;
mod hop;
mod waits;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use layout::{Key, Sha256};
use reqwest::{
    Response, StatusCode,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, IF_NONE_MATCH, IF_RANGE, RANGE},
};
use store::DOCUMENT_MAX;

pub use self::{
    address::{Address, AddressError},
    clients::ClientError,
    error::HttpError,
};
use self::{clients::Clients, waits::Waits};
use crate::{Body, Document, Origin, OriginError, origin::collect};

/// A CDN in front of a CDN is two; more is a loop.
const MOST_REDIRECTS: usize = 5;

/// How a server is spoken to.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Bundles of certificates to trust besides the system's.
    pub ca_files: Vec<PathBuf>,
    /// Fields to send with every request to the server itself, such as `Authorization`; never after a redirect to
    /// another one. Default: none.
    pub fields: HeaderMap,
    /// Time to connect. Default 10 s.
    pub connect_timeout: Duration,
    /// Time without a byte. Default 30 s.
    pub read_timeout: Duration,
    /// Attempts of one request, the first included. Default 5.
    pub attempts: usize,
    /// The wait before the second attempt; it doubles. Default 200 ms.
    pub first_wait: Duration,
    /// Time for all attempts of one request together; a server that asks for more is believed and given up. Default 60 s.
    pub patience: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            ca_files: Vec::new(),
            fields: HeaderMap::new(),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            attempts: 5,
            first_wait: Duration::from_millis(200),
            patience: Duration::from_secs(60),
        }
    }
}

/// The mirror at a URL.
#[derive(Clone)]
pub struct HttpOrigin(Arc<Inner>);

struct Inner {
    address: Address,
    settings: HttpSettings,
    clients: Clients,
}

/// The same, as everything that is asked of it is asked.
#[derive(Default)]
struct Ask<'a> {
    /// The entity tag of what is known already.
    known: Option<&'a str>,
    /// The first byte that is wanted.
    from: u64,
    /// The entity tag of what the bytes before it are of.
    same: Option<&'a str>,
}

impl HttpOrigin {
    /// The mirror at `address`.
    ///
    /// # Errors
    /// [`ClientError`] for CA files that cannot be used.
    pub fn new(address: Address, settings: HttpSettings) -> Result<Self, ClientError> {
        let clients = Clients::new(&settings)?;
        Ok(Self(Arc::new(Inner {
            address,
            settings,
            clients,
        })))
    }

    fn waits(&self) -> Waits {
        Waits::new(&self.0.settings)
    }

    /// Sends until it is answered, fails for good or the attempts are used up.
    async fn send(&self, key: &Key, ask: &Ask<'_>, waits: &mut Waits) -> Result<Response, OriginError> {
        loop {
            match self.attempt(key, ask).await {
                Ok(response) => return Ok(response),
                Err(HttpError::NotFound) => return Err(OriginError::NotFound(key.to_string())),
                Err(error) => waits.pause(key, error).await?,
            }
        }
    }

    async fn attempt(&self, key: &Key, ask: &Ask<'_>) -> Result<Response, HttpError> {
        let home = self.0.address.url(key);
        let mut url = home.clone();
        for _ in 0..=MOST_REDIRECTS {
            let mut request = self
                .0
                .clients
                .to(&url)
                .get(url.clone())
                .header(ACCEPT_ENCODING, "identity");
            if url.origin() == home.origin() {
                request = self.0.address.apply(request).headers(self.0.settings.fields.clone());
            }
            if let Some(tag) = ask.known {
                request = request.header(IF_NONE_MATCH, tag);
            }
            if ask.from > 0 {
                request = request.header(RANGE, format!("bytes={}-", ask.from));
                request = ask
                    .same
                    .into_iter()
                    .fold(request, |request, tag| request.header(IF_RANGE, tag));
            }
            let response = request.send().await.map_err(HttpError::of)?;
            match response.status() {
                status if status.is_success() => return Ok(response),
                StatusCode::NOT_MODIFIED if ask.known.is_some() => return Ok(response),
                status if hop::is_redirect(status) => url = hop::target(&url, response.headers())?,
                status => return Err(HttpError::from_status(status, response.headers())),
            }
        }
        Err(HttpError::Redirect {
            to: url.host_str().unwrap_or("nowhere").to_owned(),
            why: "there are too many redirects",
        })
    }
}

#[async_trait]
impl Origin for HttpOrigin {
    async fn document(&self, key: &Key, known: Option<&[u8]>) -> Result<Document, OriginError> {
        let tag = known.map(|bytes| Sha256::of(bytes).to_entity_tag());
        let ask = Ask {
            known: tag.as_deref(),
            ..Ask::default()
        };
        let mut waits = self.waits();
        let response = self.send(key, &ask, &mut waits).await?;
        if response.status() == StatusCode::NOT_MODIFIED {
            return Ok(Document::Known);
        }
        // What a document holds is not pinned by a hash, so it has to come plain.
        if let Some(coding) = response
            .headers()
            .get(CONTENT_ENCODING)
            .filter(|coding| *coding != "identity")
        {
            let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
            return Err(HttpError::Encoded(coding).at(key));
        }
        let bytes = collect(self.body(key.clone(), DOCUMENT_MAX, response, waits)).await?;
        Ok(Document::of(bytes, known))
    }

    async fn object(&self, key: &Key, size: u64) -> Result<Body, OriginError> {
        let mut waits = self.waits();
        let response = self.send(key, &Ask::default(), &mut waits).await?;
        Ok(self.body(key.clone(), size, response, waits))
    }
}

impl fmt::Debug for HttpOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpOrigin").field(&self.0.address).finish()
    }
}
