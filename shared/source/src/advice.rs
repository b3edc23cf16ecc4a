//! Advice on failures of the transport, the same for all servers.

use fetch::{FetchError, RedirectRefusal};

/// Setting that allows a private address.
const INTERNAL: &str = "under internalHosts (--internal-host)";

/// Returns what a user can do about a failure of `host`.
pub(crate) fn fetch_advice(error: &FetchError, host: &str) -> Option<String> {
    match error {
        FetchError::RateLimited { .. } => Some("poll less often, or log in to be granted more".to_owned()),
        FetchError::NotTls => Some(format!("if that is intended list {host} under plainHttp")),
        FetchError::Redirect { to, reason } if *reason == RedirectRefusal::Private => {
            Some(format!("if that is intended list {to} {INTERNAL}"))
        }
        FetchError::Address { reason } if *reason == RedirectRefusal::Private => {
            Some(format!("if that is intended list {host} {INTERNAL}"))
        }
        _ => None,
    }
}
