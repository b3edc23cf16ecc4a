//! Documents about single packages: their icons, and their versions with the days on which the
//! mirror first saw them, in the words of Renovate's custom datasource.
//!
//! Each has a second path, whose last part is a file: in a static tree the lines of a package are a
//! file, so nothing can lie below them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use bytes::Bytes;
use http::{HeaderValue, header};
use model::{
    CachePolicy, Encoding, Facts, SeenPackage, Sha256, ShardRef, Snapshot, StoredDocument,
};
use olm::{Channel, Icon, IconKind, Package, parse_version};
use reader::{BodyKey, MetaFilter, PublishedState, ReaderError};
use serde_json::{Map, Value, json};

use super::listing::{identity, list};
use crate::call::RouteCall;
use crate::error::ApiError;
use crate::payload::Payload;
use crate::representation::Representation;
use crate::rfc9110::Tag;

/// Policy of an icon that is opened by itself (W3C Content Security Policy 3): a script in an SVG
/// image does not run, and nothing is loaded.
const ICON_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// Maximum length of the line that is read for an icon, in bytes.
const ICON_LINE_MAX: u64 = 2 << 20;

/// Rows of a list that take as much memory as one package and the days of its catalog: 16 MiB.
const PACKAGE_ROWS: usize = 8 << 10;

/// Days of a whole catalog: `catalogs/{catalog}/days.json`.
///
/// A package has the day of its first bundle, and only the other days by the name of the bundle.
pub(super) async fn days(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let snapshot = state.snapshot().await?;
    let seen = snapshot
        .facts(SeenPackage::KIND)
        .ok_or(ApiError::NoDays)?
        .digest;
    let identity = identity("days", &[seen.sha256], "");
    let list = list(call, identity, PACKAGE_ROWS, || async {
        let days = call.days(&snapshot).await?;
        let packages: Map<String, Value> = days
            .packages
            .iter()
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, seen)| (name.clone(), compact(seen)))
            .collect();
        Ok(json!({"since": since(&days), "packages": packages}))
    });
    Ok(list.await?.dated(&call.app.head(&state)))
}

/// Returns the first day of a package, and the bundles with other days.
fn compact(seen: &SeenPackage) -> Value {
    let first = seen.bundles.values().min().cloned().unwrap_or_default();
    let later = seen.bundles.iter().filter(|(_, day)| **day != first);
    let later: Map<String, Value> = later
        .map(|(name, day)| (name.clone(), json!(day)))
        .collect();
    let mut compact = json!({"since": first});
    if !later.is_empty() {
        compact["later"] = later.into();
    }
    compact
}

fn since(days: &Facts<SeenPackage>) -> &str {
    days.packages.get("").map_or("", |all| &all.since)
}

/// Versions of all channels of a package.
pub(super) async fn package_versions(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let name = call.package_or_file(".json")?;
    versions(call, &name, None).await
}

/// Versions of one channel of a package, as Renovate's custom datasource reads them.
pub(super) async fn channel_versions(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let (package, channel) = match call.matched.params.get("channel") {
        Some(_) => (call.param("package"), call.param("channel").into_owned()),
        None => (call.param("package"), call.file(".json")?),
    };
    versions(call, &package, Some(&channel)).await
}

async fn versions(
    call: RouteCall<'_>,
    name: &str,
    channel: Option<&str>,
) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let snapshot = state.snapshot().await?;
    let shard = shard(&snapshot, name)?;
    let mut made_from = vec![shard.lines.sha256];
    made_from.extend(
        snapshot
            .facts
            .get(SeenPackage::KIND)
            .map(|seen| seen.sha256),
    );
    // The name of a channel cannot be taken for a document of the whole package.
    let kind = channel.map_or("package versions", |_| "channel versions");
    let identity = identity(kind, &made_from, channel.unwrap_or_default());
    let list = list(call, identity, PACKAGE_ROWS, || async {
        let read = call.app.read_package(Some(shard)).await?;
        let package = read.expect("a shard is read");
        let days = call.days(&snapshot).await?;
        let seen = days.packages.get(name).cloned().unwrap_or_default();
        let document = VersionsDocument {
            package,
            seen,
            since: since(&days).to_owned(),
        };
        let channel = channel.map(str::to_owned);
        let made = call
            .app
            .catalogs
            .run(shard.lines.size, move || document.make(channel.as_deref()));
        made.await.ok_or(ApiError::UnknownChannel)
    });
    Ok(list.await?.dated(&call.app.head(&state)))
}

/// Everything that a document of versions is made from.
struct VersionsDocument {
    package: Package,
    seen: SeenPackage,
    since: String,
}

impl VersionsDocument {
    /// Returns the document of one channel, or of all. `None` for an unknown channel.
    fn make(&self, channel: Option<&str>) -> Option<Value> {
        if let Some(name) = channel {
            let mut document = self.channel(name, self.package.channels.get(name)?);
            document["firstSeenSince"] = json!(self.since);
            return Some(document);
        }
        let channels = self.package.channels.iter();
        let channels: Map<String, Value> = channels
            .map(|(name, channel)| (name.clone(), self.channel(name, channel)))
            .collect();
        Some(json!({
            "defaultChannel": self.package.default_channel,
            "firstSeenSince": self.since,
            "channels": channels,
        }))
    }

    fn channel(&self, name: &str, channel: &Channel) -> Value {
        let package = &self.package;
        let is_whole = package.deprecation("olm.package", "").is_some()
            || package.deprecation("olm.channel", name).is_some();
        let mut bundles: Vec<(&String, &str)> = Vec::new();
        let mut versions = BTreeSet::new();
        for bundle in channel.entries.keys() {
            // Of several bundles with one version the first name counts.
            if let Some(version) = package.version_of(bundle)
                && versions.insert(version)
            {
                bundles.push((bundle, version));
            }
        }
        bundles.sort_by_cached_key(|(name, version)| Reverse((parse_version(version), *name)));
        let release = |(bundle, version): &(&String, &str)| {
            let is_deprecated = is_whole || package.deprecation("olm.bundle", bundle).is_some();
            let mut release =
                json!({"version": version, "isDeprecated": is_deprecated, "bundle": bundle});
            if let Some(day) = self.seen.bundles.get(*bundle) {
                release["releaseTimestamp"] = json!(format!("{day}T00:00:00.000Z"));
            }
            let image = package.bundles.get(*bundle).map(|found| &found.image);
            if let Some(image) = image.filter(|image| !image.is_empty()) {
                release["image"] = json!(image);
            }
            release
        };
        let mut document = json!({"releases": bundles.iter().map(release).collect::<Vec<_>>()});
        // The head is not always the highest version. OLM refuses a channel with several.
        if let [head] = *channel.heads()
            && let Some(version) = package.version_of(head)
        {
            document["tags"] = json!({"head": version});
        }
        document
    }
}

/// Icon of a package.
pub(super) async fn icon(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let (name, wanted) = call.icon_name()?;
    let state = call.state().await?;
    let snapshot = state.snapshot().await?;
    let shard = shard(&snapshot, &name)?;
    let identity = identity("icon", &[shard.lines.sha256], "");
    let key = BodyKey::Made(identity, Encoding::Identity);
    let icon = call
        .app
        .catalogs
        .body(&key, || call.read_icon(&state, &name));
    let bytes: Bytes = icon.await?;
    let kind = IconKind::of(&bytes).ok_or(ApiError::NoIcon)?;
    if wanted.is_some_and(|wanted| wanted != kind.extension()) {
        return Err(ApiError::NoIcon);
    }
    let encoding = match kind {
        IconKind::Svg => call.encoding_for(bytes.len() as u64)?,
        // The others are compressed.
        _ => Encoding::Identity,
    };
    let hash = Sha256::of(&bytes);
    let coded = call.coded(hash, encoding, || 0, || std::future::ready(Ok(bytes)));
    let payload = Payload::Bytes(coded.await?);
    let icon = Representation::new(Tag::of_made(hash, encoding), payload, CachePolicy::Pointer);
    let icon = icon.negotiated(encoding).dated(&call.app.head(&state));
    let icon = icon.with_type(kind.media_type());
    let icon = icon.with(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(ICON_POLICY),
    );
    Ok(icon.with(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ))
}

fn shard<'s>(snapshot: &'s Snapshot, name: &str) -> Result<&'s ShardRef, ApiError> {
    let shard = snapshot.package(name);
    Ok(shard.ok_or_else(|| ReaderError::UnknownPackage(name.to_owned()))?)
}

impl RouteCall<'_> {
    /// Returns the parameter of the second path, without the ending of the file.
    fn file(&self, ending: &str) -> Result<String, ApiError> {
        let file = self.param("file");
        let name = file.strip_suffix(ending).ok_or(ApiError::UnknownPath)?;
        Ok(name.to_owned())
    }

    fn package_or_file(&self, ending: &str) -> Result<String, ApiError> {
        match self.matched.params.get("package") {
            Some(_) => Ok(self.param("package").into_owned()),
            None => self.file(ending),
        }
    }

    /// Returns the package of an icon, and the ending of its file if the path has one.
    fn icon_name(&self) -> Result<(String, Option<String>), ApiError> {
        if self.matched.params.get("package").is_some() {
            return Ok((self.param("package").into_owned(), None));
        }
        let file = self.param("file");
        let (name, ending) = file.rsplit_once('.').ok_or(ApiError::UnknownPath)?;
        Ok((name.to_owned(), Some(ending.to_owned())))
    }

    /// Reads the days of a state; none of a state from before they were recorded.
    async fn days(&self, snapshot: &Snapshot) -> Result<Facts<SeenPackage>, ApiError> {
        let Some(object) = snapshot.facts(SeenPackage::KIND) else {
            return Ok(Facts::new(SeenPackage::VERSION));
        };
        let bytes = self.app.catalogs.object(&object).await?;
        let memory = 20 * object.digest.size;
        let catalogs = &self.app.catalogs;
        let parsed = catalogs
            .run(memory, move || Facts::from_stored(&bytes))
            .await;
        Ok(parsed.map_err(ReaderError::document(&object.key()))?)
    }

    /// Reads the icon of a package.
    async fn read_icon(&self, state: &PublishedState, name: &str) -> Result<Bytes, ApiError> {
        let filter = MetaFilter {
            schema: "olm.package".to_owned(),
            name: name.to_owned(),
            ..MetaFilter::default()
        };
        let lines = state.select(&filter).await?;
        if lines.length > ICON_LINE_MAX {
            return Err(ApiError::NoIcon);
        }
        let _memory = self.memory(4 * lines.length).await?;
        let line = self.app.catalogs.read_lines(&lines).await?;
        let first = line.split(|byte| *byte == b'\n').next();
        let icon = first.and_then(Icon::read).ok_or(ApiError::NoIcon)?;
        Ok(icon.bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use olm::PackageParser;

    use super::*;

    fn document(lines: &str, days: &[(&str, &str)]) -> VersionsDocument {
        let days = days.iter();
        VersionsDocument {
            package: PackageParser::parse(lines.as_bytes()),
            seen: SeenPackage {
                bundles: days
                    .map(|(name, day)| ((*name).to_owned(), (*day).to_owned()))
                    .collect(),
                ..SeenPackage::default()
            },
            since: "2026-11-01".to_owned(),
        }
    }

    const LINES: &str = r#"{"schema":"olm.package","name":"a","defaultChannel":"s"}
{"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a.v2","replaces":"a.v10"},{"name":"a.v10"},{"name":"a.v9"},{"name":"gone"}]}
{"schema":"olm.channel","package":"a","name":"heads","entries":[{"name":"a.v2"},{"name":"a.v10"}]}
{"schema":"olm.bundle","package":"a","name":"a.v2","image":"q.io/a@sha256:2","properties":[{"type":"olm.package","value":{"packageName":"a","version":"2.0.0"}}]}
{"schema":"olm.bundle","package":"a","name":"a.v9","properties":[{"type":"olm.package","value":{"packageName":"a","version":"9.0.0"}}]}
{"schema":"olm.bundle","package":"a","name":"a.v10","properties":[{"type":"olm.package","value":{"packageName":"a","version":"10.0.0"}}]}
{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"olm.bundle","name":"a.v9"},"message":"old"}]}
"#;

    #[test]
    fn channel_has_its_versions_newest_first_and_the_head_as_a_tag() {
        // Another entry is a head too.
        let lines = LINES.replace(r#"{"name":"a.v9"},{"name":"gone"}"#, r#"{"name":"a.v9"}"#);
        let lines = lines.replace(
            r#""replaces":"a.v10""#,
            r#""replaces":"a.v10","skips":["a.v9"]"#,
        );
        let found = document(&lines, &[("a.v2", "2026-11-03")]).make(Some("s"));
        let expected = json!({
            "releases": [
                {"version": "10.0.0", "isDeprecated": false, "bundle": "a.v10"},
                {"version": "9.0.0", "isDeprecated": true, "bundle": "a.v9"},
                {"version": "2.0.0", "isDeprecated": false, "bundle": "a.v2", "image": "q.io/a@sha256:2",
                    "releaseTimestamp": "2026-11-03T00:00:00.000Z"},
            ],
            "tags": {"head": "2.0.0"},
            "firstSeenSince": "2026-11-01",
        });
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn channel_with_several_heads_has_no_tag() {
        let found = document(LINES, &[]);
        for channel in ["s", "heads"] {
            assert!(
                found.make(Some(channel)).unwrap().get("tags").is_none(),
                "{channel}"
            );
        }
        assert_eq!(found.make(Some("none")), None);
        let all = found.make(None).unwrap();
        assert_eq!(all["defaultChannel"], "s");
        let channels = all["channels"].as_object().unwrap();
        assert!(channels.keys().eq(["heads", "s"]));
    }

    #[test]
    fn compact_days_name_only_bundles_of_other_days() {
        let days = [
            ("a", "2026-11-02"),
            ("b", "2026-11-02"),
            ("c", "2026-11-09"),
        ];
        let seen = document("", &days).seen;
        let expected = json!({"since": "2026-11-02", "later": {"c": "2026-11-09"}});
        assert_eq!(compact(&seen), expected);
    }
}
