use std::borrow::Cow;

use model::{Sha256, text::LineBuffer};
use serde::Deserialize;

use crate::{
    Bundle, BundleFields, ChannelEntry, DeprecationTarget, LIFECYCLES, Package, RelatedImage,
    UnreadableMeta,
};

/// Parser of the lines of one Shard, which may come in chunks of any size.
///
/// It keeps the hash of each line and the few fields that matter, so a Package of any size takes
/// little memory.
///
/// ```
/// use olm::PackageParser;
///
/// let mut parser = PackageParser::default();
/// parser.push(b"{\"defaultChannel\":\"stable\",\"na");
/// parser.push(b"me\":\"db\",\"schema\":\"olm.package\"}\n");
/// assert_eq!(parser.finish().default_channel.as_deref(), Some("stable"));
/// ```
#[derive(Debug, Default)]
pub struct PackageParser {
    package: Package,
    lines: LineBuffer,
}

/// Fields that every Meta may have.
#[derive(Default, Deserialize)]
struct MetaHeader<'a> {
    #[serde(borrow, default)]
    schema: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

/// Fields of an `olm.package` that matter here.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmPackage {
    pub(crate) default_channel: Option<String>,
    pub(crate) description: Option<String>,
}

impl OlmPackage {
    /// Returns the name of the default channel; empty if there is none.
    pub(crate) fn default_channel(&self) -> &str {
        self.default_channel.as_deref().unwrap_or_default()
    }
}

/// Entries of an `olm.channel` or of an `olm.deprecations`.
#[derive(Deserialize)]
struct OlmEntries<E> {
    entries: Option<Vec<E>>,
}

/// Entry of an `olm.channel`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OlmEntry {
    name: String,
    replaces: Option<String>,
    skips: Option<Vec<String>>,
    skip_range: Option<String>,
}

/// Entry of an `olm.deprecations`.
#[derive(Deserialize)]
struct OlmDeprecation {
    reference: DeprecationTarget,
    message: Option<String>,
}

impl PackageParser {
    /// Parses a whole Shard that is in memory.
    pub fn parse(lines: &[u8]) -> Package {
        let mut reader = Self::default();
        reader.push(lines);
        reader.finish()
    }

    /// Adds the next bytes, which may start or end within a line.
    pub fn push(&mut self, chunk: &[u8]) {
        self.lines.push(chunk, |line| self.package.line(line));
    }

    /// Returns the Package. A last line without a newline counts too.
    pub fn finish(mut self) -> Package {
        self.lines.finish(|line| self.package.line(line));
        // Sorted, so that the order of lines of other schemas does not count as a change of their
        // content.
        self.package
            .others
            .values_mut()
            .for_each(|lines| lines.sort_unstable());
        self.package
    }
}

impl Package {
    /// Adds one line. A line that does not fit its schema is kept by its hash, so that no
    /// difference is lost.
    fn line(&mut self, line: &[u8]) {
        let hash = Sha256::of(line);
        // A line that is not JSON has an empty header and is kept by its hash.
        let header: MetaHeader<'_> = serde_json::from_slice(line).unwrap_or_default();
        if let Err(error) = self.read(&header, line, hash) {
            self.other(&header.schema, hash);
            self.unreadable.push(UnreadableMeta {
                schema: header.schema.into_owned(),
                name: header.name.into_owned(),
                reason: error.to_string(),
            });
        }
    }

    fn other(&mut self, schema: &str, hash: Sha256) {
        self.others.entry(schema.to_owned()).or_default().push(hash);
    }

    fn read(
        &mut self,
        header: &MetaHeader<'_>,
        line: &[u8],
        hash: Sha256,
    ) -> serde_json::Result<()> {
        match &*header.schema {
            "olm.package" => {
                let read: OlmPackage = serde_json::from_slice(line)?;
                // Of several `olm.package`, which OLM refuses, the last one counts.
                self.default_channel = read.default_channel;
                self.package_lines.push(hash);
            }
            "olm.channel" => self.read_channel(&header.name, line, hash)?,
            "olm.bundle" => self.read_bundle(&header.name, line, hash)?,
            "olm.deprecations" => {
                let read: OlmEntries<OlmDeprecation> = serde_json::from_slice(line)?;
                self.deprecation_lines.push(hash);
                let entries = read.entries.into_iter().flatten();
                let messages =
                    entries.map(|entry| (entry.reference, entry.message.unwrap_or_default()));
                self.deprecations.extend(messages);
            }
            schema => {
                if schema == LIFECYCLES {
                    self.lifecycles
                        .extend(str::from_utf8(line).map(str::to_owned));
                }
                self.other(schema, hash);
            }
        }
        Ok(())
    }

    fn read_channel(&mut self, name: &str, line: &[u8], hash: Sha256) -> serde_json::Result<()> {
        let read: OlmEntries<OlmEntry> = serde_json::from_slice(line)?;
        let channel = self.channels.entry(name.to_owned()).or_default();
        channel.lines.push(hash);
        for entry in read.entries.into_iter().flatten() {
            let updates = ChannelEntry {
                replaces: entry.replaces.filter(|name| !name.is_empty()),
                skips: entry.skips.into_iter().flatten().collect(),
                skip_range: entry.skip_range.filter(|range| !range.is_empty()),
            };
            channel.entries.insert(entry.name, updates);
        }
        Ok(())
    }

    fn read_bundle(&mut self, name: &str, line: &[u8], hash: Sha256) -> serde_json::Result<()> {
        let read: BundleFields<'_> = serde_json::from_slice(line)?;
        let bundle: &mut Bundle = self.bundles.entry(name.to_owned()).or_default();
        bundle.lines.push(hash);
        bundle.version = read.version();
        for property in read.properties.iter().flatten() {
            bundle.max_openshift.extend(property.max_openshift());
            bundle
                .requires
                .extend(property.requirement().map(Into::into));
            bundle.provides.extend(property.provided());
        }
        bundle.image = read.image.unwrap_or_default();
        let images = read.related_images.into_iter().flatten();
        // A related image without a reference names nothing that could be pulled.
        bundle.related_images.extend(images.filter_map(|image| {
            let reference = image.image.filter(|image| !image.is_empty())?;
            let name = image.name.unwrap_or_default();
            Some(RelatedImage { name, reference })
        }));
        Ok(())
    }
}
