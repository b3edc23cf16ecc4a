//! Signatures that somebody keeps beside the registry (containers-registries.d(5), `lookaside`).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use reqwest::Url;

use crate::digest::Digest;
use crate::error::{Error, Limit};
use crate::images::Images;
use crate::layout::blocking;
use crate::registry::Session;
use crate::source::Source;

/// Where signatures are kept beside a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookaside {
    /// Below a URL.
    Http(Url),
    /// Below a folder.
    Folder(PathBuf),
}

/// Not where signatures could be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no place for signatures: write https://HOST/PATH or file:///PATH")]
pub struct LookasideError(String);

impl std::str::FromStr for Lookaside {
    type Err = LookasideError;

    fn from_str(text: &str) -> Result<Self, LookasideError> {
        let wrong = || LookasideError(text.to_owned());
        let url = Url::parse(text).map_err(|_| wrong())?;
        match url.scheme() {
            "https" | "http" if url.query().is_none() && url.username().is_empty() && url.password().is_none() => {
                Ok(Self::Http(url))
            }
            "file" => url.to_file_path().map(Self::Folder).map_err(|()| wrong()),
            _ => Err(wrong()),
        }
    }
}

impl Images {
    /// The simple signatures of the image `digest` (containers/image, "signature protocols"): files from `signature-1`
    /// on, up to the first that is not there.
    ///
    /// # Errors
    /// Whatever keeps one of them from being read, but that it is not there.
    pub async fn simple_signatures(
        &self,
        source: &Source,
        digest: &Digest,
        lookaside: &Lookaside,
    ) -> Result<Vec<Bytes>, Error> {
        let Source::Registry { reference, .. } = source else {
            return Ok(Vec::new());
        };
        let session = self.session(reference);
        let folder = format!("{}@{}={}", reference.repository(), digest.algorithm(), digest.hex());
        self.in_time(lookaside.all(&session, &folder)).await
    }
}

impl Lookaside {
    async fn all(&self, session: &Session, folder: &str) -> Result<Vec<Bytes>, Error> {
        let limit = session.limits().signatures;
        let mut found = Vec::new();
        for number in 1_u64.. {
            let Some(signature) = self.read(session, &format!("{folder}/signature-{number}")).await? else {
                break;
            };
            if number > limit {
                return Err(Error::Limit(Limit {
                    name: "signatures",
                    limit,
                    place: folder.to_owned(),
                }));
            }
            found.push(signature);
        }
        Ok(found)
    }

    async fn read(&self, session: &Session, path: &str) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Http(base) => {
                let mut url = base.clone();
                url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
                session.beside(&url).await
            }
            Self::Folder(folder) => {
                let (path, limit) = (folder.join(path), session.limits().signature_bytes);
                blocking(move || file(&path, limit)).await
            }
        }
    }
}

fn file(path: &Path, limit: u64) -> Result<Option<Bytes>, Error> {
    let failed = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(Error::Limit(Limit {
            name: "signatureBytes",
            limit,
            place: path.display().to_string(),
        }));
    }
    Ok(Some(bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookaside_is_a_url_or_a_folder() {
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
