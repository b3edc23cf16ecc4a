//! What a publication leaves out of the history although readers may hold it.

use std::{
    collections::HashSet,
    time::{Duration, SystemTime},
};

use layout::{Current, Previous, Sha256};

use crate::Watch;

/// What was replaced longer ago than any sensible grace period is nobody's any more: as long as earlier publications are
/// kept by default.
const LONG_AGO: Duration = Duration::from_secs(30 * 24 * 3600);

impl Watch {
    /// Spares every content ([`Watch::spare`]) that `before` names, and the publication after it will not: garbage
    /// collection counts the grace of their readers from the dates of `current.json`, which then has none of it. `next` and
    /// `previous` are the content and the history of that publication. Spares nothing for most: a history is cut when it is
    /// full, and given up when nobody vouches for it.
    pub fn spare_forgotten(&mut self, before: &Current, (next, previous): (Sha256, &[Previous]), now: SystemTime) {
        let remembered = previous.iter().map(|previous| previous.content_hash);
        let remembered: HashSet<Sha256> = remembered.chain([next]).collect();
        let mut replaced = now;
        for (content, published) in publications(before) {
            let age = now.duration_since(replaced).unwrap_or_default();
            if age < LONG_AGO && !remembered.contains(&content) {
                self.spare(content);
            }
            replaced = published;
        }
    }
}

/// Newest first. Each was replaced when the one before it in this order was published.
fn publications(current: &Current) -> impl Iterator<Item = (Sha256, SystemTime)> {
    let this = (current.content_hash, current.published_at);
    let earlier = current.previous.iter();
    std::iter::once(this).chain(earlier.map(|previous| (previous.content_hash, previous.published_at)))
}
