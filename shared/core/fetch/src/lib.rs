#![doc = include_str!("../README.md")]

mod auth;
mod client;
mod error;
mod header_file;
mod network;
mod proxy;
mod redact;
mod redirect;
mod request;
mod response;
mod retry;
mod settings;
mod tls;
mod traffic;

pub use auth::{CredentialsError, Login, Logins, find_login};
pub use client::Fetcher;
pub use error::{FailedFetch, FetchError, Peer, RedirectRefusal, authority, retry_after};
pub use header_file::{HeaderFileError, HeaderFiles, read_header_file};
pub use network::{AddressLookup, AddressScope, Network};
pub use proxy::{Proxy, proxy_of_environment};
pub use redact::{SentSecrets, WITHHELD};
pub use redirect::{RedirectTarget, next_link, unusable};
pub use request::RequestSpec;
pub use response::{FetchResponse, ResumableBody};
pub use retry::{AttemptCount, RequestError, Retries, RetryWaits};
pub use settings::{FetchSettings, FetchSettingsError, MinThroughput, RetrySchedule, USER_AGENT};
pub use traffic::Traffic;
