//! Registries: the few requests of the distribution API that reading and pushing need, with authentication, retries and limits.
//!
//! | a registry may | result |
//! |---|---|
//! | lie about a digest, a length, a type or an encoding | only bytes with the right digest are used; a web page in place of a manifest is named |
//! | compress a body though nothing asks for it | documents are decoded from gzip within the limits; another coding, and one of a layer, is named |
//! | send without end: signatures, pages, headers, bodies, single bytes | limits of the descriptor and of `ImageLimits`, read time-out, minimum throughput, time-outs of resolve and pull |
//! | redirect, or name a token realm | the rules of `fetch`; at most 5 redirects |
//! | link to further pages of signatures | the next page must be on the registry and not read before; each counts as one of `signatures` |
//! | ask for credentials | only the registry itself may ask; credentials go to its origin or its realm, never along with a redirect and never back after one |
//! | name a token service that gives no token | named, also for a 404; the next pull is challenged again |
//! | answer "later" for ever | the retry schedule; a longer `Retry-After` is reported |
//! | have a bad certificate or no TLS | an error with advice; never plain HTTP in its place |
//! | put text into errors | no bodies are quoted; hosts and digests are cut and cleaned; what repeats a secret is withheld |

mod auth;
mod exchange;
mod objects;
mod push;
mod referrers;
mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use fetch::{FetchError, Login, RedirectRefusal};
use oci_client::Reference;
use parking_lot::Mutex;
use reqwest::Url;
use tokio::sync::OnceCell;

use crate::server::AskedServer;
use crate::{Error, ServerFault, ServerPlace, SourceSettings, Sources};

use auth::AuthState;

pub(crate) use exchange::if_found;
pub use push::Pushed;
pub use rules::{RegistryMirror, RegistryRule, RegistryRules};

/// Authentication for all repositories, shared by all pulls of a process.
pub(crate) type AuthStates = Arc<Mutex<BTreeMap<AuthKey, SharedAuthState>>>;

/// Locked while a token is fetched, so that concurrent requests share one token.
type SharedAuthState = Arc<tokio::sync::Mutex<AuthState>>;

/// Host, repository and the actions that a token is for.
type AuthKey = (String, String, &'static str);

/// One resolve, read or push of one repository. Credentials are read at most once in a session, and again in the next.
pub(crate) struct Session {
    pub(crate) settings: Arc<SourceSettings>,
    pub(crate) server: AskedServer,
    /// URL of the repository in the API, ending in a slash.
    base: Url,
    repository: String,
    /// Actions that a token is asked for (CNCF distribution, "Token Scope Documentation").
    actions: &'static str,
    auth: SharedAuthState,
    login: OnceCell<Option<Login>>,
}

impl Sources {
    /// Starts a session that reads. Fails for a reference that makes no URL.
    pub(crate) fn session(&self, reference: &Reference) -> Result<Session, Error> {
        self.session_for(reference, "pull")
    }

    /// Starts a session whose tokens are for these actions.
    fn session_for(&self, reference: &Reference, actions: &'static str) -> Result<Session, Error> {
        let host = reference.resolve_registry().to_owned();
        let repository = reference.repository().to_owned();
        let is_plain = self.settings.http.allows_plain_http(&host);
        let scheme = if is_plain { "http" } else { "https" };
        let url = format!("{scheme}://{host}/v2/{repository}/");
        let key = (host.clone(), repository.clone(), actions);
        let place = ServerPlace {
            text: format!("registry {}, repository {repository}", reference.registry()),
            host,
            name: reference.registry().to_owned(),
            is_registry: true,
            failed_mirrors: Vec::new(),
        };
        let server = AskedServer::new(self.fetcher.with_own_traffic(self.settings.registry_wait), place);
        Ok(Session {
            settings: Arc::clone(&self.settings),
            base: Url::parse(&url).map_err(|_| server.failed(ServerFault::Url(url)))?,
            server,
            repository,
            actions,
            auth: Arc::clone(self.auth_states.lock().entry(key).or_default()),
            login: OnceCell::new(),
        })
    }
}

impl Session {
    /// Returns the credentials for this repository, if any are configured. A broken configuration is an error: an
    /// anonymous request would only lead to a 401 that hides the cause.
    async fn login(&self) -> Result<Option<&Login>, Error> {
        let find = || self.server.login(&self.settings, &self.repository);
        Ok(self.login.get_or_try_init(find).await?.as_ref())
    }

    /// Returns the URL of a path below the repository.
    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        url
    }

    /// Returns the URL that an answer from `from` names. Credentials go there, so it must be on the registry itself.
    fn own_url(&self, from: &Url, named: &str) -> Result<Url, FetchError> {
        let Ok(to) = from.join(named) else {
            return Err(RedirectRefusal::NotUrl.error(from));
        };
        let is_own = to.origin() == self.base.origin();
        let other = (!is_own).then_some(RedirectRefusal::OtherServer);
        match fetch::unusable(&to).or(other) {
            Some(reason) => Err(reason.error(&to)),
            None => Ok(to),
        }
    }
}
