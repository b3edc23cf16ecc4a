//! The registries' credentials, kept for a while.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Context;
use futures_util::future::join_all;
use image::Logins;
use telemetry::chain;

use crate::Outside;

/// How long secrets are used before they are read again: a rotated one is noticed at once when a registry refuses it.
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);

/// Secrets and what became of them.
#[derive(Debug)]
pub(crate) struct Secrets {
    ids: Vec<String>,
    logins: Logins,
    age: Mutex<Age>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    /// There are none yet.
    Never,
    /// There are some, but a registry refused them.
    Expired,
    /// They were read then.
    Since(Instant),
}

impl Secrets {
    pub(crate) fn new(ids: Vec<String>) -> Self {
        Self {
            ids,
            logins: Logins::default(),
            age: Mutex::new(Age::Never),
        }
    }

    /// The credentials, which change when the secrets do.
    pub(crate) fn logins(&self) -> Logins {
        self.logins.clone()
    }

    /// The next event reads them again.
    pub(crate) fn expire(&self) {
        let mut age = self.age();
        if let Age::Since(_) = *age {
            *age = Age::Expired;
        }
    }

    /// Reads them if there are none, or if they are too old. Old ones are better than none.
    pub(crate) async fn refresh(&self, outside: &dyn Outside) -> anyhow::Result<()> {
        let age = *self.age();
        if self.ids.is_empty() || matches!(age, Age::Since(then) if then.elapsed() < LIFETIME) {
            return Ok(());
        }
        match self.read(outside).await {
            Ok(()) => *self.age() = Age::Since(Instant::now()),
            Err(error) if age == Age::Never => return Err(error),
            Err(error) => tracing::error!(error = chain(error.as_ref()), "the pull secrets of before are used"),
        }
        Ok(())
    }

    async fn read(&self, outside: &dyn Outside) -> anyhow::Result<()> {
        let reads: Vec<_> = self.ids.iter().map(|id| outside.secret(id)).collect();
        let texts = join_all(reads).await;
        let named = self.ids.iter().zip(&texts);
        let failed = |(id, text): (&String, &anyhow::Result<String>)| {
            let error = text.as_ref().err()?;
            Some(format!("{id}: {}", chain(error.as_ref())))
        };
        let problems: Vec<_> = named.clone().filter_map(failed).collect();
        if !problems.is_empty() {
            anyhow::bail!("cannot read the pull secrets: {}", problems.join("; "));
        }
        let documents = named.filter_map(|(id, text)| Some((id.as_str(), text.as_deref().ok()?)));
        self.logins.set(documents).context("cannot use the pull secrets")
    }

    fn age(&self) -> MutexGuard<'_, Age> {
        self.age.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
