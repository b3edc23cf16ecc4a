use serde::{Deserialize, Serialize};

use crate::{Document, Kind, StoredDocument};

/// Maximum size of all texts of one [`SearchDocument`], in bytes: fifty times those of the largest real catalog. Packages beyond it
/// are found by their names alone.
const TEXTS_MAX: usize = 16 << 20;

/// Texts by which the Packages of a Snapshot are found. A function of the content and of the version of the rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchDocument {
    /// Version of the rules by which the texts were taken. Texts by other rules are not used for another Snapshot.
    pub rules: u32,
    /// All Packages in byte order of their names.
    pub packages: Vec<SearchPackage>,
    /// Size of the texts that were pushed, in bytes.
    #[serde(skip)]
    texts: usize,
}

/// Texts of one Package, from the head of its default channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchPackage {
    /// Name of the Package.
    pub name: String,
    /// Name for people; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// One sentence about the Package; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Default channel.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Version of the head of the default channel.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Company or community that provides it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Capability level, such as `Seamless Upgrades`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub capability: String,
    /// Categories, such as `Database`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// CPUs that it says it supports, in Go's words; `amd64` if it says nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arches: Vec<String>,
    /// Keywords of its author.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Kinds of the APIs that it provides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Different words of its description, folded, with spaces between them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub words: String,
}

impl SearchDocument {
    /// Creates an empty document.
    pub fn new(rules: u32) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Adds the next Package, with its texts if there is space for them.
    pub fn push(&mut self, package: SearchPackage) {
        let size = self.texts + package.size();
        if size <= TEXTS_MAX {
            self.texts = size;
            self.packages.push(package);
        } else {
            self.packages.push(SearchPackage {
                name: package.name,
                ..SearchPackage::default()
            });
        }
    }
}

impl SearchPackage {
    /// Returns true if the texts of the Package were not left out for their size.
    pub fn is_complete(&self) -> bool {
        // Each Package that has texts has an architecture.
        !self.arches.is_empty()
    }

    fn size(&self) -> usize {
        let lists = [&self.categories, &self.arches, &self.keywords, &self.kinds];
        let texts = [
            &self.display_name,
            &self.summary,
            &self.channel,
            &self.version,
            &self.provider,
            &self.capability,
            &self.words,
        ];
        let all = lists.into_iter().flatten().chain(texts);
        all.map(String::len).sum()
    }
}

impl Document for SearchDocument {
    const NAME: &'static str = "search document";
    const INDENTED: bool = false;
}

impl StoredDocument for SearchDocument {
    const KIND: Kind = Kind::Search;
    // 64 MiB: the texts with their quotes and escapes, and 100,000 names.
    const MAX_BYTES: u64 = 64 << 20;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_keeps_the_names_of_packages_beyond_its_size() {
        let package = |name: &str| SearchPackage {
            name: name.to_owned(),
            words: "a".repeat(TEXTS_MAX / 2),
            arches: vec!["x".to_owned()],
            ..SearchPackage::default()
        };
        let mut document = SearchDocument::new(1);
        for name in ["a", "b", "c"] {
            document.push(package(name));
        }
        let complete: Vec<(&str, bool)> = document
            .packages
            .iter()
            .map(|package| (package.name.as_str(), package.is_complete()))
            .collect();
        assert_eq!(complete, [("a", true), ("b", false), ("c", false)]);
    }
}
