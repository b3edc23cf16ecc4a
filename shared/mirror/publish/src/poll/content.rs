//! Content that a poll has read.

use std::sync::Arc;

use model::{EmptyLayers, Snapshot};
use render::Rendering;

/// Content that was read and rendered.
pub(super) struct NewContent {
    pub(super) rendering: Arc<Rendering>,
    /// Published states that it was composed of; empty if it was pulled.
    pub(super) inputs: Vec<Arc<Snapshot>>,
    /// Remarks of the composition; `None` if it was pulled.
    pub(super) notices: Option<Vec<String>>,
    /// Layers of the image that hold no FBC; `None` if it was composed.
    pub(super) empty_layers: Option<EmptyLayers>,
}
