//! Search for packages: the texts by which they are found, and the index that finds them.
//!
//! ```text
//! lines of a Shard -> recorder of SEARCH -> Facts<SearchPackage>   at publication
//! Facts<SearchPackage> -> SearchIndex -> SearchResults             for each query
//! ```

mod filter;
mod index;
mod recorder;
mod words;

pub use filter::{FacetCount, FacetCounts, SearchFacet, SearchFilter};
pub use index::{
    SEARCH_LIMIT_MAX, SearchField, SearchHit, SearchIndex, SearchQuery, SearchResults, TooManyTerms,
};
pub use recorder::SEARCH;
