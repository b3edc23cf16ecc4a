//! Answers to the methods of the registry API, with the texts of opm where there is none.
//!
//! opm keeps packages, channels and bundles in maps, so most of its streams have no order. Here all
//! are sorted by name.

use std::{iter::repeat_n, sync::Arc};

use olm::parse_version;
use prost::Message;

use super::api::{
    ApiChannel, ApiChannelEntry, ApiPackage, CustomSchemasRequest, GetBundleRequest,
    GetReplacementRequest, GroupVersionKind,
};
use super::json::go_quoted;
use super::record::{ApiIndex, BundleRecord, ChannelRecord, EntryRecord, LineRange, PackageRecord};
use crate::AnswerError;

/// APIs that a bundle provides: one field of its message.
#[derive(Clone, PartialEq, Eq, Message)]
struct ProvidedApis {
    #[prost(message, repeated, tag = "7")]
    apis: Vec<GroupVersionKind>,
}

/// Entry of a channel of a Package.
#[derive(Debug, Clone, Copy)]
pub struct BundlePlace<'i> {
    /// Package that has the channel.
    pub package: &'i Arc<PackageRecord>,
    pub(super) channel: &'i ChannelRecord,
    /// Entry of the channel, which names the bundle.
    pub entry: &'i EntryRecord,
}

impl<'i> BundlePlace<'i> {
    /// Returns the bundle of the entry.
    pub fn bundle(&self) -> &'i BundleRecord {
        &self.package.bundles[self.entry.bundle]
    }

    fn replacing(&self, replaces: &str) -> ApiChannelEntry {
        ApiChannelEntry {
            package_name: self.package.name.clone(),
            channel_name: self.channel.name.clone(),
            bundle_name: self.bundle().name.clone(),
            replaces: replaces.to_owned(),
        }
    }

    fn provides(&self, api: &GroupVersionKind) -> bool {
        let provided = ProvidedApis::decode(self.bundle().apis.as_slice());
        provided.is_ok_and(|provided| provided.apis.contains(api))
    }

    /// Returns the entry, and once more for each skip that counts.
    fn with_skips(self, counts: impl Fn(&str) -> bool) -> impl Iterator<Item = ApiChannelEntry> {
        let replaces = &self.entry.replaces;
        let skips = self.entry.skips.iter();
        let skips = skips.filter(move |skip| *skip != replaces && counts(skip));
        let replaced = std::iter::once(replaces).chain(skips);
        replaced.map(move |replaces| self.replacing(replaces))
    }

    fn is_head(&self) -> bool {
        std::ptr::eq(self.entry, &self.channel.entries[self.channel.head])
    }

    fn is_in_channel(&self, bundle: &str) -> bool {
        let bundles = &self.package.bundles;
        let mut entries = self.channel.entries.iter();
        entries.any(|entry| bundles[entry.bundle].name == bundle)
    }
}

impl PackageRecord {
    fn channel(
        self: &Arc<Self>,
        name: &str,
    ) -> Result<impl Iterator<Item = BundlePlace<'_>>, AnswerError> {
        let channel = self.channels.iter().find(|channel| channel.name == name);
        let channel = channel.ok_or_else(|| {
            let [package, channel] = [&self.name, name].map(go_quoted);
            AnswerError::NotFound(format!("package {package}, channel {channel} not found"))
        })?;
        Ok(entries_of(self, channel))
    }
}

fn entries_of<'i>(
    package: &'i Arc<PackageRecord>,
    channel: &'i ChannelRecord,
) -> impl Iterator<Item = BundlePlace<'i>> {
    channel.entries.iter().map(move |entry| BundlePlace {
        package,
        channel,
        entry,
    })
}

impl ApiIndex {
    /// Answers `ListPackages`.
    pub fn list_packages(&self) -> impl Iterator<Item = String> {
        self.packages().map(|record| record.name.clone())
    }

    /// Answers `GetPackage`.
    ///
    /// # Errors
    /// Fails if there is no such package.
    pub fn get_package(&self, name: &str) -> Result<ApiPackage, AnswerError> {
        let record = self.package(name)?;
        let channels = record.channels.iter().map(|channel| ApiChannel {
            name: channel.name.clone(),
            csv_name: record.bundles[channel.entries[channel.head].bundle]
                .name
                .clone(),
            deprecation: channel.deprecation.clone(),
        });
        Ok(ApiPackage {
            channels: channels.collect(),
            name: record.name.clone(),
            default_channel_name: record.default_channel.clone(),
            deprecation: record.deprecation.clone(),
        })
    }

    /// Answers `GetBundle`.
    ///
    /// # Errors
    /// Fails if there is no such package, channel or bundle.
    pub fn get_bundle(&self, request: &GetBundleRequest) -> Result<BundlePlace<'_>, AnswerError> {
        let mut entries = self
            .package(&request.pkg_name)?
            .channel(&request.channel_name)?;
        let found = entries.find(|entry| entry.bundle().name == request.csv_name);
        found.ok_or_else(|| {
            let names = [&request.pkg_name, &request.channel_name, &request.csv_name];
            let [package, channel, bundle] = names.map(|name| go_quoted(name));
            AnswerError::NotFound(format!(
                "package {package}, channel {channel}, bundle {bundle} not found"
            ))
        })
    }

    /// Answers `GetBundleForChannel` with the head of the channel.
    ///
    /// # Errors
    /// Fails if there is no such package or channel.
    pub fn get_bundle_for_channel(
        &self,
        request: &GetBundleRequest,
    ) -> Result<BundlePlace<'_>, AnswerError> {
        let mut entries = self
            .package(&request.pkg_name)?
            .channel(&request.channel_name)?;
        let head = entries.find(BundlePlace::is_head);
        head.ok_or_else(|| AnswerError::NotFound("the channel has no head".to_owned()))
    }

    /// Answers `GetChannelEntriesThatReplace`: entries of all packages that replace or skip the
    /// bundle.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get_channel_entries_that_replace(
        &self,
        name: &str,
    ) -> Result<impl Iterator<Item = ApiChannelEntry>, AnswerError> {
        let found = self.entries().flat_map(move |found| {
            let EntryRecord {
                replaces, skips, ..
            } = found.entry;
            let skips = skips
                .iter()
                .filter(|skip| *skip == name && *skip != replaces);
            let count = usize::from(replaces == name) + skips.count();
            repeat_n(found, count).map(|found| found.replacing(&found.entry.replaces))
        });
        not_empty(found, || {
            format!("no channel entries found that replace {name}")
        })
    }

    /// Answers `GetBundleThatReplaces`. opm takes any of several; here the one with the highest
    /// version is taken.
    ///
    /// # Errors
    /// Fails if there is no such package or channel, or if no entry replaces or skips the bundle.
    pub fn get_bundle_that_replaces(
        &self,
        request: &GetReplacementRequest,
    ) -> Result<BundlePlace<'_>, AnswerError> {
        let Some(package) = self.find_package(&request.pkg_name) else {
            // opm has no quotes in this text only.
            let text = format!("package {} not found", request.pkg_name);
            return Err(AnswerError::NotFound(text));
        };
        let replaced = &request.csv_name;
        let found = package.channel(&request.channel_name)?.filter(|found| {
            found.entry.replaces == *replaced || found.entry.skips.contains(replaced)
        });
        // What is no version is lower.
        let highest = found.max_by_key(|found| parse_version(&found.bundle().version));
        highest.ok_or_else(|| {
            let [package, channel] =
                [&request.pkg_name, &request.channel_name].map(|name| go_quoted(name));
            AnswerError::NotFound(format!(
                "no entry found for package {package}, channel {channel}"
            ))
        })
    }

    /// Answers `GetChannelEntriesThatProvide`: for each bundle that provides the API one entry, and
    /// one for each skip.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get_channel_entries_that_provide(
        &self,
        api: &GroupVersionKind,
    ) -> Result<impl Iterator<Item = ApiChannelEntry>, AnswerError> {
        let providers = self.entries().filter(|found| found.provides(api));
        let found = providers.flat_map(|found| found.with_skips(|_| true));
        not_empty(found, || {
            no_provider("no channel entries found that provide", api)
        })
    }

    /// Answers `GetLatestChannelEntriesThatProvide`: the same for the heads of channels, without
    /// skips to other channels.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get_latest_channel_entries_that_provide(
        &self,
        api: &GroupVersionKind,
    ) -> Result<impl Iterator<Item = ApiChannelEntry>, AnswerError> {
        let heads = self
            .entries()
            .filter(|found| found.is_head() && found.provides(api));
        let found = heads.flat_map(|head| head.with_skips(move |skip| head.is_in_channel(skip)));
        not_empty(found, || {
            no_provider("no channel entries found that provide", api)
        })
    }

    /// Answers `GetDefaultBundleThatProvides`: the head of the default channel of the first package
    /// that provides the API there.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get_default_bundle_that_provides(
        &self,
        api: &GroupVersionKind,
    ) -> Result<BundlePlace<'_>, AnswerError> {
        let is_default =
            |found: &BundlePlace<'_>| found.channel.name == found.package.default_channel;
        let mut heads = self
            .entries()
            .filter(|found| is_default(found) && found.is_head());
        if let Some(found) = heads.find(|head| head.provides(api)) {
            return Ok(found);
        }
        // The text depends on whether another channel provides it.
        drop(self.get_latest_channel_entries_that_provide(api)?);
        Err(AnswerError::NotFound(no_provider(
            "no entry found that provides",
            api,
        )))
    }

    /// Returns one bundle for each package, channel and entry, as `ListBundles` lists them.
    pub fn entries(&self) -> impl Iterator<Item = BundlePlace<'_>> {
        self.packages().flat_map(|package| {
            let channels = package.channels.iter();
            channels.flat_map(move |channel| entries_of(package, channel))
        })
    }

    /// Answers `ExperimentalListPackageCustomSchemas` with the positions of lines in the Shard of
    /// the package. Each becomes a message by [`meta_struct`](super::meta_struct()).
    ///
    /// # Errors
    /// Fails if a name is not valid.
    pub fn list_custom_schemas(
        &self,
        request: &CustomSchemasRequest,
    ) -> Result<&[LineRange], AnswerError> {
        let CustomSchemasRequest {
            schema,
            package_name,
        } = request;
        if schema.is_empty() {
            return Err(AnswerError::InvalidArgument(
                "schema is required".to_owned(),
            ));
        }
        check_name("schema", schema)?;
        if !package_name.is_empty() {
            check_name("packageName", package_name)?;
        }
        let found = self
            .record(package_name)
            .and_then(|record| record.customs.get(schema));
        Ok(found.map_or(&[], Vec::as_slice))
    }

    fn find_package(&self, name: &str) -> Option<&Arc<PackageRecord>> {
        self.record(name)
            .filter(|record| record.package_line.is_some())
    }

    fn package(&self, name: &str) -> Result<&Arc<PackageRecord>, AnswerError> {
        self.find_package(name)
            .ok_or_else(|| AnswerError::NotFound(format!("package {} not found", go_quoted(name))))
    }
}

/// Returns the entries, or the error if there is none.
fn not_empty<I: Iterator>(
    found: I,
    text: impl FnOnce() -> String,
) -> Result<std::iter::Peekable<I>, AnswerError> {
    let mut found = found.peekable();
    match found.peek() {
        Some(_) => Ok(found),
        None => Err(AnswerError::NotFound(text())),
    }
}

fn no_provider(text: &str, api: &GroupVersionKind) -> String {
    let [group, version, kind] = [&api.group, &api.version, &api.kind].map(|name| go_quoted(name));
    format!("{text} group:{group} version:{version} kind:{kind}")
}

/// Checks a name as opm does, which makes paths of them.
fn check_name(what: &str, name: &str) -> Result<(), AnswerError> {
    if olm::is_cache_key(name) {
        return Ok(());
    }
    Err(AnswerError::InvalidArgument(format!(
        "invalid custom schema query: invalid {what} {}: must match ^[a-zA-Z0-9][a-zA-Z0-9._-]*$",
        go_quoted(name)
    )))
}
