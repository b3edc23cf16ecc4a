use std::{fmt, str::FromStr};

use serde::Serialize;
use serde_with::DeserializeFromStr;

/// The name of a Catalog: a DNS-1123 subdomain, as Kubernetes names a `ClusterCatalog`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, DeserializeFromStr)]
pub struct CatalogName(String);

/// A text that is not a DNS-1123 subdomain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a catalog's name is a DNS-1123 subdomain (at most 253 characters: lower-case letters, digits, '-' and '.', \
     each part starting and ending with a letter or digit), not {0:?}"
)]
pub struct CatalogNameError(String);

impl CatalogName {
    /// The longest name that DNS-1123 allows.
    pub const MAX_LEN: usize = 253;

    /// Returns the name as a string slice.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CatalogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for CatalogName {
    type Err = CatalogNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Kubernetes checks the whole name against 253 characters but no part against DNS's 63.
        if text.len() <= Self::MAX_LEN && text.split('.').all(has_chars_of_label) {
            return Ok(Self(text.to_owned()));
        }
        // Cut: the text may come from a request, and errors are logged.
        let start = text.chars().take(Self::MAX_LEN + 1);
        Err(CatalogNameError(start.collect()))
    }
}

/// Length of the longest DNS label, in bytes (RFC 1035, section 2.3.4).
const LABEL_MAX: usize = 63;

/// Returns true for a DNS-1123 label, as OLM wants the names of packages. It is also the name of a
/// file on each file system and on each web server: it has no ending that tells a type, and no
/// other name differs from it by case alone.
pub fn is_dns_label(name: &str) -> bool {
    name.len() <= LABEL_MAX && has_chars_of_label(name)
}

/// Returns true for a name that stands for itself in each place: on the command line of a shell, as
/// an argument of a program, in a path, and in a URL with its query. It consists of ASCII letters,
/// digits, `.`, `_` and `-`, and begins neither as an option nor as a hidden file.
///
/// ```
/// use model::is_plain_name;
///
/// assert!(is_plain_name("etcd") && is_plain_name("stable-v4.20_x"));
/// assert!(!is_plain_name("etcd;reboot") && !is_plain_name("--force") && !is_plain_name(".."));
/// ```
pub fn is_plain_name(name: &str) -> bool {
    if name.is_empty() || name.starts_with(['.', '-']) {
        return false;
    }
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// True for `a` to `z` and `0` to `9`, with which the parts of names in registries and clusters begin
/// and end.
pub const fn is_lower_alphanumeric(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn has_chars_of_label(part: &str) -> bool {
    let ends = part.starts_with(is_lower_alphanumeric) && part.ends_with(is_lower_alphanumeric);
    ends && part.chars().all(|c| is_lower_alphanumeric(c) || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_accepted_only_if_it_is_a_dns_subdomain() {
        for good in [
            "a",
            "operatorhubio",
            "v4.20",
            "a-b.c-d",
            "0",
            &"a".repeat(253),
        ] {
            assert!(good.parse::<CatalogName>().is_ok(), "{good}");
        }
        let long = "a".repeat(254);
        for bad in "A,a_b,-a,a-,a..b,.,..,a/b,a.,.a,ä,a b,"
            .split(',')
            .chain([&*long])
        {
            assert!(bad.parse::<CatalogName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn label_has_63_characters_and_no_dots() {
        for (name, is_label) in [
            ("etcd".to_owned(), true),
            ("a".repeat(63), true),
            ("a".repeat(64), false),
            ("x.html".to_owned(), false),
            ("Etcd".to_owned(), false),
            ("etcd/x".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_dns_label(&name), is_label, "{name}");
        }
    }

    #[test]
    fn name_is_plain_only_if_every_shell_takes_it_as_one_word() {
        for plain in ["a", "A_b.c-9", "_a", "0", "v1..2"] {
            assert!(is_plain_name(plain), "{plain}");
        }
        for other in [
            "",
            "-a",
            "--force",
            ".a",
            "..",
            "a b",
            "a/b",
            "a;b",
            "a$b",
            "a`b",
            "a\nb",
            "a'b",
            "a*b",
            "a\\b",
            "~a",
            "a=b",
            "a:b",
            "a&b",
            "a|b",
            "a>b",
            "a#b",
            "a!b",
            "a%41",
            "\u{e4}",
            "a\u{202e}b",
        ] {
            assert!(!is_plain_name(other), "{other}");
        }
    }
}
