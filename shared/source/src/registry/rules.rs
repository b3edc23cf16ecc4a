//! Rules for the place of a pull: mirrors of registries, and registries that must not be asked (containers-registries.conf(5)).

use std::sync::{Arc, PoisonError, RwLock};

use oci_client::Reference;

/// Rules for registries. Clones share them, and a change takes effect with the next question. Default: none.
#[derive(Debug, Clone, Default)]
pub struct RegistryRules(Arc<RwLock<Arc<[RegistryRule]>>>);

/// Rule for the repositories below one prefix. Of several prefixes the longest decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryRule {
    /// `HOST[:PORT][/PATH]`, or `*.DOMAIN[/PATH]` for the hosts below a domain.
    pub prefix: String,
    /// Text in place of the prefix. Default: the prefix itself.
    pub location: Option<String>,
    /// True if nothing below the prefix may be pulled.
    pub is_blocked: bool,
    /// Mirrors, in the order in which they are asked before the registry itself.
    pub mirrors: Vec<RegistryMirror>,
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
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rules.into();
    }

    /// Returns the places to ask for a reference; `None` if it is blocked.
    pub(crate) fn places(&self, reference: &Reference, by_digest: bool) -> Option<Places> {
        let rules = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        let name = format!("{}/{}", reference.registry(), reference.repository());
        let found = rules
            .iter()
            .filter_map(|rule| Some((rule, matched(&rule.prefix, &name)?)));
        let Some((rule, length)) = found.max_by_key(|(rule, _)| rule.prefix.len()) else {
            return Some(Places {
                mirrors: Vec::new(),
                registry: reference.clone(),
            });
        };
        if rule.is_blocked {
            return None;
        }
        let moved = |location: &String| moved(reference, &format!("{location}{}", &name[length..]));
        let is_asked = |mirror: &&RegistryMirror| if by_digest { mirror.for_digests } else { mirror.for_tags };
        let mirrors = rule.mirrors.iter().filter(is_asked);
        Some(Places {
            mirrors: mirrors.filter_map(|mirror| moved(&mirror.location)).collect(),
            registry: rule
                .location
                .as_ref()
                .and_then(moved)
                .unwrap_or_else(|| reference.clone()),
        })
    }
}

/// Returns the length of the beginning of `name` that a prefix stands for.
fn matched(prefix: &str, name: &str) -> Option<usize> {
    let length = match prefix.strip_prefix('*') {
        None => name.starts_with(prefix).then_some(prefix.len())?,
        Some(domain) => {
            let (start, host) = (name.find(domain)?, name.find('/')?);
            // A whole name below the domain, which is in the host.
            (start > 0 && start < host).then_some(start + domain.len())?
        }
    };
    let rest = &name[length..];
    (rest.is_empty() || rest.starts_with('/')).then_some(length)
}

/// Returns the reference with the same tag in `HOST/REPOSITORY`; `None` if that names no repository.
fn moved(reference: &Reference, place: &str) -> Option<Reference> {
    let (host, repository) = place.split_once('/')?;
    let tag = reference.tag().unwrap_or("latest").to_owned();
    (!host.is_empty() && !repository.is_empty())
        .then(|| Reference::with_tag(host.to_owned(), repository.to_owned(), tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(prefix: &str, mirrors: &[&str]) -> RegistryRule {
        let mirror = |location: &&str| RegistryMirror {
            location: (*location).to_owned(),
            for_tags: true,
            for_digests: true,
        };
        RegistryRule {
            prefix: prefix.to_owned(),
            location: None,
            is_blocked: false,
            mirrors: mirrors.iter().map(mirror).collect(),
        }
    }

    /// Returns the places of a reference, the registry itself last.
    fn places(rules: &RegistryRules, reference: &str, by_digest: bool) -> Vec<String> {
        let Places { mirrors, registry } = rules.places(&reference.parse().unwrap(), by_digest).unwrap();
        mirrors.iter().chain([&registry]).map(ToString::to_string).collect()
    }

    #[test]
    fn longest_prefix_at_a_boundary_decides() {
        let rules = RegistryRules::default();
        assert_eq!(places(&rules, "quay.io/a/b:v1", false), ["quay.io/a/b:v1"]);
        rules.set(vec![
            rule("quay.io", &["mirror.lab:5000/quay"]),
            rule("quay.io/a", &["first/a", "second.lab/x/y"]),
            rule("*.redhat.io", &["mirror.lab"]),
            rule("host.lab:5000/n", &["other.lab/m"]),
        ]);
        for (reference, expected) in [
            ("quay.io/c/b:v1", &["mirror.lab:5000/quay/c/b:v1", "quay.io/c/b:v1"][..]),
            (
                "quay.io/a/b:v1",
                &["first/a/b:v1", "second.lab/x/y/b:v1", "quay.io/a/b:v1"],
            ),
            ("quay.io/ab/b:v1", &["mirror.lab:5000/quay/ab/b:v1", "quay.io/ab/b:v1"]),
            ("quay.io:443/a/b:v1", &["quay.io:443/a/b:v1"]),
            (
                "registry.redhat.io/a/b:v1",
                &["mirror.lab/a/b:v1", "registry.redhat.io/a/b:v1"],
            ),
            ("redhat.io/a:v1", &["redhat.io/a:v1"]),
            ("lab/x.redhat.io/a:v1", &["docker.io/lab/x.redhat.io/a:v1"]),
            ("host.lab:5000/n:v1", &["other.lab/m:v1", "host.lab:5000/n:v1"]),
        ] {
            assert_eq!(places(&rules, reference, false), expected, "{reference}");
        }
    }

    #[test]
    fn mirror_may_be_for_digests_or_tags_alone() {
        let mut both = rule("quay.io", &["digests.lab", "tags.lab"]);
        both.mirrors[0].for_tags = false;
        both.mirrors[1].for_digests = false;
        let rules = RegistryRules::default();
        rules.set(vec![both]);
        assert_eq!(
            places(&rules, "quay.io/a:v1", true),
            ["digests.lab/a:v1", "quay.io/a:v1"]
        );
        assert_eq!(places(&rules, "quay.io/a:v1", false), ["tags.lab/a:v1", "quay.io/a:v1"]);
    }

    #[test]
    fn registry_may_be_elsewhere_or_blocked() {
        let rules = RegistryRules::default();
        let (mut elsewhere, mut blocked) = (rule("quay.io", &[]), rule("quay.io/bad", &[]));
        elsewhere.location = Some("internal.lab/q".to_owned());
        blocked.is_blocked = true;
        rules.set(vec![elsewhere, blocked]);
        assert_eq!(places(&rules, "quay.io/a/b:v1", true), ["internal.lab/q/a/b:v1"]);
        assert_eq!(rules.places(&"quay.io/bad/b:v1".parse().unwrap(), true), None);
    }
}
