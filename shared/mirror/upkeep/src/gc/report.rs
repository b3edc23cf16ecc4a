use model::{CatalogName, GcPhase, GcState, Key, ObjectStats};
use publish::DatedGcState;
use serde::Serialize;

/// Result of one run of garbage collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GcReport {
    /// True if nothing was written because that was asked for.
    pub dry_run: bool,
    /// Step that this run took; [`GcStep::Wait`] if none was due.
    pub step: GcStep,
    /// State after this run: `none`, `condemned` or `deleting`.
    pub state: &'static str,
    /// Age of the state, in seconds, by the store's clock.
    pub age_seconds: u64,
    /// Next step, and the time until it is due.
    pub next: Option<NextStep>,
    /// Catalogs with a published state. 0 if this run did not mark.
    pub catalogs: usize,
    /// Snapshots that are kept, published or earlier. 0 if this run did not mark.
    pub snapshots: usize,
    /// Objects that a kept Snapshot names. 0 if this run did not list.
    pub kept: ObjectStats,
    /// Objects that this run condemned, or would have condemned.
    pub condemned: ObjectStats,
    /// Number and stored bytes of the objects that this run deleted.
    pub deleted: ObjectStats,
    /// Condemned objects that are still to be deleted.
    pub left: ObjectStats,
    /// Objects whose delete failed. They are condemned again in the next round.
    pub failed: u64,
    /// Damaged Snapshots of earlier publications, which name nothing any more: their publications
    /// cannot be rolled back to.
    pub unreadable: Vec<UnreadableState>,
}

impl GcReport {
    /// Records the step that was taken, the state, its age and the next step.
    pub(super) fn at(self, gc: &DatedGcState, step: GcStep) -> Self {
        let left = GcState::AGE_MIN.saturating_sub(gc.age());
        let (state, next) = match &gc.state.phase {
            GcPhase::None => ("none", GcStep::Condemn),
            GcPhase::Condemned { .. } => ("condemned", GcStep::Delete),
            GcPhase::Deleting { .. } => ("deleting", GcStep::Finish),
        };
        Self {
            step,
            state,
            // Without a document the age has no meaning.
            age_seconds: gc.since.map_or(0, |_| gc.age().as_secs()),
            next: Some(NextStep {
                step: next,
                due_in_seconds: left.as_secs(),
            }),
            ..self
        }
    }
}

/// Pointer or Snapshot that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnreadableState {
    /// Catalog that it belongs to, one of several if they share a Snapshot.
    pub catalog: CatalogName,
    /// Key of the object, a path in the store.
    pub key: String,
    /// Error and its causes on one line.
    pub error: String,
}

impl UnreadableState {
    pub(super) fn new(catalog: &CatalogName, key: &Key, error: &dyn std::error::Error) -> Self {
        Self {
            catalog: catalog.clone(),
            key: key.to_string(),
            error: model::text::error_line(error),
        }
    }
}

/// Step of garbage collection, by which its state moves on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GcStep {
    /// No step was due: the state is too young.
    #[default]
    Wait,
    /// Every object is named by a kept Snapshot.
    Clean,
    /// Listed all objects, and condemned those that nothing names.
    Condemn,
    /// Marked again, and deleted what is still condemned.
    Delete,
    /// Ended the round: the state is `none` again.
    Finish,
    /// Another collector or a publication changed the state at the same time.
    LostRace,
}

/// Next step of garbage collection, with its due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextStep {
    /// Step that the next run takes once it is due.
    pub step: GcStep,
    /// Seconds until it is due, by the store's clock; 0 if it is due now.
    pub due_in_seconds: u64,
}

impl GcStep {
    /// Returns the step in words, for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "waited: no step is due",
            Self::Clean => "found nothing to condemn",
            Self::Condemn => "condemned what nothing names",
            Self::Delete => "deleted what is condemned",
            Self::Finish => "ended the round",
            Self::LostRace => "lost a race: another run or a publication changed the state",
        }
    }
}
