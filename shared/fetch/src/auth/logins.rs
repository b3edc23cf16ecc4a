//! Credentials that are held in memory, such as those of pull secrets.

use std::fmt;
use std::sync::Arc;

use crate::auth::CredentialsError;
use crate::auth::document::AuthDocument;
use parking_lot::RwLock;

type AuthDocuments = Arc<[AuthDocument]>;

/// Documents in the format of `podman login`, in memory, for machines that get them from a vault. Clones share the
/// documents, and a change takes effect with the next pull.
#[derive(Clone)]
pub struct Logins(Arc<RwLock<AuthDocuments>>);

impl Logins {
    /// Replaces all documents. Each has a name for errors.
    ///
    /// # Errors
    /// The first malformed document, without a quote. The former documents then stay.
    pub fn set<'a>(&self, documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), CredentialsError> {
        let parse = |(name, text): (&str, &str)| AuthDocument::parse(name.to_owned(), text.as_bytes());
        let documents = documents.into_iter().map(parse).collect::<Result<_, _>>()?;
        *self.0.write() = documents;
        Ok(())
    }

    pub(crate) fn documents(&self) -> AuthDocuments {
        Arc::clone(&self.0.read())
    }
}

impl Default for Logins {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(Arc::new([]))))
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let documents = self.documents();
        f.debug_list()
            .entries(documents.iter().map(AuthDocument::origin))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_with_broken_document_keeps_former_ones_and_prints_no_secret() {
        let logins = Logins::default();
        let good = r#"{"auths": {"quay.io": {"username": "u", "password": "hunter2"}}}"#;
        logins.set([("vault", good)]).unwrap();
        assert_eq!(format!("{logins:?}"), r#"["vault"]"#);
        let error = logins
            .set([("vault", good), ("other", r#"{"auths": "hunter2"}"#)])
            .unwrap_err();
        assert!(
            error.to_string().contains("other") && !error.to_string().contains("hunter2"),
            "{error}"
        );
        assert_eq!(logins.documents().len(), 1);
    }
}
