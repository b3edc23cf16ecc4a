//! From the layers of an image to the files of its catalog.
//!
//! ```text
//! layer bytes -> decompress -> tar entries -> overlay -> FileSink
//!                (metered)     (as Go reads)  (top layer first)
//! ```
//!
//! | in a hostile image | result |
//! |---|---|
//! | absolute paths, `.` and `..` | cleaned as Go's `path.Clean` does; a path out of the image or the FBC root is skipped |
//! | control characters, non-UTF-8 or more than 64 folders in a path below the root | refused |
//! | one path twice in a layer, a file used as a folder, a file behind a link | refused: the sink already has the first, and no builder writes it |
//! | links | followed inside the catalog; links out of it, in circles, to nothing or to hidden content are refused, unless `.indexignore` excludes them |
//! | the FBC root, or a folder above it, as a link, file or device | refused, or hides the lower layers |
//! | devices, FIFOs, unknown types (`7` too), sparse files | refused below the root, skipped elsewhere |
//! | whiteouts | hide lower layers only; make their folder a folder, as in overlayfs; without a name refused |
//! | PAX records and long names | the last record of a key wins, empty ones change nothing; malformed, duplicate or global ones are refused |
//! | a global header behind a description, a GNU header with a prefix | refused: readers disagree about the name of the file |
//! | sizes of links, folders and devices | no content follows them; negative and absurd sizes, other malformed numbers and wrong checksums are refused |
//! | data after the end of the archive or the compression | never unpacked |
//! | a truncated stream, a single block of zeros | refused, except for the last padding and the end blocks, which some tools omit |
//! | bombs, too many layers or entries, long paths, endless headers | [`ImageLimits`] |
//!
//! `tar::tests::differential` compares the reader with Go's. `shared/mirror/publish/tests/it/hostile`
//! tests each class through a whole poll.

mod decompress;
mod error;
mod limits;
mod overlay;
mod scan;
mod sink;
mod state;
mod tar;

pub use decompress::decompress;
pub use error::{LayerError, UnpackError};
pub use limits::{ImageLimits, LimitExceeded, NamedLimit, UnpackBudget};
pub use overlay::{Depth, LinkError, Root};
pub use scan::LayerScan;
pub use sink::{FileSink, pass_file, pass_link};
pub use state::OverlayState;
