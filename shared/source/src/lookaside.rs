//! Signatures beside the registry (containers-registries.d(5), `lookaside`).

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use oci::Digest;
use reqwest::Url;

use crate::layout::read_file;
use crate::registry::Session;
use crate::stream::blocking;
use crate::{Error, Source, Sources};

/// Location of signatures that are kept beside a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookaside {
    /// Files below an HTTP or HTTPS URL.
    Http(Url),
    /// Files below a folder of this machine.
    Folder(PathBuf),
}

/// The text is not a location of signatures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a location of signatures: write https://HOST/PATH or file:///PATH")]
pub struct LookasideError(String);

impl std::str::FromStr for Lookaside {
    type Err = LookasideError;

    fn from_str(text: &str) -> Result<Self, LookasideError> {
        let wrong = || LookasideError(text.to_owned());
        let url = Url::parse(text).map_err(|_| wrong())?;
        match url.scheme() {
            "file" => url.to_file_path().map(Self::Folder).map_err(|()| wrong()),
            _ if url.query().is_none() && fetch::unusable(&url).is_none() => Ok(Self::Http(url)),
            _ => Err(wrong()),
        }
    }
}

impl Sources {
    /// Returns the simple signatures of the image `digest` (containers/image, "signature protocols"): files from
    /// `signature-1` up to the first that does not exist.
    ///
    /// # Errors
    /// Every failure except a file that does not exist.
    pub async fn simple_signatures(
        &self,
        source: &Source,
        digest: &Digest,
        lookaside: &Lookaside,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let Source::Registry { reference, .. } = source else {
            return Ok(Vec::new());
        };
        let session = self.session(reference)?;
        let folder = format!("{}@{}={}", reference.repository(), digest.algorithm(), digest.hex());
        self.in_time(lookaside.all(&session, &folder)).await
    }
}

impl Lookaside {
    async fn all(&self, session: &Session, folder: &str) -> Result<Vec<Vec<u8>>, Error> {
        let limit = session.settings.limits.signatures();
        let mut found = Vec::new();
        for number in 1_u64.. {
            let Some(signature) = self.read(session, &format!("{folder}/signature-{number}")).await? else {
                break;
            };
            limit.check(number, || folder.to_owned())?;
            found.push(signature.into());
        }
        Ok(found)
    }

    async fn read(&self, session: &Session, path: &str) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Http(base) => {
                let mut url = base.clone();
                url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
                session.file_at(&url).await
            }
            Self::Folder(folder) => {
                let path = folder.join(path);
                let limit = session.settings.limits.signature();
                match blocking(move || read_file(&path, limit)).await {
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookaside_is_a_url_or_a_folder() {
        let parse = |text: &str| text.parse::<Lookaside>();
        assert!(matches!(parse("https://a.io/sigstore"), Ok(Lookaside::Http(_))));
        assert_eq!(
            parse("file:///var/sigstore"),
            Ok(Lookaside::Folder("/var/sigstore".into()))
        );
        for text in [
            "",
            "/var/sigstore",
            "ftp://a.io/",
            "https://a.io/?token=1",
            "https://a:b@a.io/",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
