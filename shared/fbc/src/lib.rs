#![doc = include_str!("../README.md")]

mod canon;
mod chunk;
mod chunks;
mod error;
mod index_ignore;
mod json;
mod limits;
mod meta;
mod order;
mod stream;
mod yaml;

pub use chunk::Chunk;
pub use chunks::Chunks;
pub use error::{Error, Problem};
pub use index_ignore::IndexIgnore;
pub use limits::Limits;
pub use meta::Meta;
pub use order::walk_order;
