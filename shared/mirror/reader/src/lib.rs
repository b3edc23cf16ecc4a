#![doc = include_str!("../README.md")]

mod cache;
mod catalogs;
mod error;
mod index;
mod lines;
mod objects;
mod pointer;
mod state;
mod stream;

pub use cache::{BodyKey, WeightedCache};
pub use catalogs::PublishedCatalogs;
pub use error::{Corruption, PointerRefused, ReaderError};
pub use index::MetaFilter;
pub use lines::PublishedLines;
pub use objects::Extent;
pub use state::{PublishedState, ReaderSettings, Work};
pub use stream::{CHUNKS_BYTES, Chunks, map_chunks, pick, small};
