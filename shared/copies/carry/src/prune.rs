//! Manifests of a registry that `carry` made and that nothing needs any more.

use std::collections::{BTreeMap, BTreeSet};

use model::Sha256;
use serde::Serialize;
use source::{Digest, ManifestLinks};

/// Number of digits of a digest in a tag: enough to tell all images of a site apart.
const DIGITS: usize = 32;

/// Number of digits that stand for another tag.
const MARK_DIGITS: usize = 12;

/// Endings of the tags of cosign, after the name of a digest.
const COSIGN_ENDINGS: [&str; 3] = [".sig", ".att", ".sbom"];

/// Returns the tag of an image that is copied by its digest.
pub(crate) fn carried_tag(digest: &str) -> String {
    let hex = digest.rsplit(':').next().unwrap_or_default();
    format!("carried-{}", hex.chars().take(DIGITS).collect::<String>())
}

/// Returns the tag of an additional image, which keeps it.
pub(crate) fn additional_tag(digest: &str) -> String {
    carried_tag(digest).replacen("carried", "additional", 1)
}

/// Returns the tag which says that `carry` gave an image its tag. An image may have other tags, of
/// other people.
pub(crate) fn mark_tag(digest: &str, tag: &str) -> String {
    let hash = Sha256::of(tag.as_bytes()).to_string();
    format!("{}.{}", carried_tag(digest), &hash[..MARK_DIGITS])
}

/// Tags and manifests of one repository.
#[derive(Debug, Default)]
pub struct RepositoryContent {
    /// Digest of each tag.
    pub tags: BTreeMap<String, Digest>,
    /// Tagged manifests, and those that they are attached to.
    pub links: BTreeMap<Digest, ManifestLinks>,
}

/// Manifest to remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrunableManifest {
    /// Digest of the manifest.
    pub digest: Digest,
    /// Tags that go with it. Empty for an image of an index that goes.
    pub tags: Vec<String>,
}

impl RepositoryContent {
    /// Returns true if a tag of the repository may be one of `carry`.
    pub fn may_be_carried(tags: &[String]) -> bool {
        tags.iter().any(|tag| tag.starts_with("carried-"))
    }

    /// Returns the manifests that `carry` made and nothing needs, each before those that it names.
    /// `needed` has tags and digests.
    pub fn prunable(&self, needed: &BTreeSet<String>) -> Vec<PrunableManifest> {
        let mut tags_of: BTreeMap<&Digest, Vec<&str>> = BTreeMap::new();
        for (tag, digest) in &self.tags {
            tags_of.entry(digest).or_default().push(tag);
        }
        let needed_digests: BTreeSet<Digest> =
            needed.iter().filter_map(|text| text.parse().ok()).collect();
        let mut kept: BTreeSet<&Digest> = needed_digests.iter().collect();
        let mut made: BTreeSet<&Digest> = BTreeSet::new();
        let mut lists: BTreeSet<&Digest> = BTreeSet::new();
        for (&digest, tags) in &tags_of {
            if tags.iter().any(|tag| needed.contains(*tag)) {
                kept.insert(digest);
            } else if tags.iter().all(|tag| self.is_own(tag, digest)) {
                made.insert(digest);
            } else if tags.iter().all(|tag| list_subject(tag).is_some()) {
                lists.insert(digest);
            } else {
                kept.insert(digest);
            }
        }
        // Images of an index that `carry` made are its own too. What a list of referrers names may
        // be of others.
        self.add_parts(&mut made);
        made.extend(lists);
        made.retain(|digest| !kept.contains(digest));
        loop {
            let before = kept.len();
            self.add_parts(&mut kept);
            for (&digest, tags) in &tags_of {
                if self.is_kept(digest, tags, &kept, &made) {
                    kept.insert(digest);
                }
            }
            if kept.len() == before {
                break;
            }
        }
        made.retain(|digest| !kept.contains(digest));
        let mut prunable = Vec::new();
        for digest in made {
            let tags = tags_of.get(digest).into_iter().flatten();
            prunable.push(PrunableManifest {
                digest: digest.clone(),
                tags: tags.map(|&tag| tag.to_owned()).collect(),
            });
        }
        // What names others comes before them, so that no index is ever there without its images.
        prunable.sort_by_key(|manifest| self.rank(manifest));
        prunable
    }

    /// Returns true if a tag is one that `carry` gave to this manifest.
    fn is_own(&self, tag: &str, digest: &Digest) -> bool {
        let carried = carried_tag(digest.as_str());
        if tag == carried {
            return true;
        }
        if let Some(mark) = tag.strip_prefix(&format!("{carried}.")) {
            return mark.len() == MARK_DIGITS;
        }
        self.tags.get(&mark_tag(digest.as_str(), tag)) == Some(digest)
    }

    /// Returns true if something that is attached to an image stays, because the image does.
    fn is_kept(
        &self,
        digest: &Digest,
        tags: &[&str],
        kept: &BTreeSet<&Digest>,
        made: &BTreeSet<&Digest>,
    ) -> bool {
        let links = self.links.get(digest);
        let mut subjects: Vec<Digest> = tags.iter().filter_map(|tag| subject(tag)).collect();
        subjects.extend(links.and_then(|links| links.subject.clone()));
        let is_list = tags.iter().any(|tag| list_subject(tag).is_some());
        let parts = links.into_iter().flat_map(|links| &links.parts);
        if is_list && parts.into_iter().any(|part| !made.contains(part)) {
            return true;
        }
        subjects.iter().any(|subject| {
            let is_there = self.links.contains_key(subject) || made.contains(subject);
            kept.contains(subject) || (is_there && !made.contains(subject))
        })
    }

    /// Adds the images of each index.
    fn add_parts<'a>(&'a self, digests: &mut BTreeSet<&'a Digest>) {
        let mut open: Vec<&Digest> = digests.iter().copied().collect();
        while let Some(digest) = open.pop() {
            let Some(links) = self.links.get(digest) else {
                continue;
            };
            for part in &links.parts {
                if digests.insert(part) {
                    open.push(part);
                }
            }
        }
    }

    /// Returns the place of a manifest in the order of removal.
    fn rank(&self, manifest: &PrunableManifest) -> u8 {
        let links = self.links.get(&manifest.digest);
        let has_parts = links.is_some_and(|links| !links.parts.is_empty());
        let is_attached = links.is_some_and(|links| links.subject.is_some())
            || manifest.tags.iter().any(|tag| subject(tag).is_some());
        match (has_parts, is_attached, manifest.tags.is_empty()) {
            (true, true, _) => 0,
            (false, true, _) => 1,
            (true, false, _) => 2,
            (false, false, false) => 3,
            (false, false, true) => 4,
        }
    }
}

/// Returns the image that something under a tag is attached to.
fn subject(tag: &str) -> Option<Digest> {
    let mut endings = COSIGN_ENDINGS.iter();
    let name = endings.find_map(|ending| tag.strip_suffix(ending));
    list_subject(name.unwrap_or(tag))
}

/// Returns true for the tag of a list of referrers.
pub(crate) fn is_list_tag(tag: &str) -> bool {
    list_subject(tag).is_some()
}

/// Returns the image whose list of referrers has a tag (OCI distribution specification, "Referrers
/// Tag Schema").
fn list_subject(tag: &str) -> Option<Digest> {
    let (algorithm, hex) = tag.split_once('-')?;
    format!("{algorithm}:{hex}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(name: &str) -> Digest {
        Digest::of(name.as_bytes())
    }

    fn content(text: &str) -> RepositoryContent {
        let mut content = RepositoryContent::default();
        for line in text.split(';') {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [name, sign @ (">" | "@"), others @ ..] = &words[..] {
                let links = content.links.entry(digest(name)).or_default();
                let mut others = others.iter().map(|name| digest(name));
                match *sign {
                    ">" => links.parts.extend(others),
                    _ => links.subject = others.next(),
                }
                continue;
            }
            let [tag, name] = words[..] else {
                panic!("{line}")
            };
            let digest = digest(name);
            content.links.entry(digest.clone()).or_default();
            content.tags.insert(full_tag(tag, &digest), digest);
        }
        content
    }

    /// Returns a tag as a registry has it: `carried`, `mark/TAG`, `list/NAME` and `sig/NAME` stand
    /// for longer ones.
    fn full_tag(tag: &str, of: &Digest) -> String {
        let attached = |name: &str| digest(name).to_string().replace(':', "-");
        match tag.split_once('/') {
            None if tag == "carried" => carried_tag(of.as_str()),
            None if tag == "additional" => additional_tag(of.as_str()),
            Some(("mark", tag)) => mark_tag(of.as_str(), &full_tag(tag, of)),
            Some(("list", name)) => attached(name),
            Some(("sig", name)) => format!("{}.sig", attached(name)),
            _ => tag.to_owned(),
        }
    }

    /// Content, what is needed, and what goes in its order.
    #[test]
    fn prunable_is_what_carry_made_and_nothing_needs() {
        let names = ["a", "b", "i", "j", "l", "s", "x", "y"];
        for (text, needed, expected) in [
            ("carried a; carried b", "", "a b"),
            ("carried a; carried b", "a", "b"),
            // Of others: a tag beside that of `carry`, and tags that only look like it.
            ("carried a; keep a", "", ""),
            ("v1 a; latest b", "", ""),
            ("carried-00000000000000000000000000000000 a", "", ""),
            ("carried-mine a; carried b", "", "b"),
            (
                "carried a; additional a; v1 b; mark/v1 b; additional b",
                "",
                "",
            ),
            // Copied by tag.
            ("v1 a; mark/v1 a", "", "a"),
            ("v1 a; mark/v1 a", "v1", ""),
            ("v1 a; mark/v1 a; v2 a", "", ""),
            ("v1 b; mark/v1 a", "", "a"),
            // The images of an index go with it, unless something else has them.
            ("carried i; i > x y", "", "i x y"),
            ("carried i; i > x y", "i", ""),
            ("carried i; i > x y", "x", "i y"),
            ("carried i; i > x y; keep j; j > y", "", "i x"),
            ("carried i; i > x y; keep y", "", "i x"),
            ("carried i; i > x y; carried x; carried y", "i", ""),
            ("carried i; carried j; i > x y; j > y", "j", "i x"),
            // What is attached to an image goes with it.
            ("carried a; carried s; s @ a", "", "s a"),
            ("carried a; carried s; s @ a", "a", ""),
            ("carried a; keep a; carried s; s @ a", "", ""),
            ("carried s; s @ a", "", "s"),
            ("carried a; sig/a s; mark/sig/a s", "", "s a"),
            ("carried a; sig/a s; mark/sig/a s", "a", ""),
            ("carried a; carried s; s @ a; list/a l; l > s", "", "l s a"),
            ("carried a; carried s; s @ a; list/a l; l > s", "a", ""),
            // A signature of others stays, with the list that names it.
            ("carried a; sig/a s", "", "a"),
            ("carried a; carried s; s @ a; list/a l; l > s b", "", "a"),
        ] {
            let content = content(text);
            let mut versions = BTreeSet::new();
            for name in needed.split_whitespace() {
                let is_tag = content.tags.contains_key(name);
                let digest = digest(name).to_string();
                versions.insert(if is_tag { name.to_owned() } else { digest });
            }
            let mut found = Vec::new();
            for gone in content.prunable(&versions) {
                let mut all = names.iter().filter(|name| digest(name) == gone.digest);
                found.push(*all.next().expect("the name is listed"));
            }
            let mut sorted = found.clone();
            if expected.starts_with(['a', 'i']) {
                // Equal ones come in the order of their digests.
                sorted.sort_unstable();
            }
            assert_eq!(sorted.join(" "), expected, "{text} needs {needed:?}");
            assert!(!expected.starts_with('i') || found[0] == "i", "{text}");
        }
    }
}
