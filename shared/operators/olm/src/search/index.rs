use std::{collections::HashMap, mem, ops::Range};

use model::{Facts, SearchPackage};
use serde::Serialize;

use super::filter::{FacetCounts, SearchFilter, accepts, count};
use super::words::{fold, is_typo, terms, words};

/// Maximum number of Packages in one answer.
pub const SEARCH_LIMIT_MAX: usize = 100;

/// Maximum number of words of a query.
const TERMS_MAX: usize = 10;

/// Minimum length of a term in which a typo is looked for, in characters: shorter words have too
/// many neighbours.
const TYPO_CHARS: usize = 4;

/// Score of a Package whose whole name, or name for people, is the query.
const WHOLE_NAME: f64 = 100.0;

/// Score of a word that the term starts, and of one with a typo, where the same word has 1.
const PREFIX: f64 = 0.6;
const TYPO: f64 = 0.4;

/// Index of one catalog for search: the words of its Packages. Each is held once, with 16 bytes
/// more, and 8 for each Package.
#[derive(Debug, Default)]
pub struct SearchIndex {
    packages: Vec<SearchPackage>,
    /// Different words in byte order, end to end.
    text: String,
    words: Vec<IndexedWord>,
    /// Packages that have each word, in the order of the words, each with its best field.
    postings: Vec<Posting>,
    /// Names of each Package as a query is compared with them.
    names: Vec<[String; 2]>,
}

/// Positions of a word and of its Packages. The document of an index has at most 64 MiB, so 32 bits
/// are enough.
#[derive(Debug, Clone)]
struct IndexedWord {
    text: Range<u32>,
    postings: Range<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Posting {
    package: u32,
    field: SearchField,
}

/// Query with more words than are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a query has at most {TERMS_MAX} words")]
pub struct TooManyTerms;

/// Field of a Package that a term was found in, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SearchField {
    /// Name of the Package.
    Name,
    /// Name for people.
    DisplayName,
    /// Keywords that the author has chosen.
    Keywords,
    /// Kinds of the provided APIs.
    Kinds,
    /// Company or community that provides it.
    Provider,
    /// Sentence about the Package.
    Summary,
    /// Description of the Package, which may have many pages.
    Description,
}

/// Question to a [`SearchIndex`]: words, filters, and the part of the answer that is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words, all of which a Package must have. Without any, all Packages are found.
    pub text: String,
    /// Values that a Package must have.
    pub filter: SearchFilter,
    /// Number of Packages to leave out.
    pub offset: usize,
    /// Maximum number of Packages to return, at most [`SEARCH_LIMIT_MAX`].
    pub limit: usize,
}

/// Answer to a [`SearchQuery`]: the best Packages first, of equal ones those with the shortest
/// name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchResults {
    /// Number of the Packages that were found.
    pub total: u64,
    /// Packages from `offset` on, at most `limit`.
    pub results: Vec<SearchHit>,
    /// Numbers of the Packages that were found, by their values.
    pub facets: FacetCounts,
}

/// Package that was found, with the texts that a list shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// Name of the Package.
    pub package: String,
    /// Name for people; empty if it has none.
    pub display_name: String,
    /// One sentence about the Package; empty if it has none.
    pub summary: String,
    /// Name of the default channel.
    pub channel: String,
    /// Version of the head of the default channel.
    pub version: String,
    /// Provider; empty if none is named.
    pub provider: String,
    /// Capability level; empty if none is named.
    pub capability: String,
    /// Categories, such as `Database`; empty if none is named.
    pub categories: Vec<String>,
    /// CPUs that it says it supports; `amd64` if it says nothing.
    pub arches: Vec<String>,
    /// Weight of the match: comparable within one answer. 0 without a text.
    pub score: f64,
    /// Most telling field that matched; absent without a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<SearchField>,
}

/// Best match of a Package so far. Without a term it has no field.
#[derive(Debug, Clone, Copy, Default)]
struct Match {
    score: f64,
    field: Option<SearchField>,
}

impl SearchField {
    const fn weight(self) -> f64 {
        match self {
            Self::Name => 8.0,
            Self::DisplayName => 7.0,
            Self::Keywords | Self::Kinds => 5.0,
            Self::Provider => 3.0,
            Self::Summary => 2.0,
            Self::Description => 1.0,
        }
    }
}

impl SearchIndex {
    /// Creates the index of a catalog.
    pub fn new(document: Facts<SearchPackage>) -> Self {
        let parts = document.packages.into_iter().chain(document.shortened);
        let packages = parts.map(|(name, package)| SearchPackage { name, ..package });
        let mut packages: Vec<SearchPackage> = packages.collect();
        // Of equal results the first by name comes first.
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        let mut found = Vec::new();
        for (at, package) in (0..).zip(&mut packages) {
            let described = mem::take(&mut package.words);
            let described = described
                .split(' ')
                .filter(|word| !word.is_empty())
                .map(str::to_owned);
            let lists = [&mut package.keywords, &mut package.kinds];
            let [keywords, kinds] = lists.map(|texts| words(&mem::take(texts).join(" ")));
            let fields = [
                (SearchField::Name, words(&package.name)),
                (SearchField::DisplayName, words(&package.display_name)),
                (SearchField::Keywords, keywords),
                (SearchField::Kinds, kinds),
                (SearchField::Provider, words(&package.provider)),
                (SearchField::Summary, words(&package.summary)),
                (SearchField::Description, described.collect()),
            ];
            for (field, words) in fields {
                let posting = Posting { package: at, field };
                found.extend(
                    words
                        .into_iter()
                        .map(|word| (word.into_boxed_str(), posting)),
                );
            }
        }
        // The best field of a Package comes first.
        found.sort_unstable();
        found.dedup_by(|(word, posting), (before, kept)| {
            word == before && posting.package == kept.package
        });
        let mut index = Self::default();
        for group in found.chunk_by(|(one, _), (other, _)| one == other) {
            let starts = [index.text.len(), index.postings.len()];
            index.text.extend(group.first().map(|(word, _)| &**word));
            index
                .postings
                .extend(group.iter().map(|(_, posting)| *posting));
            index.words.push(IndexedWord {
                text: starts[0] as u32..index.text.len() as u32,
                postings: starts[1] as u32..index.postings.len() as u32,
            });
        }
        index.text.shrink_to_fit();
        index.words.shrink_to_fit();
        index.postings.shrink_to_fit();
        index.names = packages
            .iter()
            .map(|package| [joined(&package.name), joined(&package.display_name)])
            .collect();
        index.packages = packages;
        index
    }

    /// Returns the memory that the index takes, in bytes, about.
    pub fn weight(&self) -> u64 {
        let postings = self.postings.len() * size_of::<Posting>();
        // Texts of a Package, which are short beside its words.
        let words = self.text.len() + self.words.len() * size_of::<IndexedWord>();
        (words + postings + self.packages.len() * 1500) as u64
    }

    fn word(&self, IndexedWord { text, .. }: &IndexedWord) -> &str {
        &self.text[text.start as usize..text.end as usize]
    }

    fn postings(&self, IndexedWord { postings, .. }: &IndexedWord) -> &[Posting] {
        &self.postings[postings.start as usize..postings.end as usize]
    }

    /// Returns the Packages that match.
    ///
    /// # Errors
    /// [`TooManyTerms`].
    pub fn find(&self, query: &SearchQuery) -> Result<SearchResults, TooManyTerms> {
        let terms = terms(&query.text);
        if terms.len() > TERMS_MAX {
            return Err(TooManyTerms);
        }
        let filter = query
            .filter
            .iter()
            .map(|(facet, wanted)| (*facet, fold(wanted)));
        let filter: SearchFilter = filter.collect();
        let mut found: Vec<(u32, Match)> = self.matches(&terms).into_iter().collect();
        found.retain(|(at, _)| accepts(&filter, &self.packages[*at as usize]));
        let whole = joined(&query.text);
        for (at, matched) in &mut found {
            if !terms.is_empty() && self.names[*at as usize].contains(&whole) {
                matched.score += WHOLE_NAME;
            }
        }
        // Of equal ones the shortest name first: the query is most of it.
        let length = |at: &u32| match terms.is_empty() {
            true => 0,
            false => self.names[*at as usize][0].len(),
        };
        found.sort_by(|(one, left), (other, right)| {
            let by_score = right.score.total_cmp(&left.score);
            by_score.then_with(|| (length(one), one).cmp(&(length(other), other)))
        });
        let limit = query.limit.min(SEARCH_LIMIT_MAX);
        let packages: Vec<&SearchPackage> = found
            .iter()
            .map(|(at, _)| &self.packages[*at as usize])
            .collect();
        let page = found.iter().zip(&packages).skip(query.offset).take(limit);
        Ok(SearchResults {
            total: found.len() as u64,
            results: page
                .map(|((_, matched), package)| SearchHit::new(package, *matched))
                .collect(),
            facets: count(&packages),
        })
    }

    /// Returns the Packages that have all terms; all Packages if there is no term.
    fn matches(&self, terms: &[String]) -> HashMap<u32, Match> {
        let mut found: Option<HashMap<u32, Match>> = None;
        for term in terms {
            let mut of_term = self.matches_of(term);
            // A term that few Packages have tells more than one that many have.
            let rarity = (1.0 + self.packages.len() as f64 / of_term.len().max(1) as f64).ln();
            of_term
                .values_mut()
                .for_each(|matched| matched.score *= rarity);
            if let Some(before) = found {
                of_term.retain(|package, _| before.contains_key(package));
                for (package, matched) in &mut of_term {
                    let before = &before[package];
                    matched.score += before.score;
                    matched.field = matched.field.min(before.field);
                }
            }
            found = Some(of_term);
        }
        let all = (0..).zip(&self.packages);
        found.unwrap_or_else(|| all.map(|(at, _)| (at, Match::default())).collect())
    }

    /// Returns the Packages that have a term, with the best score and its field. Typos count if no
    /// word of a name, keyword or kind starts with the term: descriptions have typos of their own.
    fn matches_of(&self, term: &str) -> HashMap<u32, Match> {
        let mut found = HashMap::new();
        let mut add = |quality: f64, postings: &[Posting]| {
            for posting in postings {
                let score = quality * posting.field.weight();
                let new = Match {
                    score,
                    field: Some(posting.field),
                };
                let best = found.entry(posting.package).or_insert(new);
                if score > best.score {
                    *best = new;
                }
            }
        };
        let start = self.words.partition_point(|word| self.word(word) < term);
        let starting = self.words[start..]
            .iter()
            .map(|word| (self.word(word), self.postings(word)));
        let mut is_known = false;
        for (word, postings) in starting.take_while(|(word, _)| word.starts_with(term)) {
            is_known |= postings
                .iter()
                .any(|posting| posting.field <= SearchField::Kinds);
            let quality = match word.len() == term.len() {
                true => 1.0,
                // The more of the word the term is, the better.
                false => PREFIX + (0.9 - PREFIX) * term.len() as f64 / word.len() as f64,
            };
            add(quality, postings);
        }
        if !is_known && term.chars().count() >= TYPO_CHARS {
            // One edit changes the length of at most one character, of at most four bytes.
            let near = self.words.iter();
            let near = near.filter(|word| self.word(word).len().abs_diff(term.len()) <= 4);
            for word in near.filter(|word| is_typo(term, self.word(word))) {
                add(TYPO, self.postings(word));
            }
        }
        found
    }
}

impl SearchHit {
    fn new(package: &SearchPackage, matched: Match) -> Self {
        Self {
            package: package.name.clone(),
            display_name: package.display_name.clone(),
            summary: package.summary.clone(),
            channel: package.channel.clone(),
            version: package.version.clone(),
            provider: package.provider.clone(),
            capability: package.capability.clone(),
            categories: package.categories.clone(),
            arches: package.arches.clone(),
            // Two digits, so that the text does not depend on the order of additions.
            score: (matched.score * 100.0).round() / 100.0,
            matched: matched.field,
        }
    }
}

/// Returns the letters and digits of a text, folded, so that `Cert Manager` is `cert-manager`.
fn joined(text: &str) -> String {
    let text = fold(text);
    text.chars()
        .filter(|letter| letter.is_alphanumeric())
        .collect()
}
