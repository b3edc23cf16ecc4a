#![doc = include_str!("../README.md")]

mod assemble;
mod block;
mod context;
mod deflate;
mod error;
mod fragment;
mod gzip;
mod image;
mod known;
mod outputs;
mod parts;
mod proof;
mod published;
mod renderer;
mod rendering;
mod settings;
mod shard;
mod stored;
mod usage;
mod write_all;

pub use fbc::DocumentPosition;

pub use block::{HashingWriter, Sink, Sinks};
pub use error::{FileProblem, RenderError};
pub use image::ImageLayer;
pub use known::{ChunkLines, KnownChunks, ShardPart, known_chunks};
pub use outputs::AllFacts;
pub use published::PublishedGzip;
pub use renderer::Renderer;
pub use rendering::{Rendering, index_lines};
pub use settings::{RenderLimits, RenderSettings};
pub use shard::{MetaPlace, Shard};
pub use stored::{NoStoredShards, StoredShards};
