#![doc = include_str!("../README.md")]

mod answers;
pub mod api;
mod bundle_line;
mod bundle_query;
mod csv;
mod error;
mod go;
mod graph;
mod json;
mod meta_struct;
mod objects;
mod record;
mod recorder;
mod stored;

pub use api::ApiBundle;
pub use bundle_query::{BundleContent, BundleKey, BundleQuery, ListedBundle};
pub use error::RegistryError;
pub use graph::{GRAPH_VERSION, Graph, GraphBuilder};
pub use meta_struct::meta_struct;
pub use record::{LineRange, PackageRecord};
pub use recorder::PackageRecorder;
pub use stored::GRAPH_BYTES_MAX;
