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

pub use auth::{CredentialsError, Login, Logins, find_login};
pub use client::{Fetcher, Traffic};
pub use error::{FailedFetch, FetchError, Peer};
pub use header_file::{HeaderFileError, HeaderFiles, read_header_file};
pub use network::{AddressLookup, AddressScope, Network};
pub use proxy::{Proxy, proxy_of_environment};
pub use redact::{SentSecrets, WITHHELD};
pub use redirect::{RedirectRefusal, RedirectTarget, authority, next_link, unusable};
pub use request::RequestSpec;
pub use response::{FetchResponse, ResumableBody};
pub use retry::{AttemptCount, RequestError, Retries, RetrySchedule, RetryWaits, retry_after};
pub use settings::{FetchSettings, FetchSettingsError, MinThroughput, USER_AGENT};
