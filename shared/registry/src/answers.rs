//! Answers to the methods of the registry API, with the texts of opm where there is none.
//!
//! opm keeps packages, channels and bundles in maps, so most of its streams have no order. Here all are sorted by name.

use std::sync::Arc;

use prost::Message;
use semver::Version;

use crate::{
    BundleQuery, Graph, ListedBundle, PackageRecord, RegistryError,
    api::{
        ApiChannel, ApiChannelEntry, ApiPackage, CustomSchemasRequest, GetBundleInChannelRequest, GetBundleRequest,
        GetReplacementRequest, GroupVersionKind, PackageName, ProvidersRequest,
    },
    json::go_quoted,
    record::{BundleRecord, ChannelRecord, EntryRecord, LineRange},
};

/// APIs that a bundle provides: one field of an [`ApiBundle`](crate::ApiBundle).
#[derive(Clone, PartialEq, Eq, Message)]
struct ProvidedApis {
    #[prost(message, repeated, tag = "7")]
    apis: Vec<GroupVersionKind>,
}

/// Version of a bundle: one field of an [`ApiBundle`](crate::ApiBundle).
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct BundleVersion {
    #[prost(string, tag = "9")]
    pub(crate) version: String,
}

impl Graph {
    /// Answers `ListPackages`.
    pub fn list_packages(&self) -> impl Iterator<Item = Result<PackageName, RegistryError>> {
        self.packages().map(|record| Ok(PackageName { name: record?.name }))
    }

    /// Answers `GetPackage`.
    ///
    /// # Errors
    /// Fails if there is no such package.
    pub fn get_package(&self, name: &str) -> Result<ApiPackage, RegistryError> {
        let record = self.package(name)?;
        let channels = record.channel_heads().map(|channel| {
            let channel = channel?;
            Ok(ApiChannel {
                name: channel.name,
                csv_name: channel.head,
                deprecation: channel.deprecation,
            })
        });
        Ok(ApiPackage {
            channels: channels.collect::<Result<_, RegistryError>>()?,
            name: record.name,
            default_channel_name: record.default_channel,
            deprecation: record.deprecation,
        })
    }

    /// Answers `GetBundle`.
    ///
    /// # Errors
    /// Fails if there is no such package, channel or bundle.
    pub fn get_bundle(&self, request: &GetBundleRequest) -> Result<BundleQuery, RegistryError> {
        let package = self.package(&request.pkg_name)?;
        let channel = channel(&package, &request.channel_name)?;
        let mut entries = channel.entries.iter();
        let entry = entries.find(|entry| entry.bundle == request.csv_name);
        let entry = entry.ok_or_else(|| {
            let [package, channel, bundle] =
                [&package.name, &channel.name, &request.csv_name].map(|name| go_quoted(name));
            RegistryError::NotFound(format!(
                "package {package}, channel {channel}, bundle {bundle} not found"
            ))
        })?;
        query(&package, &channel, entry)
    }

    /// Answers `GetBundleForChannel` with the head of the channel.
    ///
    /// # Errors
    /// Fails if there is no such package or channel.
    pub fn get_bundle_for_channel(&self, request: &GetBundleInChannelRequest) -> Result<BundleQuery, RegistryError> {
        let package = self.package(&request.pkg_name)?;
        let channel = channel(&package, &request.channel_name)?;
        query(&package, &channel, head(&channel)?)
    }

    /// Answers `GetChannelEntriesThatReplace`: entries of all packages that replace or skip the bundle.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get_channel_entries_that_replace(
        &self,
        name: &str,
    ) -> Result<impl Iterator<Item = Result<ApiChannelEntry, RegistryError>>, RegistryError> {
        let found = self.channel_entries(move |package, channel, entries| {
            for entry in &channel.entries {
                let skips = entry
                    .skips
                    .iter()
                    .filter(|skip| *skip == name && **skip != entry.replaces);
                let found = usize::from(entry.replaces == name) + skips.count();
                entries.extend((0..found).map(|_| channel_entry(package, channel, entry, &entry.replaces)));
            }
            Ok(())
        });
        not_empty(found, || format!("no channel entries found that replace {name}"))
    }

    /// Answers `GetBundleThatReplaces`. opm takes any of several; here the one with the highest version is taken.
    ///
    /// # Errors
    /// Fails if there is no such package or channel, or if no entry replaces or skips the bundle.
    pub fn get_bundle_that_replaces(&self, request: &GetReplacementRequest) -> Result<BundleQuery, RegistryError> {
        let GetReplacementRequest {
            csv_name,
            pkg_name,
            channel_name,
        } = request;
        // opm has no quotes in this text only.
        let not_found = || RegistryError::NotFound(format!("package {pkg_name} not found"));
        let package = self.package_record(pkg_name)?.ok_or_else(not_found)?;
        let channel = channel(&package, channel_name)?;
        let mut highest: Option<(Option<Version>, &EntryRecord)> = None;
        for entry in &channel.entries {
            if entry.replaces != *csv_name && !entry.skips.contains(csv_name) {
                continue;
            }
            let message = package.bundle(&entry.bundle)?.message;
            let version = Version::parse(&BundleVersion::decode(message)?.version).ok();
            // Build metadata has no precedence.
            let is_lower = |than: &Option<Version>| match (&version, than) {
                (Some(version), Some(than)) => version.cmp_precedence(than).is_lt(),
                (version, than) => version.is_none() && than.is_some(),
            };
            if !highest.as_ref().is_some_and(|(highest, _)| is_lower(highest)) {
                highest = Some((version, entry));
            }
        }
        let (_, entry) = highest.ok_or_else(|| {
            let [package, channel] = [pkg_name, channel_name].map(|name| go_quoted(name));
            RegistryError::NotFound(format!("no entry found for package {package}, channel {channel}"))
        })?;
        query(&package, &channel, entry)
    }

    /// Answers `GetChannelEntriesThatProvide`: for each bundle that provides the API one entry, and one for each skip.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get_channel_entries_that_provide(
        &self,
        api: &ProvidersRequest,
    ) -> Result<impl Iterator<Item = Result<ApiChannelEntry, RegistryError>>, RegistryError> {
        let found = self.channel_entries(move |package, channel, entries| {
            for entry in &channel.entries {
                if provides(package, entry, api)? {
                    add_provider(package, channel, entry, |_| true, entries);
                }
            }
            Ok(())
        });
        not_empty(found, || no_provider("no channel entries found that provide", api))
    }

    /// Answers `GetLatestChannelEntriesThatProvide`: the same for the heads of channels, without skips to other channels.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get_latest_channel_entries_that_provide(
        &self,
        api: &ProvidersRequest,
    ) -> Result<impl Iterator<Item = Result<ApiChannelEntry, RegistryError>>, RegistryError> {
        let found = self.channel_entries(move |package, channel, entries| {
            let head = head(channel)?;
            if provides(package, head, api)? {
                let in_channel = |skip: &str| channel.entries.iter().any(|entry| entry.bundle == skip);
                add_provider(package, channel, head, in_channel, entries);
            }
            Ok(())
        });
        not_empty(found, || no_provider("no channel entries found that provide", api))
    }

    /// Answers `GetDefaultBundleThatProvides`: the head of the default channel of the first package that provides the API there.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get_default_bundle_that_provides(&self, api: &ProvidersRequest) -> Result<BundleQuery, RegistryError> {
        for package in self.packages() {
            let package = package?;
            let Some(channel) = package.channel(&package.default_channel)? else {
                continue;
            };
            let head = head(&channel)?;
            if provides(&package, head, api)? {
                return query(&package, &channel, head);
            }
        }
        // The text depends on whether another channel provides it.
        drop(self.get_latest_channel_entries_that_provide(api)?);
        Err(RegistryError::NotFound(no_provider(
            "no entry found that provides",
            api,
        )))
    }

    /// Answers `ListBundles`: one bundle for each package, channel and entry.
    pub fn list_bundles(&self) -> impl Iterator<Item = Result<ListedBundle, RegistryError>> {
        self.packages().flat_map(|package| {
            let (package, error) = split(package);
            let package = Arc::new(package.unwrap_or_default());
            // One channel is decoded at a time.
            let bundles = (0..package.channels.len()).flat_map(move |at| {
                let (channel, error) = split(package.channel_at(at));
                let ChannelRecord { name, entries, .. } = channel.unwrap_or_default();
                let package = package.clone();
                let listed = entries
                    .into_iter()
                    .map(move |entry| list_bundle(&package, &name, entry));
                listed.chain(error)
            });
            bundles.chain(error)
        })
    }

    /// Answers `ExperimentalListPackageCustomSchemas` with the positions of whole lines in the Shard of the package. Each line
    /// becomes a message by [`meta_struct`](crate::meta_struct()).
    ///
    /// # Errors
    /// Fails if a name is not valid.
    pub fn list_custom_schemas(&self, request: &CustomSchemasRequest) -> Result<Vec<LineRange>, RegistryError> {
        let CustomSchemasRequest { schema, package_name } = request;
        if schema.is_empty() {
            return Err(RegistryError::InvalidArgument("schema is required".to_owned()));
        }
        check_name("schema", schema)?;
        if !package_name.is_empty() {
            check_name("packageName", package_name)?;
        }
        let record = self.record(package_name)?;
        let customs = record.into_iter().flat_map(|record| record.customs);
        let mut customs = customs.filter(|custom| custom.schema == *schema);
        Ok(customs.next().map(|custom| custom.lines).unwrap_or_default())
    }

    /// Returns the records of Packages that have an `olm.package`.
    fn packages(&self) -> impl Iterator<Item = Result<PackageRecord, RegistryError>> {
        let is_package = |record: &Result<PackageRecord, _>| record.as_ref().map_or(true, is_package);
        self.records().filter(is_package)
    }

    fn package_record(&self, name: &str) -> Result<Option<PackageRecord>, RegistryError> {
        Ok(self.record(name)?.filter(is_package))
    }

    fn package(&self, name: &str) -> Result<PackageRecord, RegistryError> {
        let not_found = || RegistryError::NotFound(format!("package {} not found", go_quoted(name)));
        self.package_record(name)?.ok_or_else(not_found)
    }

    /// Collects entries from one package after the other.
    fn channel_entries(
        &self,
        collect: impl Fn(&PackageRecord, &ChannelRecord, &mut Vec<ApiChannelEntry>) -> Result<(), RegistryError>,
    ) -> impl Iterator<Item = Result<ApiChannelEntry, RegistryError>> {
        let of_package = move |package: Result<PackageRecord, RegistryError>| {
            let package = package?;
            let mut entries = Vec::new();
            for channel in package.all_channels() {
                collect(&package, &channel?, &mut entries)?;
            }
            Ok(entries)
        };
        self.packages().flat_map(move |package| {
            let (entries, error) = split(of_package(package));
            entries.unwrap_or_default().into_iter().map(Ok).chain(error)
        })
    }
}

/// Splits a result into its value and the item that ends a stream.
fn split<T, U>(result: Result<T, RegistryError>) -> (Option<T>, Option<Result<U, RegistryError>>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(Err(error))),
    }
}

fn list_bundle(package: &PackageRecord, channel: &str, entry: EntryRecord) -> Result<ListedBundle, RegistryError> {
    let mut query = BundleQuery::new(package, channel, &entry, package.bundle(&entry.bundle)?)?;
    query.message.replaces = entry.replaces;
    query.message.skips = entry.skips;
    Ok(match query.message.bundle_path.is_empty() {
        true => ListedBundle::Incomplete(query),
        false => ListedBundle::Complete(query.message),
    })
}

const fn is_package(record: &PackageRecord) -> bool {
    record.package_line.is_some()
}

fn channel(package: &PackageRecord, name: &str) -> Result<ChannelRecord, RegistryError> {
    package.channel(name)?.ok_or_else(|| {
        let [package, channel] = [&package.name, name].map(go_quoted);
        RegistryError::NotFound(format!("package {package}, channel {channel} not found"))
    })
}

fn head(channel: &ChannelRecord) -> Result<&EntryRecord, RegistryError> {
    let mut entries = channel.entries.iter();
    let head = entries.find(|entry| entry.bundle == channel.head);
    head.ok_or(RegistryError::Damaged("a channel has no head"))
}

fn query(package: &PackageRecord, channel: &ChannelRecord, entry: &EntryRecord) -> Result<BundleQuery, RegistryError> {
    BundleQuery::new(package, &channel.name, entry, package.bundle(&entry.bundle)?)
}

fn channel_entry(
    package: &PackageRecord,
    channel: &ChannelRecord,
    entry: &EntryRecord,
    replaces: &str,
) -> ApiChannelEntry {
    ApiChannelEntry {
        package_name: package.name.clone(),
        channel_name: channel.name.clone(),
        bundle_name: entry.bundle.clone(),
        replaces: replaces.to_owned(),
    }
}

fn provides(package: &PackageRecord, entry: &EntryRecord, api: &ProvidersRequest) -> Result<bool, RegistryError> {
    let BundleRecord { message, .. } = package.bundle(&entry.bundle)?;
    let provided = ProvidedApis::decode(message)?.apis;
    let is_asked =
        |gvk: &GroupVersionKind| gvk.group == api.group && gvk.version == api.version && gvk.kind == api.kind;
    Ok(provided.iter().any(is_asked))
}

fn add_provider(
    package: &PackageRecord,
    channel: &ChannelRecord,
    entry: &EntryRecord,
    with_skip: impl Fn(&str) -> bool,
    entries: &mut Vec<ApiChannelEntry>,
) {
    entries.push(channel_entry(package, channel, entry, &entry.replaces));
    let skips = entry.skips.iter();
    let skips = skips.filter(|skip| **skip != entry.replaces && with_skip(skip));
    entries.extend(skips.map(|skip| channel_entry(package, channel, entry, skip)));
}

/// Returns the entries, or the error if there is none.
fn not_empty<I: Iterator>(found: I, text: impl FnOnce() -> String) -> Result<std::iter::Peekable<I>, RegistryError> {
    let mut found = found.peekable();
    match found.peek() {
        Some(_) => Ok(found),
        None => Err(RegistryError::NotFound(text())),
    }
}

fn no_provider(text: &str, api: &ProvidersRequest) -> String {
    let [group, version, kind] = [&api.group, &api.version, &api.kind].map(|name| go_quoted(name));
    format!("{text} group:{group} version:{version} kind:{kind}")
}

/// Checks a name as opm does, which makes paths of them.
fn check_name(what: &str, name: &str) -> Result<(), RegistryError> {
    let starts = name.starts_with(|char: char| char.is_ascii_alphanumeric());
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if starts && name.bytes().all(rest) {
        return Ok(());
    }
    Err(RegistryError::InvalidArgument(format!(
        "invalid custom schema query: invalid {what} {}: must match ^[a-zA-Z0-9][a-zA-Z0-9._-]*$",
        go_quoted(name)
    )))
}
