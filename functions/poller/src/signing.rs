//! The keys that sign what is published.

use anyhow::Context;
use config::{Config, Keys};
use futures_util::future::try_join_all;
use seal::{Signer, SigningKey};

use crate::{Environment, Outside};

/// The keys of the secrets, which are PEM texts; the configuration says whom else to trust.
pub(crate) async fn signer(
    environment: &Environment,
    outside: &dyn Outside,
    config: &Config,
) -> anyhow::Result<Option<Signer>> {
    let keys = environment.signing_keys.iter().map(|id| key(id, outside));
    let keys = Keys {
        signing: try_join_all(keys).await?,
        trusted: config.keys.trusted.clone(),
    };
    Ok(keys.signer())
}

async fn key(id: &str, outside: &dyn Outside) -> anyhow::Result<SigningKey> {
    let text = outside.secret(id).await;
    let text = text.with_context(|| format!("cannot read the signing key {id}"))?;
    SigningKey::from_pem(text.as_bytes()).with_context(|| format!("cannot use the signing key {id}"))
}
