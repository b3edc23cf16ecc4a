//! Locations in S3 as text. Parsed also by programs without the SDK, which refuse them with a
//! reason.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use model::text::value_without_secrets;

/// Location of a mirror in S3, written `s3://BUCKET[/PREFIX]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct S3Location {
    /// Name of the bucket.
    pub bucket: String,
    /// Prefix of the names of all objects, with the slash at its end. Empty for the whole bucket.
    prefix: String,
}

/// Reason for which a text is not the location of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StorePlaceError(String);

const SCHEME: &str = "s3://";

#[cfg(feature = "s3")]
impl S3Location {
    /// Returns the name of an object in S3 for the path of its key.
    pub fn name(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Returns the path of the key for the name of an object in S3. Returns `None` outside of the
    /// prefix.
    pub(crate) fn path<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(&self.prefix)
    }
}

impl FromStr for S3Location {
    type Err = StorePlaceError;

    fn from_str(text: &str) -> Result<Self, StorePlaceError> {
        // Access keys are written in front of the bucket by mistake.
        let shown = value_without_secrets(text);
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Err(StorePlaceError(format!(
                "{shown:?} does not start with s3://"
            )));
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let mut prefix = prefix.strip_suffix('/').unwrap_or(prefix).to_owned();
        let shown = shown.strip_prefix(SCHEME).unwrap_or_default();
        let (shown_bucket, shown_prefix) = shown.split_once('/').unwrap_or((shown, ""));
        if !is_bucket(bucket) {
            return Err(StorePlaceError(format!(
                "{shown_bucket:?} is no bucket name: 3 to 63 of a-z, 0-9, dot and hyphen, with a letter or digit at both ends"
            )));
        }
        if !prefix.is_empty() {
            // Another prefix would not survive as part of a URL path.
            if !prefix.split('/').all(is_part) {
                return Err(StorePlaceError(format!(
                    "{shown_prefix:?} is no prefix: its parts are neither empty nor dots, and hold only visible ASCII without ?#%\\"
                )));
            }
            prefix.push('/');
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix,
        })
    }
}

impl fmt::Display for S3Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = format!("{SCHEME}{}/{}", self.bucket, self.prefix);
        f.write_str(place.trim_end_matches('/'))
    }
}

/// True for a valid bucket name, by the rules that hold everywhere (Amazon S3 User Guide, "General
/// purpose bucket naming rules").
fn is_bucket(name: &str) -> bool {
    let has_hyphen_at_end = name.starts_with('-') || name.ends_with('-');
    (3..=63).contains(&name.len()) && !has_hyphen_at_end && name.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// True for a part of a prefix that survives in a URL path. Clients resolve `.` and `..` there, and
/// decode `%`.
fn is_part(part: &str) -> bool {
    !matches!(part, "" | "." | "..")
        && part
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"?#%\\".contains(&byte))
}

/// The location of a store, as a command line or a configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// A folder of the local file system.
    Folder(PathBuf),
    /// A bucket, or a prefix in one.
    S3(S3Location),
}

impl FromStr for StorePlace {
    type Err = StorePlaceError;

    /// Reads `s3://BUCKET[/PREFIX]`, or the path of a folder.
    fn from_str(text: &str) -> Result<Self, StorePlaceError> {
        match text {
            // An unset variable of a template, say.
            "" => Err(StorePlaceError(
                "the store has no name: write a folder or s3://BUCKET[/PREFIX]".to_owned(),
            )),
            _ if text.starts_with(SCHEME) => Ok(Self::S3(text.parse()?)),
            // As a folder it would be made where the program runs.
            _ if text.contains("://") => {
                let shown = value_without_secrets(text);
                Err(StorePlaceError(format!(
                    "{shown:?} is neither a folder nor s3://BUCKET[/PREFIX]"
                )))
            }
            _ => Ok(Self::Folder(text.into())),
        }
    }
}

impl StorePlace {
    /// Returns true if a plain `all.json` is stored too, because a bucket cannot decompress.
    pub fn wants_identity(&self) -> bool {
        matches!(self, Self::S3(_))
    }

    /// Returns the place with the whole path of a folder, so that two runs from two folders do not
    /// make two stores unseen.
    pub fn shown(&self) -> String {
        if let Self::Folder(folder) = self
            && let Ok(whole) = std::fs::canonicalize(folder)
        {
            return whole.display().to_string();
        }
        self.to_string()
    }

    /// Returns the time for which a server uses a pointer without asking the store again.
    pub fn freshness(&self) -> Duration {
        match self {
            // No reader notices it, and a burst of requests does not read and hash the file for
            // each of them.
            Self::Folder(_) => Duration::from_millis(1),
            // Too short to be noticed as stale, and long enough that a burst of readers costs one
            // request.
            Self::S3(_) => Duration::from_secs(1),
        }
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::S3(place) => place.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_bucket_with_or_without_prefix_succeeds() {
        for (text, bucket, prefix, shown) in [
            ("s3://my-bucket", "my-bucket", "", "s3://my-bucket"),
            ("s3://my-bucket/", "my-bucket", "", "s3://my-bucket"),
            ("s3://my.bucket/a", "my.bucket", "a/", "s3://my.bucket/a"),
            ("s3://b0b/a/b=c/", "b0b", "a/b=c/", "s3://b0b/a/b=c"),
        ] {
            let place: S3Location = text.parse().unwrap();
            assert_eq!(
                (place.bucket.as_str(), place.prefix.as_str()),
                (bucket, prefix)
            );
            assert_eq!(place.to_string(), shown);
        }
    }

    #[test]
    fn parse_of_url_as_store_fails_and_hides_its_password() {
        for text in ["https://robot:hunter2@h/x", "S3://robot:hunter2@h/x"] {
            let refused = text.parse::<StorePlace>().unwrap_err().to_string();
            assert!(
                refused.contains("is neither a folder") && !refused.contains("hunter2"),
                "{refused}"
            );
        }
    }

    #[test]
    fn parse_of_bad_bucket_or_prefix_fails() {
        let refused = |text: &str| text.parse::<S3Location>().unwrap_err().to_string();
        for text in ["", "/data", "S3://bucket", "https://bucket"] {
            assert_eq!(refused(text), format!("{text:?} does not start with s3://"));
        }
        for bucket in [
            "",
            "ab",
            "-ab",
            "ab-",
            "aB0",
            "a_b",
            "a..b",
            &"a".repeat(64),
        ] {
            let error = refused(&format!("s3://{bucket}/p"));
            assert!(
                error.starts_with(&format!("{bucket:?} is no bucket name")),
                "{error}"
            );
        }
        for text in ["s3://AKIA:hunter2@bucket/p", "s3://AKIA:hunter/2@bucket/p"] {
            let error = refused(text);
            assert!(
                error.starts_with("\"***@bucket\" is no bucket name"),
                "{error}"
            );
        }
        for prefix in [
            "/a", "a//b", "a//", ".", "a/../b", "a b", "ä", "a?b", "a#b", "a%2f",
        ] {
            let error = refused(&format!("s3://bucket/{prefix}"));
            assert!(error.contains("is no prefix"), "{prefix}: {error}");
        }
    }

    #[cfg(feature = "s3")]
    #[test]
    fn name_and_path_differ_by_the_prefix() {
        for (place, name) in [("s3://bucket", "x/y"), ("s3://bucket/a/b", "a/b/x/y")] {
            let place: S3Location = place.parse().unwrap();
            assert_eq!(place.name("x/y"), name);
            assert_eq!(place.path(name), Some("x/y"));
        }
        let place: S3Location = "s3://bucket/a".parse().unwrap();
        for outside in ["ab/x", "b/x", "a"] {
            assert_eq!(place.path(outside), None, "{outside}");
        }
    }

    #[test]
    fn store_place_scheme_decides_kind() {
        let parse = |text: &str| text.parse::<StorePlace>();
        assert_eq!(parse("./s3"), Ok(StorePlace::Folder("./s3".into())));
        assert_eq!(parse("s3:/x"), Ok(StorePlace::Folder("s3:/x".into())));
        assert_eq!(parse("s3://bucket/a").unwrap().to_string(), "s3://bucket/a");
        assert!(
            parse("s3://")
                .unwrap_err()
                .to_string()
                .contains("is no bucket name")
        );
        assert!(parse("").unwrap_err().to_string().contains("has no name"));
    }
}
