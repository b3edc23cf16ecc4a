use std::collections::BTreeSet;

use model::{Sha256, Snapshot};
use serde::Deserialize;
use serde_json::Value;

use super::any;
use crate::{
    client::{CheckedRequest, Client},
    expectation::Expectation,
    violation::{Violation, equal},
};

#[derive(Deserialize)]
struct Changes {
    from: Sha256,
    to: Sha256,
    packages: PackageChanges,
}

#[derive(Deserialize)]
struct PackageChanges {
    added: Vec<Value>,
    removed: Vec<Value>,
    changed: Vec<Value>,
}

impl Client {
    /// Compares the changes since an earlier state with the two snapshots.
    pub(super) async fn changes(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let earlier: Vec<Sha256> = current.previous.iter().map(|previous| previous.content_hash).collect();
        let since = match earlier.is_empty() {
            true => current.content_hash,
            false => *any(&earlier),
        };
        let path = format!("/catalogs/{catalog}/changes?since={since}");
        let wanted = CheckedRequest::new("/catalogs/{catalog}/changes", path, Expectation::Question);
        let Some(found) = self.object(catalog, since, wanted).await? else {
            return Ok(());
        };
        let changes: Changes = serde_json::from_slice(&found.plain)?;
        equal("the state that changes are told since", &changes.from, &since)?;
        self.was_published(catalog, current.serial, changes.to).await?;
        let from = self.state(catalog, since).await?;
        match (from, self.state(catalog, changes.to).await?) {
            (Some(from), Some(to)) => compare(&changes.packages, &from, &to),
            _ => Ok(()),
        }
    }
}

/// Compares the names in the changes with those in which the two snapshots differ.
fn compare(reported: &PackageChanges, from: &Snapshot, to: &Snapshot) -> Result<(), Violation> {
    let names = |snapshot: &Snapshot| -> BTreeSet<String> {
        snapshot.packages.iter().map(|shard| shard.name.clone()).collect()
    };
    let hash = |snapshot: &Snapshot, name: &str| snapshot.package(name).map(|shard| shard.lines.sha256);
    let (old, new) = (names(from), names(to));
    let changed = old.intersection(&new).filter(|name| hash(from, name) != hash(to, name));
    for (what, found, expected) in [
        ("the added packages", &reported.added, joined(new.difference(&old))),
        ("the removed packages", &reported.removed, joined(old.difference(&new))),
        ("the changed packages", &reported.changed, joined(changed)),
    ] {
        let found = found.iter().filter_map(|package| package["name"].as_str());
        equal(what, &found.collect::<Vec<_>>().join(" "), &expected)?;
    }
    Ok(())
}

fn joined<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(" ")
}
