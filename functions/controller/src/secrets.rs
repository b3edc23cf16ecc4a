//! Pull secrets: the global one, and those of the service account of this pod.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::Context;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::{Api, Client, api::PostParams};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use source::Logins;
use tokio::{sync::Mutex, time::timeout};

/// Time for which secrets are used without being read again. Catalogs that are polled in the same
/// moment share them.
const FRESH: Duration = Duration::from_secs(5);

/// Maximum time to read all secrets. The poll goes on with the last ones.
const READ_TIME: Duration = Duration::from_secs(30);

/// Namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectName {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// Keeps the logins of the registry client equal to the secrets. Each is read by its name, so the
/// role need not list secrets.
pub(crate) struct ClusterSecrets {
    client: Client,
    global: Option<ObjectName>,
    logins: Logins,
    state: Mutex<SecretsState>,
}

#[derive(Default)]
struct SecretsState {
    /// Service account of this process; `None` before it is known.
    account: Option<ObjectName>,
    read: Option<Instant>,
    /// Problems that were logged last, so that each is logged once.
    problems: BTreeSet<String>,
}

impl ClusterSecrets {
    /// Sets `logins` from the secrets of the cluster.
    pub(crate) fn new(client: Client, global: Option<ObjectName>, logins: Logins) -> Self {
        Self {
            client,
            global,
            logins,
            state: Mutex::default(),
        }
    }

    /// Reads the secrets again. If that fails, the last ones stay in use.
    pub(crate) async fn refresh(&self) {
        let mut state = self.state.lock().await;
        if state.read.is_some_and(|read| read.elapsed() < FRESH) {
            return;
        }
        let mut problems = BTreeSet::new();
        match timeout(READ_TIME, self.read(&mut state.account, &mut problems)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => drop(problems.insert(model::text::chain(error.as_ref()))),
            Err(_) => drop(problems.insert("the API server does not answer".to_owned())),
        }
        for problem in problems.difference(&state.problems) {
            tracing::warn!(problem, "cannot use all pull secrets");
        }
        state.problems = problems;
        state.read = Some(Instant::now());
    }

    async fn read(
        &self,
        account: &mut Option<ObjectName>,
        problems: &mut BTreeSet<String>,
    ) -> anyhow::Result<()> {
        let mut names: Vec<ObjectName> = self.global.iter().cloned().collect();
        if account.is_none() {
            *account = self.account().await?;
        }
        if let Some(ObjectName { namespace, name }) = account {
            let what = format!("the service account {namespace}/{name}");
            let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
            let found = get(&accounts, name, &what, problems).await?;
            let references = found
                .and_then(|account| account.image_pull_secrets)
                .unwrap_or_default();
            let own = references
                .iter()
                .map(|reference| ObjectName::new(namespace, &reference.name));
            names.extend(own);
        }
        let mut auths = Map::new();
        for ObjectName { namespace, name } in names {
            let what = format!("the secret {namespace}/{name}");
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
            match get(&secrets, &name, &what, problems).await?.map(auths_of) {
                None => {}
                // A later secret wins, as in catalogd.
                Some(Ok(found)) => auths.extend(found),
                Some(Err(problem)) => drop(problems.insert(format!("{what} {problem}"))),
            }
        }
        // Without any the default files of podman and docker are read.
        let merged = (!auths.is_empty()).then(|| json!({"auths": auths}).to_string());
        self.logins
            .set(merged.as_deref().map(|merged| ("the pull secrets", merged)))?;
        Ok(())
    }

    /// Returns the service account of this process. A person with a kubeconfig has none.
    async fn account(&self) -> anyhow::Result<Option<ObjectName>> {
        let reviews: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let asking = SelfSubjectReview::default();
        let review = reviews.create(&PostParams::default(), &asking).await;
        let review = review.context("cannot read the own user name")?;
        let user = review.status.and_then(|status| status.user_info?.username);
        let user = user.unwrap_or_default();
        let account = user.strip_prefix("system:serviceaccount:");
        let account = account.and_then(|account| account.split_once(':'));
        Ok(account.map(|(namespace, name)| ObjectName::new(namespace, name)))
    }
}

/// Reads an object. What concerns no other one is a problem: it does not exist, or may not be read.
async fn get<K>(
    objects: &Api<K>,
    name: &str,
    what: &str,
    problems: &mut BTreeSet<String>,
) -> anyhow::Result<Option<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    let problem = match objects.get_opt(name).await {
        Ok(Some(found)) => return Ok(Some(found)),
        Ok(None) => "does not exist",
        Err(kube::Error::Api(status)) if status.code == 403 => {
            "may not be read by this program's role"
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {what}")),
    };
    problems.insert(format!("{what} {problem}"));
    Ok(None)
}

/// Content of `.dockerconfigjson`. Without logins, `auths` may be missing or null.
#[derive(Deserialize)]
struct DockerConfig {
    auths: Option<Map<String, Value>>,
}

/// Returns the logins of a secret by registry. Never quotes it.
fn auths_of(secret: Secret) -> Result<Map<String, Value>, &'static str> {
    let data = secret.data.unwrap_or_default();
    let auths = match (data.get(".dockerconfigjson"), data.get(".dockercfg")) {
        (Some(bytes), _) => {
            serde_json::from_slice::<DockerConfig>(&bytes.0).map(|config| config.auths)
        }
        (None, Some(bytes)) => serde_json::from_slice(&bytes.0),
        (None, None) => return Err("has neither .dockerconfigjson nor .dockercfg"),
    };
    let auths =
        auths.map_err(|_| "is not JSON as `kubectl create secret docker-registry` makes it")?;
    Ok(auths.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn secret(key: &str, text: &str) -> Secret {
        Secret {
            data: Some([(key.to_owned(), ByteString(text.into()))].into()),
            ..Secret::default()
        }
    }

    #[test]
    fn secret_of_both_formats_has_auths() {
        let entry = r#"{"quay.io": {"auth": "dTpw"}}"#;
        let new = auths_of(secret(
            ".dockerconfigjson",
            &format!(r#"{{"auths": {entry}}}"#),
        ))
        .unwrap();
        assert_eq!(new["quay.io"]["auth"], "dTpw");
        assert_eq!(auths_of(secret(".dockercfg", entry)).unwrap(), new);
        assert!(
            auths_of(secret(".dockerconfigjson", "{}"))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn secret_that_is_broken_is_not_quoted() {
        for (key, text) in [
            (".dockerconfigjson", "hunter2"),
            (".dockerconfigjson", r#""hunter2""#),
            (".dockerconfigjson", r#"{"auths": ["hunter2"]}"#),
            (".dockercfg", r#"["hunter2"]"#),
            ("password", "hunter2"),
        ] {
            let problem = auths_of(secret(key, text)).unwrap_err();
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
