//! Caches the credentials of the registries.

use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::future::join_all;
use model::text::{Chain, chain};
use parking_lot::Mutex;
use source::Logins;

use crate::Services;

/// Time after which secrets are read again. It need not be short for rotated ones, because a
/// refused login expires them.
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);

/// Logins of the pull secrets.
#[derive(Debug, Default)]
pub(crate) struct PullSecrets {
    /// Shared with the sources, so that a refresh changes the logins of these too.
    pub(crate) logins: Logins,
    age: Mutex<SecretAge>,
}

/// Age of the logins in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum SecretAge {
    /// No secret was read yet, so a failure to read one fails the event.
    #[default]
    Never,
    /// A registry refused the logins, so the secrets may have been rotated.
    Expired,
    /// All secrets were read at this time.
    Since(Instant),
}

impl PullSecrets {
    /// Makes the next event read the secrets again.
    pub(crate) fn expire(&self) {
        let mut age = self.age.lock();
        // Never stays as it is: then the first error still fails the event.
        if let SecretAge::Since(_) = *age {
            *age = SecretAge::Expired;
        }
    }

    /// Reads the secrets of these names or ARNs if that was not done yet, or if they are older than
    /// [`LIFETIME`].
    ///
    /// # Errors
    /// If they cannot be read or used, and no earlier ones are in use.
    pub(crate) async fn refresh(
        &self,
        ids: &[String],
        services: &dyn Services,
    ) -> anyhow::Result<()> {
        let age = *self.age.lock();
        if ids.is_empty() || matches!(age, SecretAge::Since(then) if then.elapsed() < LIFETIME) {
            return Ok(());
        }
        match self.read(ids, services).await {
            Ok(()) => *self.age.lock() = SecretAge::Since(Instant::now()),
            Err(error) if age == SecretAge::Never => return Err(error),
            // Earlier logins usually still work, and public registries need none.
            Err(error) => tracing::error!(
                error = %Chain(error.as_ref()),
                "cannot refresh the pull secrets, using the earlier ones"
            ),
        }
        Ok(())
    }

    async fn read(&self, ids: &[String], services: &dyn Services) -> anyhow::Result<()> {
        let reads: Vec<_> = ids.iter().map(|id| services.secret(id)).collect();
        let texts = join_all(reads).await;
        let mut documents = Vec::new();
        let mut problems = Vec::new();
        for (id, text) in ids.iter().zip(&texts) {
            match text {
                Ok(text) => documents.push((id.as_str(), text.as_str())),
                Err(error) => problems.push(format!("{id}: {}", chain(error.as_ref()))),
            }
        }
        // All at once, so that an operator needs one attempt to correct them.
        anyhow::ensure!(
            problems.is_empty(),
            "cannot read the pull secrets: {}",
            problems.join("; ")
        );
        self.logins
            .set(documents)
            .context("cannot use the pull secrets")
    }
}
