//! Facts about a package, and the part of it that remains.

use std::collections::{BTreeMap, BTreeSet};

use olm::{Channel, DeprecationTarget, PackageParser, UnreadableMeta};

use crate::{ComposeError, error::too_large, kept_channel::KeptEntries};

/// Maximum memory for the outline of a package, in bytes. Those of real catalogs take a few
/// megabytes.
const OUTLINE_BYTES_MAX: usize = 128 << 20;

/// Memory of a channel entry, bundle or deprecation beside its names, in bytes.
const ENTRY_BYTES: usize = 200;

/// Memory of a name that an entry skips, in bytes.
const SKIP_BYTES: usize = 48;

/// Facts that selections and edits need about a package. They grow with the number of bundles and
/// entries, not with their content.
#[derive(Debug, Default)]
pub(crate) struct PackageOutline {
    pub(crate) default_channel: Option<String>,
    /// True if the package has an `olm.package`.
    pub(crate) has_package: bool,
    pub(crate) channels: BTreeMap<String, Channel>,
    /// Version of each bundle, as it is written.
    pub(crate) bundles: BTreeMap<String, Option<String>>,
    pub(crate) deprecated: BTreeSet<DeprecationTarget>,
    /// First document of OLM that does not fit its schema.
    unreadable: Option<UnreadableMeta>,
    /// Estimate of its memory.
    pub(crate) bytes: usize,
}

impl PackageOutline {
    pub(crate) fn add(&mut self, package: &str, line: &[u8]) -> Result<(), ComposeError> {
        let part = PackageParser::parse(line);
        if !part.package_lines.is_empty() {
            self.default_channel = part.default_channel;
            self.has_package = true;
        }
        for (name, channel) in part.channels {
            self.bytes += line.len();
            for entry in channel.entries.values() {
                self.bytes += ENTRY_BYTES + entry.skips.len() * SKIP_BYTES;
            }
            let known = self.channels.entry(name).or_default();
            known.entries.extend(channel.entries);
        }
        for (name, bundle) in part.bundles {
            self.bytes += name.len() + ENTRY_BYTES;
            self.bundles.insert(name, bundle.version);
        }
        for target in part.deprecations.into_keys() {
            self.bytes += target.name.len() + ENTRY_BYTES;
            self.deprecated.insert(target);
        }
        if self.unreadable.is_none() {
            self.unreadable = part.unreadable.into_iter().next();
        }
        if self.bytes > OUTLINE_BYTES_MAX {
            return Err(too_large(package, OUTLINE_BYTES_MAX));
        }
        Ok(())
    }

    /// Refuses a package with a document of OLM that does not fit its schema.
    pub(crate) fn check_readable(&self, package: &str) -> Result<(), String> {
        let Some(meta) = &self.unreadable else {
            return Ok(());
        };
        Err(format!(
            "package {package}: the {} {:?} cannot be read: {}",
            meta.schema, meta.name, meta.reason
        ))
    }
}

/// Part of a package that remains.
#[derive(Debug)]
pub(crate) struct Remaining<'a> {
    /// Name of the package.
    pub(crate) name: &'a str,
    /// The whole package.
    pub(crate) package: &'a PackageOutline,
    /// Default channel, if it differs from the one in the lines.
    pub(crate) default_channel: Option<&'a str>,
    pub(crate) channels: BTreeMap<&'a str, KeptEntries<'a>>,
    pub(crate) bundles: BTreeSet<&'a str>,
}

impl<'a> Remaining<'a> {
    /// Returns the whole package.
    pub(crate) fn all(name: &'a str, package: &'a PackageOutline) -> Self {
        let mut channels = BTreeMap::new();
        for (name, channel) in &package.channels {
            let entries = channel.entries.keys().map(String::as_str);
            channels.insert(name.as_str(), entries.collect());
        }
        Self {
            name,
            package,
            default_channel: None,
            channels,
            bundles: package.bundles.keys().map(String::as_str).collect(),
        }
    }

    /// Returns true if each line stays as it is.
    pub(crate) fn is_whole(&self) -> bool {
        for (name, channel) in &self.package.channels {
            let kept = self.channels.get(name.as_str());
            if kept.is_none_or(|kept| kept.len() != channel.entries.len()) {
                return false;
            }
        }
        for name in self.package.bundles.keys() {
            if !self.bundles.contains(name.as_str()) {
                return false;
            }
        }
        for target in &self.package.deprecated {
            if !self.has_target(&target.schema, &target.name) {
                return false;
            }
        }
        self.default_channel.is_none()
    }

    /// Returns true if the target of a deprecation remains.
    pub(crate) fn has_target(&self, schema: &str, name: &str) -> bool {
        match schema {
            "olm.channel" => self.channels.contains_key(name),
            "olm.bundle" => self.bundles.contains(name),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outline_accepts_exactly_its_memory() {
        let add = |bytes| {
            let mut outline = PackageOutline {
                bytes,
                ..PackageOutline::default()
            };
            outline.add(
                "p",
                br#"{"name":"p.v1","package":"p","schema":"olm.bundle"}"#,
            )
        };
        let most = OUTLINE_BYTES_MAX - ENTRY_BYTES - "p.v1".len();
        add(most).unwrap();
        let error = add(most + 1).unwrap_err().to_string();
        assert!(
            error.starts_with("package p: names, versions and requirements exceed 134217728 bytes"),
            "{error}"
        );
    }
}
