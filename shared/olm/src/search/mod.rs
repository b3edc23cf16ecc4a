//! Search for packages: the texts by which they are found, and the index that finds them.
//!
//! ```text
//! lines of a Shard -> SearchRecorder -> SearchDocument   at publication
//! SearchDocument -> SearchIndex -> SearchResults                      for each query
//! ```

mod facts;
mod filter;
mod index;
mod words;

pub use facts::{SEARCH_VERSION, SearchRecord, SearchRecorder};
pub use filter::{FacetCount, SearchFacets, SearchFilter};
pub use index::{SEARCH_LIMIT_MAX, SearchField, SearchHit, SearchIndex, SearchQuery, SearchResults};
