use std::collections::{HashMap, HashSet};

use model::is_dns_label;
use work::OverBudget;

use super::channel::check_channel;
use super::schemas::{BUNDLE, CHANNEL, DEPRECATIONS, META, PACKAGE};
use super::shape::decode;
use super::value::{Value, ValueBudget};
use super::{Place, Report, Rule, ShardValidator, quoted};
use crate::{LIFECYCLES, Lifecycle};

/// End of nearly every line of a bundle, whose last field is its schema.
///
/// A line that ends so is a bundle for certain: quotes within a text are escaped, an inner object
/// ends before the last brace, and of several spellings of the name this one is the last.
const BUNDLE_END: &[u8] = br#","schema":"olm.bundle"}"#;

/// Content of an `olm.bundle` that is compared with other documents.
pub(super) struct BundleFacts {
    line: usize,
    name: String,
    /// Version and release, if they are valid.
    version: Option<String>,
}

/// Number and bytes of a line.
pub(super) type StoredLine = (usize, Vec<u8>);

impl ShardValidator {
    /// Checks what one line says by itself, and keeps what other lines must fit to.
    pub(super) fn line(&mut self, line: &[u8], report: &mut Report<'_>) {
        self.lines += 1;
        let place = Place::new(self.lines, "", "");
        if line.ends_with(BUNDLE_END) {
            self.counts.known += 1;
            return self.bundle(line, place, report);
        }
        // Wrong types of these fields are reported with the schema's other fields.
        let header = header(line);
        match header.text("schema") {
            "olm.package" => {
                let decoded = decode(line, &PACKAGE, &mut ValueBudget::new(line.len()));
                let package = report.decoded(decoded, place);
                self.package(&package, place, report);
            }
            "olm.channel" => self.channels.push((place.line, line.to_vec())),
            "olm.deprecations" => self.deprecations.push((place.line, line.to_vec())),
            "olm.bundle" => self.bundle(line, place, report),
            "" => return report.add(Rule::SchemaMissing, place, ""),
            other => {
                self.counts
                    .add_other(model::text::line(other, super::TEXT_CHARS), 1);
                let package = header.text("package");
                if !is_cache_key(other) || !(package.is_empty() || is_cache_key(package)) {
                    report.add(Rule::SchemaNameInvalid, place, &quoted(other));
                }
                if other == LIFECYCLES {
                    self.lifecycle(line, place, report);
                }
                return;
            }
        }
        self.counts.known += 1;
    }

    /// Checks a bundle. Most bytes of a catalog are bundles, so their lines are decoded only once.
    fn bundle(&mut self, line: &[u8], place: Place<'_>, report: &mut Report<'_>) {
        let decoded = decode(line, &BUNDLE, &mut ValueBudget::new(line.len()));
        let name = match &decoded.0 {
            Value::Absent => header(line).text("name").to_owned(),
            bundle => bundle.text("name").to_owned(),
        };
        let place = Place {
            bundle: &name,
            ..place
        };
        let bundle = report.decoded(decoded, place);
        self.bundles.push(BundleFacts {
            line: place.line,
            name: bundle.text("name").to_owned(),
            version: self.check_bundle(&bundle, place, report),
        });
    }

    fn lifecycle(&mut self, line: &[u8], place: Place<'_>, report: &mut Report<'_>) {
        report.require(!self.has_lifecycle, Rule::LifecycleDuplicate, place);
        self.has_lifecycle = true;
        match serde_json::from_slice::<Lifecycle>(line) {
            Ok(lifecycle) => lifecycle
                .faults()
                .iter()
                .for_each(|(rule, detail)| report.add(*rule, place, detail)),
            Err(error) => report.add(Rule::LifecycleInvalid, place, &error.to_string()),
        }
    }

    fn package(&mut self, package: &Value<'_>, place: Place<'_>, report: &mut Report<'_>) {
        let name = package.text("name");
        if name.is_empty() {
            report.add(Rule::PackageNameMissing, place, "");
        } else if name != self.name {
            report.add(Rule::PackageFieldDiffers, place, &quoted(name));
        } else if !is_dns_label(name) {
            report.add(Rule::PackageNameInvalid, place, &quoted(name));
        }
        if let Some((first, _)) = self.definitions.first() {
            report.add(
                Rule::PackageDuplicate,
                place,
                &format!("first in line {first}"),
            );
        }
        if let Some(reason) = icon_error(package.field("icon")) {
            report.add(Rule::IconInvalid, place, reason);
        }
        self.definitions
            .push((place.line, package.text("defaultChannel").to_owned()));
    }

    /// Checks the documents against each other.
    pub(super) fn check_all(&self, report: &mut Report<'_>) -> Result<(), OverBudget> {
        let work = &self.budget;
        let bundles: HashSet<&str> = self
            .bundles
            .iter()
            .map(|bundle| bundle.name.as_str())
            .collect();
        let is_defined = !self.definitions.is_empty();
        // All channels are held at a time, so they share one budget.
        let bytes = self.channels.iter().map(|(_, bytes)| bytes.len());
        let mut budget = ValueBudget::new(bytes.sum());
        let mut read: Vec<(usize, Value<'_>)> = Vec::with_capacity(self.channels.len());
        for (line, bytes) in &self.channels {
            work.charge_bytes(bytes.len())?;
            // Fields of the wrong type are reported under the name of the channel.
            let header = header(bytes);
            let place = Place::new(*line, header.text("name"), "");
            let decoded = decode(bytes, &CHANNEL, &mut budget);
            read.push((*line, report.decoded(decoded, place)));
        }
        let mut channels: HashSet<&str> = HashSet::new();
        let mut entries: HashSet<&str> = HashSet::new();
        for (line, channel) in &read {
            let name = channel.text("name");
            let place = Place::new(*line, name, "");
            report.require(is_defined, Rule::ChannelPackageUnknown, place);
            report.require(channels.insert(name), Rule::ChannelDuplicate, place);
            work.charge(channel.list("entries").len() as u64)?;
            check_channel(channel, place, &bundles, &mut entries, report);
        }
        if let Some((line, default)) = self.definitions.first() {
            // An empty name gives the place of the package.
            let place = Place::new(*line, default, "");
            let is_named = !default.is_empty();
            report.require(
                !channels.is_empty(),
                Rule::PackageNoChannel,
                Place::new(*line, "", ""),
            );
            report.require(is_named, Rule::DefaultChannelMissing, place);
            let is_known = channels.contains(default.as_str());
            report.require(!is_named || is_known, Rule::DefaultChannelUnknown, place);
        }
        work.charge(self.bundles.len() as u64)?;
        self.check_bundles(is_defined, &entries, report);
        for (_, bytes) in &self.deprecations {
            work.charge_bytes(bytes.len())?;
        }
        self.check_deprecations(is_defined, &channels, &bundles, report);
        Ok(())
    }

    fn check_bundles(&self, is_defined: bool, entries: &HashSet<&str>, report: &mut Report<'_>) {
        let has_package = !self.name.is_empty();
        let mut names = HashSet::new();
        let mut versions: HashMap<&str, &str> = HashMap::new();
        for bundle in &self.bundles {
            let place = Place::new(bundle.line, "", &bundle.name);
            report.require(has_package, Rule::BundlePackageMissing, place);
            report.require(
                !has_package || is_defined,
                Rule::BundlePackageUnknown,
                place,
            );
            report.require(
                names.insert(bundle.name.as_str()),
                Rule::BundleDuplicate,
                place,
            );
            let is_entry = entries.contains(bundle.name.as_str());
            report.require(!is_defined || is_entry, Rule::BundleNoChannel, place);
            let Some(version) = &bundle.version else {
                continue;
            };
            match versions.get(version.as_str()) {
                Some(other) if *other != bundle.name => {
                    let detail = format!("{version} as {}", quoted(other));
                    report.add(Rule::VersionDuplicate, place, &detail);
                }
                _ => drop(versions.insert(version, &bundle.name)),
            }
        }
    }

    fn check_deprecations(
        &self,
        is_defined: bool,
        channels: &HashSet<&str>,
        bundles: &HashSet<&str>,
        report: &mut Report<'_>,
    ) {
        for (number, (line, bytes)) in self.deprecations.iter().enumerate() {
            let place = Place::new(*line, "", "");
            let has_package = !self.name.is_empty();
            let decoded = decode(bytes, &DEPRECATIONS, &mut ValueBudget::new(bytes.len()));
            let deprecations = report.decoded(decoded, place);
            report.require(has_package, Rule::DeprecationsPackageMissing, place);
            report.require(
                !has_package || is_defined,
                Rule::DeprecationsPackageUnknown,
                place,
            );
            report.require(number == 0, Rule::DeprecationsDuplicate, place);
            let mut targets = HashSet::new();
            for (at, entry) in deprecations.list("entries").iter().enumerate() {
                let reference = entry.field("reference");
                let schema = reference.text("schema");
                let name = reference.text("name");
                let (place, exists) = match schema {
                    "olm.bundle" => (
                        Place {
                            bundle: name,
                            ..place
                        },
                        bundles.contains(name),
                    ),
                    "olm.channel" => (
                        Place {
                            channel: name,
                            ..place
                        },
                        channels.contains(name),
                    ),
                    _ => (place, true),
                };
                let detail = format!("entries[{at}]: {} {}", quoted(schema), quoted(name));
                let mut add = |rule| report.add(rule, place, &detail);
                match schema {
                    "" => add(Rule::DeprecationSchemaMissing),
                    "olm.package" if !name.is_empty() => add(Rule::DeprecationPackageNamed),
                    "olm.package" | "olm.channel" | "olm.bundle" => {}
                    _ => add(Rule::DeprecationSchemaUnknown),
                }
                if is_defined && !exists {
                    add(Rule::DeprecationTargetMissing);
                }
                if !targets.insert((schema, name)) {
                    add(Rule::DeprecationDuplicate);
                }
                if entry.text("message").is_empty() {
                    add(Rule::DeprecationMessageMissing);
                }
            }
        }
    }
}

/// Returns the fields that every Meta may have; none if the line cannot be decoded.
fn header(line: &[u8]) -> Value<'_> {
    decode(line, &META, &mut ValueBudget::new(0)).0
}

/// Returns true for a text that `opm serve` accepts as a part of a key of its cache:
/// `^[a-zA-Z0-9][a-zA-Z0-9._-]*$`.
pub fn is_cache_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Returns the reason for which an icon cannot be shown.
fn icon_error(icon: &Value<'_>) -> Option<&'static str> {
    if icon.is_absent() {
        return None;
    }
    let Value::Bytes(data) = icon.field("base64data") else {
        return Some("it has no data");
    };
    let fits = match icon.text("mediatype") {
        "" => return Some("it has no media type"),
        "image/png" => data.starts_with(b"\x89PNG"),
        "image/jpeg" | "image/jpg" => data.starts_with(b"\xff\xd8\xff"),
        "image/gif" => data.starts_with(b"GIF8"),
        // An SVG may begin with comments of any length.
        "image/svg+xml" => data.windows(4).any(|window| window == b"<svg"),
        _ => true,
    };
    (!fits).then_some("the data does not have the media type")
}
