//! The client of the leader: the Lease has its address, and its certificate must be valid for the name of the service.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use axum::http::{
    HeaderMap, HeaderValue, Method, StatusCode, Uri,
    header::{ETAG, IF_NONE_MATCH},
};
use fetch::{
    AddressScope, FetchResponse, FetchSettings, Fetcher, Network, PlainHttp, Proxy, RedirectTarget, RequestSpec,
};
use store::Store;
use sync::{Copier, HttpOrigin, HttpSettings, SyncOptions};
use tokio::time::timeout;

use super::{LACKS_HEADER, LEAVES_HEADER, LIST_PATH, REPLICA_HEADER, ReplicaList};
use crate::{authorities::Authorities, token::OwnToken};

/// Maximum time to connect to the leader. It is in the same cluster.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// Maximum time for one request for the list.
const ASK_TIME: Duration = Duration::from_secs(5);
/// Maximum time to say that this replica ends.
const LEAVE_TIME: Duration = Duration::from_secs(1);
/// Maximum number of bytes of the list: 100 for each of 10,000 catalogs.
const LIST_MAX: u64 = 1 << 20;

/// Settings for requests to any leader.
pub(crate) struct LinkSettings {
    /// `https`, or `http` if this program has no certificate.
    pub(crate) scheme: &'static str,
    /// Host for which the certificate of the leader must be valid.
    pub(crate) host: String,
    pub(crate) authorities: Authorities,
    pub(crate) token: OwnToken,
}

/// Client of the replica that leads.
pub(crate) struct LeaderLink {
    address: String,
    base: String,
    fetcher: Fetcher,
    token: OwnToken,
    pub(crate) copier: Copier,
}

/// Headers of a request for the list.
pub(crate) struct FollowerReport {
    pub(crate) replica: String,
    /// Entity tag of the list that is known. Empty for none.
    pub(crate) tag: String,
    pub(crate) lacks: String,
}

impl LeaderLink {
    /// Creates the client; sends nothing.
    pub(crate) fn new(address: &str, settings: &LinkSettings, store: &Arc<dyn Store>) -> anyhow::Result<Self> {
        let place: SocketAddr = address.parse().context("the address in the Lease is not IP:PORT")?;
        let http = FetchSettings {
            ca_files: settings.authorities.for_leader()?,
            plain_http: match settings.scheme {
                "http" => PlainHttp::Everywhere,
                _ => PlainHttp::default(),
            },
            connect_timeout: CONNECT_TIME,
            // A proxy of the environment is for registries.
            proxy: Proxy::Off,
            network: Network {
                lookup: Arc::new(move |_| Box::pin(async move { Ok(vec![place.ip()]) })),
                scope: AddressScope::of,
            },
            ..FetchSettings::default()
        };
        let base = format!("{}://{}:{}", settings.scheme, settings.host, place.port());
        let fetcher = Fetcher::new(http.clone())?;
        let http = HttpSettings {
            http,
            headers: HeaderMap::new(),
        };
        let origin = HttpOrigin::new(base.parse()?, http)?;
        let options = SyncOptions {
            source: "the leader".to_owned(),
            // Whatever the leader has published is right.
            rollback: true,
            diverged: true,
            // It has made all representations. To make them again takes more time and memory than to copy them.
            rebuild: false,
            ..SyncOptions::default()
        };
        Ok(Self {
            address: address.to_owned(),
            base,
            fetcher,
            token: settings.token.clone(),
            copier: Copier::new(Arc::new(origin), Arc::clone(store), options),
        })
    }

    /// Returns true if this is the client for an address.
    pub(crate) fn is_to(&self, address: &str) -> bool {
        self.address == address
    }

    /// Asks for the list. Returns `None` if it is the known one, else the list and its entity tag.
    pub(crate) async fn ask(&self, report: FollowerReport) -> anyhow::Result<Option<(ReplicaList, String)>> {
        let ask = self.try_ask(report);
        timeout(ASK_TIME, ask).await.context("there is no answer in time")?
    }

    async fn try_ask(&self, report: FollowerReport) -> anyhow::Result<Option<(ReplicaList, String)>> {
        let mut request = RequestSpec::default().with_bearer_auth(&self.token.read()?);
        request
            .headers
            .insert(REPLICA_HEADER, HeaderValue::try_from(report.replica)?);
        request
            .headers
            .insert(LACKS_HEADER, HeaderValue::try_from(report.lacks)?);
        if !report.tag.is_empty() {
            request
                .headers
                .insert(IF_NONE_MATCH, HeaderValue::try_from(report.tag)?);
        }
        let response = self.send(LIST_PATH, request).await?;
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(None),
            StatusCode::OK => {
                let tag = response.headers().get(ETAG).context("the list has no entity tag")?;
                let tag = tag.to_str()?.to_owned();
                let body = response.bytes(LIST_MAX).await.map_err(|failed| failed.error)?;
                let list = serde_json::from_slice(&body).context("the list cannot be read")?;
                Ok(Some((list, tag)))
            }
            StatusCode::CONFLICT => bail!("the replica does not lead any more"),
            status => bail!("the leader answers {status}"),
        }
    }

    /// Says that a replica ends.
    pub(crate) async fn leave(&self, replica: &str) -> anyhow::Result<()> {
        let mut request = RequestSpec::default().with_bearer_auth(&self.token.read()?);
        request.headers.insert(REPLICA_HEADER, HeaderValue::try_from(replica)?);
        request.headers.insert(LEAVES_HEADER, HeaderValue::from_static("1"));
        timeout(LEAVE_TIME, self.send(LIST_PATH, request))
            .await
            .context("there is no answer in time")??;
        Ok(())
    }

    /// Sends a request of a client to the leader. Returns any answer.
    pub(crate) async fn forward(
        &self,
        method: Method,
        uri: &Uri,
        request: RequestSpec,
    ) -> anyhow::Result<FetchResponse> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        self.send(path, RequestSpec { method, ..request }).await
    }

    async fn send(&self, path: &str, request: RequestSpec) -> anyhow::Result<FetchResponse> {
        let url = format!("{}{path}", self.base)
            .parse()
            .context("the path is not one of a URL")?;
        let target = RedirectTarget::configured(url)?;
        let sent = self.fetcher.send(&target, &request).await;
        Ok(sent.map_err(|failed| failed.error)?)
    }
}
