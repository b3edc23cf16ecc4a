#![doc = include_str!("../README.md")]

mod assemble;
mod context;
mod deflate;
mod error;
mod fragment;
mod gzip;
mod hashing;
mod index;
mod limits;
mod memory;
mod of_snapshot;
mod renderer;
mod rendering;
mod scratch;
mod settings;
mod shard;
mod stored;
mod usage;
mod write_all;

pub use fbc::{DocumentPosition, IgnoreLimits, StopFlag};

pub use error::{FileProblem, RenderError};
pub use gzip::LayerFacts;
pub use index::IndexFile;
pub use limits::{ExceededLimit, RenderLimits};
pub use memory::MemoryBudget;
pub use of_snapshot::index_lines;
pub use renderer::Renderer;
pub use rendering::Rendering;
pub use settings::RenderSettings;
pub use shard::{MetaPlace, Shard};
pub use stored::{NoStoredShards, StoredShards};
pub use write_all::{AllFacts, Sinks};
