#![doc = include_str!("../README.md")]

mod app;
mod beside;
mod bodies;
mod call;
mod coding;
mod error;
mod memory;
mod metrics;
mod payload;
mod representation;
mod respond;
mod rfc9110;
mod router;
mod routes;
mod settings;

pub use beside::beside;
pub use error::refuse;
pub use metrics::HttpMetrics;
pub use router::router;
pub use routes::{CATALOGS_LIST, catalog_of, is_kept, is_probe, page_files};
#[cfg(not(target_arch = "wasm32"))]
pub use settings::offload;
pub use settings::{BaseUrl, HttpSettings, LargeBodies, Locate, Origins};
