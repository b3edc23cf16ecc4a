use std::collections::BTreeSet;

use model::{Sha256, Snapshot};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{any, each};
use crate::client::{CheckedRequest, Client};
use crate::expectation::Expectation;
use crate::violation::{Violation, equal};

impl Client {
    /// Compares the changes since an earlier state with the two snapshots.
    pub(super) async fn changes(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let earlier: Vec<Sha256> = current
            .previous
            .iter()
            .map(|previous| previous.content_hash)
            .collect();
        let since = match earlier.is_empty() {
            true => current.content_hash,
            false => *any(&earlier),
        };
        let path = format!("/catalogs/{catalog}/changes?since={since}");
        let wanted =
            CheckedRequest::new("/catalogs/{catalog}/changes", path, Expectation::Question);
        let Some(found) = self.object(catalog, since, wanted).await? else {
            return Ok(());
        };
        let changes: Value = serde_json::from_slice(&found.plain)?;
        equal(
            "the state that changes are told since",
            &changes["from"],
            &json!(since),
        )?;
        let to = Sha256::deserialize(&changes["to"])?;
        self.was_published(catalog, current.serial, to).await?;
        let from = self.state(catalog, since).await?;
        match (from, self.state(catalog, to).await?) {
            (Some(from), Some(to)) => compare(&changes["packages"], &from, &to),
            _ => Ok(()),
        }
    }
}

/// Compares the names in the changes with those in which the two snapshots differ.
fn compare(reported: &Value, from: &Snapshot, to: &Snapshot) -> Result<(), Violation> {
    let names = |snapshot: &Snapshot| -> BTreeSet<String> {
        snapshot
            .packages
            .iter()
            .map(|shard| shard.name.clone())
            .collect()
    };
    let hash =
        |snapshot: &Snapshot, name: &str| snapshot.package(name).map(|shard| shard.lines.sha256);
    let (old, new) = (names(from), names(to));
    let changed = old
        .intersection(&new)
        .filter(|name| hash(from, name) != hash(to, name));
    let expected = json!({
        "added": new.difference(&old).collect::<Vec<_>>(),
        "removed": old.difference(&new).collect::<Vec<_>>(),
        "changed": changed.collect::<Vec<_>>(),
    });
    let names = |kind: &str| -> Value {
        each(&reported[kind])
            .map(|package| package["name"].clone())
            .collect()
    };
    let found =
        json!({"added": names("added"), "removed": names("removed"), "changed": names("changed")});
    equal("the changed packages", &found, &expected)
}
