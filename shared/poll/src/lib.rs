#![doc = include_str!("../README.md")]

mod adopt;
mod approve;
mod catalog;
mod error;
mod guard;
mod limits;
mod metrics;
mod mirror;
mod pointer;
mod progress;
mod publish;
mod published;
mod pull;
mod report;
mod rollback;
mod schedule;
mod status;
mod surroundings;
mod turn;

pub use catalog::Catalog;
pub use error::PollError;
pub use guard::Suspicion;
pub use limits::Limits;
pub use metrics::Metrics;
pub use mirror::{Look, Mirror, Options, Settings};
pub use progress::{Progress, Seen};
pub use pull::RenderSink;
pub use report::{Changes, Report};
pub use rollback::{RollbackError, Target, Terms, rollback, rollback_on};
pub use schedule::{Schedule, backoff};
pub use surroundings::{Surroundings, jittered};
