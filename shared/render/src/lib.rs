#![doc = include_str!("../README.md")]

mod again;
mod assemble;
mod count;
mod deflate;
mod error;
mod fragment;
mod gzip;
mod index;
mod limits;
mod measured;
mod published;
mod renderer;
mod rendering;
mod scratch;
mod settings;
mod shard;
mod whole;
mod worker;

pub use error::{Problem, RenderError};
pub use gzip::LayerFacts;
pub use index::IndexFile;
pub use limits::{Limit, Limits};
pub use published::{Nothing, Published};
pub use renderer::Renderer;
pub use rendering::Rendering;
pub use settings::Settings;
pub use shard::Shard;
pub use whole::{AllFacts, Sinks};
