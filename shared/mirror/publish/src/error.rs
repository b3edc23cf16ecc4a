use std::{collections::BTreeSet, iter, time::Duration};

use model::{Hold, Outcome, PullInputs, RejectedRevision, RejectionKind};
use render::RenderError;
use source::{ImageError, ServerFault, UnpackError};
use work::OverBudget;

use crate::{PublishError, RetryableError};

/// Failure of a poll or rollback. What was published before stays served.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The signatures of the image cannot be fetched, which counts as none.
    #[error("cannot fetch the signatures of the image")]
    Signatures(#[source] source::Error),
    /// The signatures of the image do not meet the policy.
    #[error(
        "the image was not published: its signatures are not what the policy of the catalog asks for"
    )]
    Rejected(#[from] trust::policy::VerifyError),
    /// The source cannot be resolved or pulled.
    #[error("cannot pull the catalog")]
    Image(#[from] source::Error),
    /// One input or addition of a composition cannot be read.
    #[error("{place}")]
    Input {
        /// Input, as messages call it.
        place: String,
        /// Error of the input alone.
        source: Box<Self>,
    },
    /// The composition does not fit its inputs, or an input cannot be read.
    #[error("cannot compose the catalog")]
    Compose(#[from] compose::ComposeError),
    /// An input of the composition cannot be used now.
    #[error("waiting for {input}: {reason}")]
    Waiting {
        /// Name of the input.
        input: String,
        /// Reason, with the error of the input if it has one.
        reason: String,
    },
    /// The FBC is not valid, or rendering it failed.
    #[error("cannot render the catalog")]
    Render(#[from] RenderError),
    /// The store cannot be read or written, or the publication cannot be committed.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The new content looks like an accident, or violates the rules of OLM and the catalog refuses
    /// that.
    #[error("the new content was not published: {0}")]
    Refused(String),
    /// The new content looks like an accident. It is held back for some time, or until a person lets
    /// it through.
    #[error("{text}")]
    Held {
        /// Reasons, and what can be done.
        text: String,
        /// Times of the hold.
        hold: Hold,
        /// True if an earlier poll has found the same revision, and told the reasons.
        is_known: bool,
    },
    /// The process died each time that it pulled this revision.
    #[error(
        "{} has failed for good: the process died {deaths} times while it pulled it. Version {} does not try it again; \
         another revision is polled as ever, and `poll --force` tries this one again",
        .inputs.revision, .inputs.program
    )]
    Killer {
        /// Revision of the source, and the version of the program.
        inputs: PullInputs,
        /// Number of pulls that began and did not end.
        deaths: u32,
    },
    /// This revision was pulled before, and the same program would come to the same result.
    #[error(
        "{} is not pulled again until it, the configuration or the program changes, or `poll --force` asks for it: {}",
        .0.inputs.revision, .0.error
    )]
    KnownRevision(Box<RejectedRevision>),
    /// The poll did not end within [`PollOptions::time`](crate::PollOptions::time).
    #[error("the poll did not end within {} s, which was all the time there was", .0.as_secs())]
    OutOfTime(Duration),
    /// The pull took more processor time, or a store or registry more time, than the catalog may
    /// have.
    #[error("pulling and publishing the catalog took more than {} s, its limit pullSeconds", .0.as_secs())]
    PullTime(Duration),
    /// An earlier content cannot be published again, for this reason.
    #[error("cannot roll back: {0}")]
    Rollback(String),
    /// A ring cannot be moved to the state that a person wants.
    #[error("cannot promote: {0}")]
    Promotion(#[from] promotion::PromotionError),
    /// A blocking task of the poll panicked or was cancelled.
    #[error("a worker thread failed")]
    Worker(#[from] tokio::task::JoinError),
}

impl PollError {
    /// Returns the error as one of an input or addition of a composition.
    pub(crate) fn at(self, place: &str) -> Self {
        Self::Input {
            place: place.to_owned(),
            source: Box::new(self),
        }
    }

    /// Returns the error itself, or that of the input whose error it is.
    pub(crate) const fn cause(&self) -> &Self {
        match self {
            Self::Input { source, .. } => source,
            other => other,
        }
    }

    /// Returns the outcome of a poll or rollback that ends with the error.
    pub const fn outcome(&self) -> Outcome {
        match self.cause() {
            Self::KnownRevision(known) => known.outcome,
            Self::Refused(_) | Self::Rejected(_) | Self::Held { .. } => Outcome::Refused,
            _ => Outcome::Failed,
        }
    }

    /// Returns the error and its causes on one line, and the settings that would admit what exceeds
    /// a limit.
    pub fn text(&self) -> String {
        let limits = self.limits().into_iter();
        let advice =
            limits.map(|limit| format!("; a larger limits.{limit} of the catalog admits it"));
        iter::once(model::text::error_line(self))
            .chain(advice)
            .collect()
    }

    /// True if a registry refused the credentials, or wanted some where none were given.
    pub fn is_refused_login(&self) -> bool {
        // 403 too: a registry answers it for a valid account that may not pull, and a rotated
        // secret may name another account.
        matches!(
            self.cause(),
            Self::Image(source::Error::Server(error)) | Self::Signatures(source::Error::Server(error))
                if matches!(error.fault, ServerFault::Unauthorized { .. } | ServerFault::Forbidden { .. })
        )
    }

    /// Returns the kind of the error, or of that with which an earlier poll of the same revision
    /// ended.
    pub const fn kind(&self) -> RejectionKind {
        match self.cause() {
            Self::KnownRevision(known) => known.kind,
            Self::Image(source::Error::Image(ImageError::NoLabel)) => RejectionKind::NoLabel,
            _ => RejectionKind::Other,
        }
    }

    /// Returns the hold of new content that looks like an accident.
    pub const fn hold(&self) -> Option<&Hold> {
        match self.cause() {
            Self::Held { hold, .. } => Some(hold),
            _ => None,
        }
    }

    /// Returns the names of the limits that the source or its catalog exceeds, each once.
    pub fn limits(&self) -> BTreeSet<&'static str> {
        match self.cause() {
            Self::Render(error) => error.limits(),
            Self::Image(error) | Self::Signatures(error) => error
                .limit()
                .map(|exceeded| exceeded.name)
                .into_iter()
                .collect(),
            Self::PullTime(_) => BTreeSet::from(["pullSeconds"]),
            Self::Compose(compose::ComposeError::Work {
                over: OverBudget::Steps(_),
                ..
            }) => BTreeSet::from(["steps"]),
            _ => BTreeSet::new(),
        }
    }

    /// True if the same revision would come to the same end again: under the same settings, program
    /// and published state.
    pub(crate) const fn is_verdict(&self) -> bool {
        match self.cause() {
            Self::Render(error) => {
                matches!(error, RenderError::Invalid { .. } | RenderError::Limit(_))
            }
            // Layers and manifests are verified by their digests before any of these, so no broken
            // transfer leads here.
            Self::Image(error) => match error {
                source::Error::Image(error) => !matches!(error, ImageError::Changed(_)),
                source::Error::Tree { source, .. } => source.is_of_content(),
                source::Error::Unpack(UnpackError::Layer { .. } | UnpackError::Link { .. }) => true,
                error => error.limit().is_some(),
            },
            Self::Refused(_) | Self::Held { .. } => true,
            Self::Compose(error) => !matches!(
                error,
                compose::ComposeError::Read { .. }
                    | compose::ComposeError::Sink(_)
                    | compose::ComposeError::Work {
                        over: OverBudget::Stopped,
                        ..
                    }
            ),
            // Signatures are not: they are pushed after their image and do not change its digest.
            // They are looked for before the pull, so a refused image costs no download.
            _ => false,
        }
    }

    /// True if the revision is not pulled again by this program with these settings, unless a poll
    /// is forced.
    pub const fn is_final(&self) -> bool {
        self.is_verdict() || matches!(self, Self::Killer { .. } | Self::KnownRevision(_))
    }

    /// True if a published object is missing or damaged and has to be written again.
    pub(crate) const fn is_damage(&self) -> bool {
        match self.cause() {
            Self::Render(error) => error.is_damage(),
            Self::Publish(error) => error.is_damage(),
            _ => false,
        }
    }
}

impl RetryableError for PollError {
    fn is_race(&self) -> bool {
        matches!(self.cause(), Self::Publish(error) if error.is_race())
    }
}

impl From<store::StoreError> for PollError {
    fn from(error: store::StoreError) -> Self {
        Self::Publish(error.into())
    }
}

impl From<store::ReadError> for PollError {
    fn from(error: store::ReadError) -> Self {
        Self::Publish(error.into())
    }
}
