//! Locations in S3 as text. Parsed also by programs without the SDK, which refuse them with a reason.

use std::{fmt, str::FromStr};

/// Location of a mirror in S3, written `s3://BUCKET[/PREFIX]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct S3Location {
    /// Name of the bucket.
    pub bucket: String,
    /// Prefix of every key, without slashes at its ends. Empty for the whole bucket.
    pub prefix: String,
}

/// Error for a text that is not an [`S3Location`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum S3LocationError {
    /// The text does not start with `s3://`.
    #[error("{0:?} does not start with s3://")]
    Scheme(String),
    /// The bucket breaks the naming rules of S3.
    #[error("{0:?} is no bucket name: 3 to 63 of a-z, 0-9, dot and hyphen, with a letter or digit at both ends")]
    Bucket(String),
    /// The prefix would not survive as part of a URL path.
    #[error("{0:?} is no prefix: its parts are neither empty nor dots, and hold only visible ASCII without ?#%\\")]
    Prefix(String),
}

const SCHEME: &str = "s3://";

impl S3Location {
    /// True if a text is meant as a location in S3, valid or not.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }
}

#[cfg(feature = "s3")]
impl S3Location {
    /// Returns the name of an object in S3 for the path of its key.
    pub(crate) fn name(&self, path: &str) -> String {
        if self.prefix.is_empty() {
            path.to_owned()
        } else {
            format!("{}/{path}", self.prefix)
        }
    }

    /// Returns the path of the key for the name of an object in S3. Returns `None` outside of the prefix.
    pub(crate) fn path<'a>(&self, name: &'a str) -> Option<&'a str> {
        if self.prefix.is_empty() {
            Some(name)
        } else {
            name.strip_prefix(&self.prefix)?.strip_prefix('/')
        }
    }
}

impl FromStr for S3Location {
    type Err = S3LocationError;

    fn from_str(text: &str) -> Result<Self, S3LocationError> {
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| S3LocationError::Scheme(text.to_owned()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        if !is_bucket(bucket) {
            return Err(S3LocationError::Bucket(bucket.to_owned()));
        }
        if !prefix.is_empty() && !prefix.split('/').all(is_part) {
            return Err(S3LocationError::Prefix(prefix.to_owned()));
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for S3Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.bucket)?;
        if self.prefix.is_empty() {
            Ok(())
        } else {
            write!(f, "/{}", self.prefix)
        }
    }
}

/// True for a valid bucket name, by the rules that hold everywhere (Amazon S3 User Guide, "General purpose bucket naming
/// rules").
fn is_bucket(name: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (3..=63).contains(&bytes.len())
        && bytes
            .iter()
            .all(|&byte| alphanumeric(byte) || matches!(byte, b'.' | b'-'))
        && bytes.first().is_some_and(|&byte| alphanumeric(byte))
        && bytes.last().is_some_and(|&byte| alphanumeric(byte))
        && !name.contains("..")
}

/// True for a part of a prefix that survives in a URL path. Clients resolve `.` and `..` there, and decode `%`.
fn is_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'%' | b'\\');
    !matches!(part, "" | "." | "..") && part.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_bucket_with_or_without_prefix_succeeds() {
        for (text, bucket, prefix, shown) in [
            ("s3://my-bucket", "my-bucket", "", "s3://my-bucket"),
            ("s3://my-bucket/", "my-bucket", "", "s3://my-bucket"),
            ("s3://my.bucket/a", "my.bucket", "a", "s3://my.bucket/a"),
            ("s3://b0b/a/b=c/", "b0b", "a/b=c", "s3://b0b/a/b=c"),
        ] {
            let place: S3Location = text.parse().unwrap();
            assert_eq!((place.bucket.as_str(), place.prefix.as_str()), (bucket, prefix));
            assert_eq!(place.to_string(), shown);
        }
    }

    #[test]
    fn parse_of_bad_bucket_or_prefix_fails() {
        for text in ["", "/data", "S3://bucket", "https://bucket"] {
            assert_eq!(text.parse::<S3Location>(), Err(S3LocationError::Scheme(text.into())));
        }
        for bucket in ["", "ab", "-ab", "ab-", "aB0", "a_b", "a..b", "user@b", &"a".repeat(64)] {
            let parsed = format!("s3://{bucket}/p").parse::<S3Location>();
            assert_eq!(parsed, Err(S3LocationError::Bucket(bucket.into())));
        }
        for prefix in ["/a", "a//b", "a//", ".", "a/../b", "a b", "ä", "a?b", "a#b", "a%2f"] {
            let parsed = format!("s3://bucket/{prefix}").parse::<S3Location>();
            assert!(
                matches!(parsed, Err(S3LocationError::Prefix(_))),
                "{prefix}: {parsed:?}"
            );
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
}
