//! Looks for missing and truncated objects of an unchanged catalog: a damaged state is otherwise only noticed when the source
//! changes.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use model::CatalogName;
use store::Store;

use crate::{Env, PollError, PublishError, Transaction, stats::find_unservable};

/// Time between two looks at the stored objects of an unchanged catalog. Each look is one small request per object: 300
/// catalogs of 300 packages cost a dollar a day on S3.
const CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Times since boot of the last looks of this process at the stored objects of each catalog.
pub(crate) struct StoredChecks {
    env: Env,
    last: Mutex<HashMap<CatalogName, Duration>>,
}

impl StoredChecks {
    pub(crate) fn new(env: &Env) -> Self {
        Self {
            env: env.clone(),
            last: Mutex::default(),
        }
    }

    /// Returns true if this process has not looked at the objects of a catalog for an hour.
    pub(crate) fn is_due(&self, catalog: &CatalogName) -> bool {
        let now = (self.env.since_boot)();
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.get(catalog);
        last.is_none_or(|last| now.saturating_sub(*last) >= CHECK_INTERVAL)
    }

    /// Notes that the objects of a catalog were all there just now.
    pub(crate) fn note(&self, catalog: &CatalogName) {
        let now = (self.env.since_boot)();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.insert(catalog.clone(), now);
    }
}

/// Fails if an object of the published state is missing or has another size than recorded.
pub(crate) async fn check_stored(store: &dyn Store, transaction: &Transaction) -> Result<(), PollError> {
    let damaged = match transaction.base_snapshot().await? {
        Some(snapshot) => {
            let found = find_unservable(store, snapshot).await?;
            found.first().map(|object| object.key.to_string())
        }
        // The snapshot itself.
        None => Some(
            transaction
                .base()
                .map(|base| base.snapshot.key().to_string())
                .unwrap_or_default(),
        ),
    };
    match damaged {
        Some(key) => Err(PublishError::Damaged(key).into()),
        None => Ok(()),
    }
}
