//! Answers of this crate to the requests of `opm-oracle`, in its form.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use catalog_mirror_registry::{
    ApiBundle, BundleQuery, Graph, GraphBuilder, LineRange, ListedBundle, PackageRecorder, RegistryError,
    api::{
        CustomSchemasRequest, GetAllReplacementsRequest, GetBundleInChannelRequest, GetBundleRequest,
        GetPackageRequest, GetReplacementRequest, ProvidersRequest,
    },
    meta_struct,
};
use model::Sha256;
use prost::Message;
use serde::Deserialize;

/// Request and what a server says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reply {
    /// Method of the API.
    pub(crate) method: String,
    /// Request as base64 of protobuf.
    pub(crate) request: String,
    /// Name of the status code; empty for success.
    #[serde(default)]
    pub(crate) code: String,
    /// Message of the status.
    #[serde(default)]
    pub(crate) text: String,
    /// Sorted messages: base64 of protobuf.
    #[serde(default)]
    pub(crate) messages: Vec<String>,
    /// True if any one of the messages is right.
    #[serde(default)]
    pub(crate) any_of: bool,
}

/// Lines of a catalog and their graph.
pub(crate) struct Catalog {
    shards: BTreeMap<String, Vec<u8>>,
    /// Graph of all Shards.
    pub(crate) graph: Graph,
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    name: String,
}

impl Catalog {
    /// Groups canonical lines by package, as a publication does.
    pub(crate) fn of_lines(lines: &[u8]) -> Self {
        let mut shards: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let header: Header = serde_json::from_slice(line).expect("a canonical line");
            let package = match (header.package.as_str(), header.schema.as_str()) {
                ("", "olm.package") => header.name,
                _ => header.package,
            };
            shards.entry(package).or_default().extend_from_slice(line);
        }
        let mut builder = GraphBuilder::new();
        for (package, lines) in &shards {
            let mut recorder = PackageRecorder::new(package);
            recorder.push(lines);
            let record = recorder.finish(Sha256::of(lines)).expect("a valid package");
            builder.push(&record);
        }
        let graph = Graph::parse(builder.finish().into(), 1 << 30).expect("a graph");
        Self { shards, graph }
    }

    /// Answers a request of the oracle.
    pub(crate) fn reply(&self, asked: &Reply) -> Reply {
        let (code, text, messages) = match self.answer(&asked.method, &asked.request) {
            Ok(messages) => (String::new(), String::new(), messages),
            Err(error) => (code(&error).to_owned(), error.to_string(), Vec::new()),
        };
        let mut messages: Vec<String> = messages.iter().map(|message| STANDARD.encode(message)).collect();
        messages.sort();
        Reply {
            method: asked.method.clone(),
            request: asked.request.clone(),
            code,
            text,
            messages,
            any_of: false,
        }
    }

    fn answer(&self, method: &str, request: &str) -> Result<Vec<Vec<u8>>, RegistryError> {
        let graph = &self.graph;
        Ok(match method {
            "ListPackages" => encode(graph.list_packages())?,
            "ListBundles" => encode(graph.list_bundles().map(|bundle| self.listed(bundle?)))?,
            "GetPackage" => vec![
                graph
                    .get_package(&decode::<GetPackageRequest>(request).name)?
                    .encode_to_vec(),
            ],
            "GetBundle" => self.bundle(graph.get_bundle(&decode::<GetBundleRequest>(request))?)?,
            "GetBundleForChannel" => {
                let request: GetBundleInChannelRequest = decode(request);
                self.bundle(graph.get_bundle_for_channel(&request)?)?
            }
            "GetChannelEntriesThatReplace" => {
                let request: GetAllReplacementsRequest = decode(request);
                encode(graph.get_channel_entries_that_replace(&request.csv_name)?)?
            }
            "GetBundleThatReplaces" => {
                let request: GetReplacementRequest = decode(request);
                self.bundle(graph.get_bundle_that_replaces(&request)?)?
            }
            "GetChannelEntriesThatProvide" => {
                let request: ProvidersRequest = decode(request);
                encode(graph.get_channel_entries_that_provide(&request)?)?
            }
            "GetLatestChannelEntriesThatProvide" => {
                let request: ProvidersRequest = decode(request);
                encode(graph.get_latest_channel_entries_that_provide(&request)?)?
            }
            "GetDefaultBundleThatProvides" => {
                let request: ProvidersRequest = decode(request);
                self.bundle(graph.get_default_bundle_that_provides(&request)?)?
            }
            "ExperimentalListPackageCustomSchemas" => {
                let request: CustomSchemasRequest = decode(request);
                let mut messages = Vec::new();
                for range in graph.list_custom_schemas(&request)? {
                    let lines = self.range(&request.package_name, range);
                    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                    messages.extend(encode(lines.map(meta_struct))?);
                }
                messages
            }
            _ => panic!("unknown method {method}"),
        })
    }

    fn listed(&self, bundle: ListedBundle) -> Result<ApiBundle, RegistryError> {
        match bundle {
            ListedBundle::Complete(bundle) => Ok(bundle),
            ListedBundle::Incomplete(query) => self.complete(query),
        }
    }

    fn bundle(&self, query: BundleQuery) -> Result<Vec<Vec<u8>>, RegistryError> {
        Ok(vec![self.complete(query)?.encode_to_vec()])
    }

    fn complete(&self, query: BundleQuery) -> Result<ApiBundle, RegistryError> {
        complete(&self.graph, &self.shards[&query.package], query)
    }

    fn range(&self, package: &str, range: LineRange) -> &[u8] {
        let offsets = range.offsets();
        &self.shards[package][offsets.start as usize..offsets.end as usize]
    }
}

/// Answers a query with the lines of the Shard, which come in chunks.
pub(crate) fn complete(graph: &Graph, lines: &[u8], query: BundleQuery) -> Result<ApiBundle, RegistryError> {
    let offsets = query.package_line.offsets();
    let package_line = &lines[offsets.start as usize..offsets.end as usize];
    let mut builder = graph.contents_of(&query, package_line, 1 << 30)?;
    for chunk in lines.chunks(1000) {
        builder.push(chunk)?;
    }
    let content = builder.finish()?.content(&query)?;
    Ok(query.with_content(&content).decode()?)
}

fn decode<T: Message + Default>(request: &str) -> T {
    let bytes = STANDARD.decode(request).expect("base64");
    T::decode(Bytes::from(bytes)).expect("a request")
}

fn encode<T: Message>(messages: impl Iterator<Item = Result<T, RegistryError>>) -> Result<Vec<Vec<u8>>, RegistryError> {
    messages.map(|message| Ok(message?.encode_to_vec())).collect()
}

const fn code(error: &RegistryError) -> &'static str {
    match error {
        RegistryError::NotFound(_) => "Unknown",
        RegistryError::InvalidArgument(_) => "InvalidArgument",
        _ => "Internal",
    }
}
