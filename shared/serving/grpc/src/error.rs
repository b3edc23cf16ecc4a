use reader::ReaderError;
use tonic::{Code, Status};
use work::{NoMemory, OverBudget};

/// Maximum number of characters of a message, which may repeat a name of the request. It is sent in
/// a header field, with up to twelve bytes for a character, and clients close the connection if
/// their limit for header fields, 16 KiB for many, is exceeded.
const MESSAGE_CHARS: usize = 1_000;

/// Reason for which a call has no answer. The texts of opm are kept where it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The catalog does not have what was asked for. The text is that of opm, which sends it with
    /// the code `Unknown`.
    #[error("{0}")]
    NotFound(String),
    /// The request is not valid. The text is that of opm.
    #[error("{0}")]
    InvalidArgument(String),
    /// The client names no catalog. The text says how.
    #[error("{0}")]
    UnknownCatalog(String),
    /// The catalog was removed, or is not for clients without credentials. Its clients must not get
    /// another one.
    #[error("the catalog of this host is not served")]
    NotServed,
    /// opm would refuse the content. The text says why.
    #[error("the catalog has errors that keep opm from serving it: {0}")]
    Refused(String),
    /// The index of the catalog would take too much memory.
    #[error("the catalog is too large for this API")]
    TooLarge,
    /// The manifests of a package do not fit into the memory for them.
    #[error(
        "the manifests of package {package:?} take more than {limit} bytes compressed, which is the limit of this API"
    )]
    ContentsTooLarge {
        /// Name of the package.
        package: String,
        /// Maximum memory in bytes.
        limit: usize,
    },
    /// A line cannot be turned into the answer.
    #[error("bundle {bundle:?}: {reason}")]
    Bundle {
        /// Name of the bundle, or the schema of another Meta.
        bundle: String,
        /// Fault of its line.
        reason: String,
    },
    /// Other messages take all memory, or the compressor gets none.
    #[error("there is not enough memory at the moment; try again later")]
    Memory,
    /// The store does not answer, or what it has is damaged. The log has the reason.
    #[error(
        "the catalog cannot be read now: the store cannot be read at the moment; try again later"
    )]
    Unavailable,
    /// The client has given up the call.
    #[error("the client is gone")]
    ClientGone,
}

impl From<AnswerError> for Status {
    fn from(error: AnswerError) -> Self {
        let code = match error {
            // opm returns a plain error of Go, which has no code.
            AnswerError::NotFound(_) => Code::Unknown,
            AnswerError::InvalidArgument(_) => Code::InvalidArgument,
            AnswerError::UnknownCatalog(_) | AnswerError::NotServed => Code::NotFound,
            AnswerError::Refused(_) => Code::FailedPrecondition,
            AnswerError::TooLarge | AnswerError::ContentsTooLarge { .. } | AnswerError::Memory => {
                Code::ResourceExhausted
            }
            AnswerError::Bundle { .. } => Code::Internal,
            AnswerError::Unavailable => Code::Unavailable,
            AnswerError::ClientGone => Code::Cancelled,
        };
        let message: String = error.to_string().chars().take(MESSAGE_CHARS).collect();
        Self::new(code, message)
    }
}

impl From<NoMemory> for AnswerError {
    fn from(_: NoMemory) -> Self {
        Self::Memory
    }
}

impl From<OverBudget> for AnswerError {
    fn from(error: OverBudget) -> Self {
        match error {
            OverBudget::Stopped => Self::ClientGone,
            OverBudget::Steps(_) => Self::TooLarge,
        }
    }
}

/// Logs a failure of the store. The client learns only that there was one.
impl From<ReaderError> for AnswerError {
    fn from(error: ReaderError) -> Self {
        match error {
            ReaderError::Busy => Self::Memory,
            error => failed(&error),
        }
    }
}

/// Logs a failure. The client learns only that there was one.
pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> AnswerError {
    tracing::error!(error, "cannot answer a call");
    AnswerError::Unavailable
}
