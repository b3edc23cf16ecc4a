use std::{fmt, str::FromStr};

/// Where a mirror's objects lie in S3, written `s3://BUCKET[/PREFIX]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The bucket's name.
    pub bucket: String,
    /// What stands before every key, without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
}

/// Why a text is no [`Place`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It is of another kind.
    #[error("{0:?} does not start with s3://")]
    Scheme(String),
    /// The bucket cannot exist.
    #[error("{0:?} is no bucket name: 3 to 63 of a-z, 0-9, dot and hyphen, with a letter or digit at both ends")]
    Bucket(String),
    /// The prefix would not survive as part of a URL path.
    #[error("{0:?} is no prefix: its parts are neither empty nor dots, and hold only visible ASCII without ?#%\\")]
    Prefix(String),
}

const SCHEME: &str = "s3://";

impl Place {
    /// Whether a text means a place in S3 rather than anything else, right or wrong.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The name under which S3 keeps what the mirror calls `path`.
    pub(crate) fn name(&self, path: &str) -> String {
        if self.prefix.is_empty() {
            path.to_owned()
        } else {
            format!("{}/{path}", self.prefix)
        }
    }

    /// What the mirror calls an object of S3; `None` outside of the prefix.
    pub(crate) fn path<'a>(&self, name: &'a str) -> Option<&'a str> {
        if self.prefix.is_empty() {
            Some(name)
        } else {
            name.strip_prefix(&self.prefix)?.strip_prefix('/')
        }
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| PlaceError::Scheme(text.to_owned()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        if !is_bucket(bucket) {
            return Err(PlaceError::Bucket(bucket.to_owned()));
        }
        if !prefix.is_empty() && !prefix.split('/').all(is_part) {
            return Err(PlaceError::Prefix(prefix.to_owned()));
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.bucket)?;
        if self.prefix.is_empty() {
            Ok(())
        } else {
            write!(f, "/{}", self.prefix)
        }
    }
}

/// The rules that hold everywhere (Amazon S3 User Guide, "General purpose bucket naming rules").
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

/// Every key is also a URL path, and clients resolve `.` and `..` and decode `%` in those.
fn is_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'%' | b'\\');
    !matches!(part, "" | "." | "..") && part.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_bucket_and_maybe_a_prefix() {
        for (text, bucket, prefix, shown) in [
            ("s3://my-bucket", "my-bucket", "", "s3://my-bucket"),
            ("s3://my-bucket/", "my-bucket", "", "s3://my-bucket"),
            ("s3://my.bucket/a", "my.bucket", "a", "s3://my.bucket/a"),
            ("s3://b0b/a/b=c/", "b0b", "a/b=c", "s3://b0b/a/b=c"),
        ] {
            let place: Place = text.parse().unwrap();
            assert_eq!((place.bucket.as_str(), place.prefix.as_str()), (bucket, prefix));
            assert_eq!(place.to_string(), shown);
        }
    }

    #[test]
    fn nothing_else_is_a_place() {
        for text in ["", "/data", "S3://bucket", "https://bucket"] {
            assert_eq!(text.parse::<Place>(), Err(PlaceError::Scheme(text.into())));
        }
        for bucket in ["", "ab", "-ab", "ab-", "aB0", "a_b", "a..b", "user@b", &"a".repeat(64)] {
            let parsed = format!("s3://{bucket}/p").parse::<Place>();
            assert_eq!(parsed, Err(PlaceError::Bucket(bucket.into())));
        }
        for prefix in ["/a", "a//b", "a//", ".", "a/../b", "a b", "ä", "a?b", "a#b", "a%2f"] {
            let parsed = format!("s3://bucket/{prefix}").parse::<Place>();
            assert!(matches!(parsed, Err(PlaceError::Prefix(_))), "{prefix}: {parsed:?}");
        }
    }

    #[test]
    fn names_and_paths_differ_by_the_prefix() {
        for (place, name) in [("s3://bucket", "x/y"), ("s3://bucket/a/b", "a/b/x/y")] {
            let place: Place = place.parse().unwrap();
            assert_eq!(place.name("x/y"), name);
            assert_eq!(place.path(name), Some("x/y"));
        }
        let place: Place = "s3://bucket/a".parse().unwrap();
        for outside in ["ab/x", "b/x", "a"] {
            assert_eq!(place.path(outside), None, "{outside}");
        }
    }
}
