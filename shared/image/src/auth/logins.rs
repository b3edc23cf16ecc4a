//! Credentials that are in no file.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::auth::CredentialsError;
use crate::auth::document::AuthDocument;

type Documents = Arc<[AuthDocument]>;

/// Documents as `podman login` writes them, held in memory for machines that get them from a vault. Clones share them:
/// what is set in one is used by all from the next pull on.
#[derive(Clone)]
pub struct Logins(Arc<RwLock<Documents>>);

impl Logins {
    /// Replaces all documents. Each comes with the name that errors call it by.
    ///
    /// # Errors
    /// The first document that is not one, without quoting it; those of before then stay.
    pub fn set<'a>(&self, documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), CredentialsError> {
        let parse = |(name, text): (&str, &str)| AuthDocument::parse(name.to_owned(), text.as_bytes());
        let documents = documents.into_iter().map(parse).collect::<Result<_, _>>()?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = documents;
        Ok(())
    }

    pub(crate) fn documents(&self) -> Documents {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
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
    fn nothing_of_a_secret_prints_and_a_broken_document_changes_nothing() {
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
