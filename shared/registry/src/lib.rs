#![doc = include_str!("../README.md")]

mod answers;
pub mod api;
mod bundle_line;
mod bundle_query;
mod contents;
mod contents_builder;
mod csv;
mod error;
mod go;
mod graph;
mod json;
mod message_parts;
mod meta_struct;
mod objects;
mod record;
mod recorder;

pub use api::ApiBundle;
pub use bundle_query::{BundleQuery, ContentsKey, ListedBundle};
pub use contents::{BundleContent, PackageContents};
pub use contents_builder::ContentsBuilder;
pub use error::RegistryError;
pub use graph::{GRAPH_BYTES_MAX, GRAPH_VERSION, Graph, GraphBuilder};
pub use message_parts::MessageParts;
pub use meta_struct::meta_struct;
pub use record::{LineRange, PackageRecord};
pub use recorder::PackageRecorder;
