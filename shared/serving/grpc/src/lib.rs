#![doc = include_str!("../README.md")]

mod call;
mod catalogs;
mod codec;
mod contents;
mod error;
mod indexing;
mod methods;
mod metrics;
pub mod olm_v0;
mod routes;

pub use catalogs::RegistryCatalogs;
pub use error::AnswerError;
pub use metrics::GrpcMetrics;
pub use routes::router;
