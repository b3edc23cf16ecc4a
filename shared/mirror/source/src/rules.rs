//! Rules for the place of a pull: mirrors of registries, and registries that must not be asked
//! (containers-registries.conf(5)).

use std::sync::Arc;

use oci_client::Reference;
use parking_lot::RwLock;

/// Rules for registries. Clones share them, and a change takes effect with the next question.
/// Default: none.
#[derive(Debug, Clone, Default)]
pub struct RegistryRules(Arc<RwLock<Arc<[RegistryRule]>>>);

/// Rule for the images below one prefix. Of several prefixes the longest decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryRule {
    /// `HOST[:PORT][/PATH][:TAG|@DIGEST]`, or `*.DOMAIN` for the hosts below a domain.
    pub prefix: String,
    /// Text in place of the prefix. Default: the prefix itself.
    pub location: Option<String>,
    /// True if the registry may be asked over plain HTTP. It counts for the whole host.
    pub is_insecure: bool,
    /// True if nothing below the prefix may be pulled.
    pub is_blocked: bool,
    /// Mirrors, in the order in which they are asked before the registry itself.
    pub mirrors: Vec<RegistryMirror>,
}

impl RegistryRule {
    /// Returns the place that is asked: the location, else the prefix.
    pub(crate) fn place(&self) -> &str {
        self.location.as_deref().unwrap_or(&self.prefix)
    }
}

/// A mirror of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryMirror {
    /// Text in place of the prefix.
    pub location: String,
    /// True if tags are resolved by it.
    pub for_tags: bool,
    /// True if it is asked for digests.
    pub for_digests: bool,
    /// True if it may be asked over plain HTTP. It counts for the whole host.
    pub is_insecure: bool,
}

/// The places of one image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) mirrors: Vec<Reference>,
    /// The registry itself.
    pub(crate) registry: Reference,
}

impl RegistryRules {
    /// Replaces all rules.
    pub fn set(&self, rules: Vec<RegistryRule>) {
        *self.0.write() = rules.into();
    }

    /// Returns true if a host, with its port if one is written, may be asked over plain HTTP.
    pub(crate) fn allows_plain_http(&self, host: &str) -> bool {
        let rules = Arc::clone(&self.0.read());
        rules.iter().any(|rule| {
            let place = rule.place();
            let is_own = rule.is_insecure && matched(host_of(place), host).is_some();
            let mut mirrors = rule.mirrors.iter().filter(|mirror| mirror.is_insecure);
            is_own || mirrors.any(|mirror| host_of(&mirror.location).eq_ignore_ascii_case(host))
        })
    }

    /// Returns the places to ask for a tag or digest of the repository; `None` if it is blocked.
    pub(crate) fn places(&self, reference: &Reference, version: &str) -> Option<Places> {
        let rules = Arc::clone(&self.0.read());
        let by_digest = version.contains(':');
        let name = format!("{}/{}", reference.registry(), reference.repository());
        let separator = if by_digest { '@' } else { ':' };
        let decided = deciding(&rules, &format!("{name}{separator}{version}"));
        // The digest of a tag that is blocked is blocked too.
        let of_tag = match reference.tag() {
            Some(tag) => deciding(&rules, &format!("{name}:{tag}")),
            None => None,
        };
        let mut all = decided.iter().chain(&of_tag);
        if all.any(|(rule, _)| rule.is_blocked) {
            return None;
        }
        let Some((rule, length)) = decided else {
            return Some(Places {
                mirrors: Vec::new(),
                registry: reference.clone(),
            });
        };
        // Nothing if the rule is for one tag or digest.
        let rest = name.get(length..).unwrap_or_default();
        let mut mirrors = Vec::new();
        for mirror in &rule.mirrors {
            let is_asked = if by_digest {
                mirror.for_digests
            } else {
                mirror.for_tags
            };
            if is_asked {
                mirrors.extend(moved(reference, &format!("{}{rest}", mirror.location)));
            }
        }
        let location = rule.location.as_ref();
        let registry = location.and_then(|location| moved(reference, &format!("{location}{rest}")));
        Some(Places {
            mirrors,
            registry: registry.unwrap_or_else(|| reference.clone()),
        })
    }
}

/// Returns the host of a place in a registry.
fn host_of(place: &str) -> &str {
    match place.split_once('/') {
        Some((host, _)) => host,
        None => place,
    }
}

/// Returns the rule with the longest prefix that an image begins with, and the length of that
/// beginning.
fn deciding<'r>(rules: &'r [RegistryRule], image: &str) -> Option<(&'r RegistryRule, usize)> {
    rules
        .iter()
        .filter_map(|rule| Some((rule, matched(&rule.prefix, image)?)))
        .max_by_key(|(rule, _)| rule.prefix.len())
}

/// Returns the length of the beginning of an image's name that a prefix stands for, as
/// containers/image matches them.
fn matched(prefix: &str, image: &str) -> Option<usize> {
    let Some(domain) = prefix.strip_prefix("*.") else {
        // Names of hosts have no case.
        let host = prefix.find('/').unwrap_or(prefix.len());
        let is_same = image.get(..host)?.eq_ignore_ascii_case(&prefix[..host])
            && image[host..].starts_with(&prefix[host..]);
        if !is_same || !is_end(image, prefix.len()) {
            return None;
        }
        return Some(prefix.len());
    };
    let domain = domain.to_ascii_lowercase();
    let host = image[..image.find('/').unwrap_or(image.len())].to_ascii_lowercase();
    for (at, _) in host.match_indices(&domain) {
        let end = at + domain.len();
        if host[..at].ends_with('.') && is_end(image, end) {
            return Some(end);
        }
    }
    None
}

/// Returns true if a prefix of an image may end here. Ports are part of what may follow: a rule for
/// a host is also one for its ports.
fn is_end(image: &str, at: usize) -> bool {
    matches!(image.as_bytes().get(at), None | Some(b'/' | b':' | b'@'))
}

/// Returns the reference with the same tag in `HOST/REPOSITORY`, which may have another tag; `None`
/// if that names no repository.
fn moved(reference: &Reference, place: &str) -> Option<Reference> {
    let (host, path) = place.split_once('/')?;
    let last = path.rfind('/').map_or(0, |at| at + 1);
    let end = match path[last..].find([':', '@']) {
        Some(at) => last + at,
        None => path.len(),
    };
    let repository = &path[..end];
    if host.is_empty() || repository.is_empty() || repository.contains(':') {
        return None;
    }
    let tag = reference.tag().unwrap_or("latest");
    Some(Reference::with_tag(
        host.to_owned(),
        repository.to_owned(),
        tag.to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn rule(prefix: &str, mirrors: &[&str]) -> RegistryRule {
        let mirror = |location: &&str| RegistryMirror {
            location: (*location).to_owned(),
            for_tags: true,
            for_digests: true,
            is_insecure: false,
        };
        RegistryRule {
            prefix: prefix.to_owned(),
            location: None,
            is_insecure: false,
            is_blocked: false,
            mirrors: mirrors.iter().map(mirror).collect(),
        }
    }

    /// Returns the places of a reference with spaces between, the registry itself last.
    fn places(rules: &RegistryRules, reference: &str, by_digest: bool) -> String {
        let reference: Reference = reference.parse().unwrap();
        let version = if by_digest {
            DIGEST
        } else {
            reference.tag().unwrap()
        };
        let Places { mirrors, registry } = rules.places(&reference, version).unwrap();
        let places = mirrors.iter().chain([&registry]).map(ToString::to_string);
        Vec::from_iter(places).join(" ")
    }

    #[test]
    fn longest_prefix_at_a_boundary_decides() {
        let rules = RegistryRules::default();
        assert_eq!(places(&rules, "quay.io/a/b:v1", false), "quay.io/a/b:v1");
        rules.set(vec![
            rule("quay.io", &["mirror.lab:5000/quay"]),
            rule("quay.io/a", &["first/a", "second.lab/x/y"]),
            rule("*.redhat.io", &["mirror.lab"]),
            rule("host.lab:5000/n", &["other.lab/m"]),
            rule("tag.io/a:v1", &["mirror.lab/b:v2", "other.lab/c"]),
        ]);
        for (reference, expected) in [
            ("quay.io/c/b:v1", "mirror.lab:5000/quay/c/b:v1"),
            ("quay.io/a/b:v1", "first/a/b:v1 second.lab/x/y/b:v1"),
            ("quay.io/ab/b:v1", "mirror.lab:5000/quay/ab/b:v1"),
            ("quay.io:443/a/b:v1", ""),
            ("registry.redhat.io/a/b:v1", "mirror.lab/a/b:v1"),
            ("redhat.io/a:v1", ""),
            ("docker.io/lab/x.redhat.io/a:v1", ""),
            ("host.lab:5000/n:v1", "other.lab/m:v1"),
            // The rule of a tag replaces the whole repository.
            ("tag.io/a:v1", "mirror.lab/b:v1 other.lab/c:v1"),
        ] {
            let expected = format!("{expected} {reference}");
            assert_eq!(
                places(&rules, reference, false),
                expected.trim(),
                "{reference}"
            );
        }
    }

    #[test]
    fn mirror_may_be_for_digests_or_tags_alone_and_registry_elsewhere() {
        let (mut both, mut elsewhere) = (
            rule("quay.io", &["digests.lab", "tags.lab"]),
            rule("b.io", &[]),
        );
        both.mirrors[0].for_tags = false;
        both.mirrors[1].for_digests = false;
        elsewhere.location = Some("internal.lab/q".to_owned());
        let rules = RegistryRules::default();
        rules.set(vec![both, elsewhere]);
        for (reference, by_digest, expected) in [
            ("quay.io/a:v1", true, "digests.lab/a:v1 quay.io/a:v1"),
            ("quay.io/a:v1", false, "tags.lab/a:v1 quay.io/a:v1"),
            ("b.io/a/b:v1", true, "internal.lab/q/a/b:v1"),
        ] {
            assert_eq!(
                places(&rules, reference, by_digest),
                expected,
                "{reference}"
            );
        }
    }

    #[test]
    fn insecure_counts_for_the_host_of_a_rule_and_of_a_mirror() {
        let mut elsewhere = rule("quay.io/a", &["one.lab/x", "two.lab:5000"]);
        elsewhere.location = Some("internal.lab:5000/a".to_owned());
        elsewhere.is_insecure = true;
        elsewhere.mirrors[1].is_insecure = true;
        let mut domain = rule("*.plain.lab", &[]);
        domain.is_insecure = true;
        let rules = RegistryRules::default();
        rules.set(vec![elsewhere, domain, rule("safe.lab", &[])]);
        for (host, expected) in [
            ("quay.io", false),
            ("internal.lab:5000", true),
            ("internal.lab", false),
            ("one.lab", false),
            ("two.lab:5000", true),
            ("a.plain.lab", true),
            ("plain.lab", false),
            ("safe.lab", false),
        ] {
            assert_eq!(rules.allows_plain_http(host), expected, "{host}");
        }
    }

    #[test]
    fn blocked_tag_or_digest_is_blocked_however_it_is_asked() {
        let digest = format!("quay.io/a@{DIGEST}");
        let both = format!("quay.io/a:v1@{DIGEST}");
        for (prefix, reference, version, is_blocked) in [
            ("quay.io/a", "quay.io/a/b:v1", DIGEST, true),
            ("quay.io/a:v1", "quay.io/a:v1", "v1", true),
            ("quay.io/a:v1", "quay.io/a:v1", DIGEST, true),
            ("quay.io/a:v1", &both, DIGEST, true),
            ("quay.io/a:v1", &digest, DIGEST, false),
            ("quay.io/a:v1", "quay.io/a:v11", "v11", false),
            (&digest, &digest, DIGEST, true),
            (&digest, &both, DIGEST, true),
            (&digest, "quay.io/a:v1", DIGEST, true),
            (&digest, "quay.io/a:v1", "v1", false),
            ("quay.io", "QUAY.io:443/a:v1", "v1", true),
        ] {
            let rules = RegistryRules::default();
            let mut block = rule(prefix, &[]);
            block.is_blocked = true;
            rules.set(vec![block]);
            let found = rules.places(&reference.parse().unwrap(), version);
            assert_eq!(
                found.is_none(),
                is_blocked,
                "{prefix}: {reference} {version}"
            );
        }
    }

    /// Image, prefix, and the part of the image that it matches. The rows are facts about
    /// containers/image (`pkg/sysregistriesv2`).
    const MATCHES: &str = "
        docker.io                                *.io                        docker.io
        docker.io/foo                            *.com                       -
        example.com/foo                          *.co                        -
        example.com/foo/bar:baz                  *.com                       example.com
        sub.example.com:5000/foo                 *.example.com               sub.example.com
        another.example.com/foo                  **.example.com              -
        yet.another.example.com/foo/bar          *.another.example.com       yet.another.example.com
        another.example.com/namespace.com/a/b:c  *.example.com               another.example.com
        example.net/namespace-ends-in.com/a/b:c  *.com                       -
        another.example.com/namespace.com/a/b:c  *.namespace.com             -
        a.example.com.example.com/b              *.example.com               a.example.com.example.com
        a.example.com/foo@DIGEST                 *.example.com               a.example.com
        docker.io                                docker.io                   docker.io
        example.com:5000                         example.com:5000            example.com:5000
        example.com:5000                         example.com                 example.com
        example.com/foo/bar:baz                  example.com                 example.com
        example.com/foo                          *                           -
        docker.io                                docker.io/library           -
        docker.io/libraryy                       docker.io/library           -
        docker.io/library/busybox2               docker.io/library/busybox   -
        example.com/foo                          example.com/foo:bar         -
        example.com/foo:bar                      example.com/foo:bar         example.com/foo:bar
        example.com/foo:bar2                     example.com/foo:bar         -
        example.com/foo                          example.com/foo@DIGEST      -
        example.com/foo@DIGEST                   example.com/foo@DIGEST      example.com/foo@DIGEST
        example.com/foo@DIGEST                   example.com/foo@OTHER       -
        example.com/foo@DIGEST                   example.com/foo             example.com/foo
    ";

    #[test]
    fn matched_returns_length_of_the_prefix() {
        let matches = MATCHES.replace("OTHER", &DIGEST.replace('a', "b"));
        for row in matches.replace("DIGEST", DIGEST).trim().lines() {
            let [image, prefix, end] = row.split_whitespace().collect::<Vec<_>>()[..] else {
                panic!("{row}");
            };
            assert_eq!(
                matched(prefix, image).map_or("-", |end| &image[..end]),
                end,
                "{row}"
            );
        }
    }
}
