//! The methods of the registry API.

use futures_util::{FutureExt, future::BoxFuture};
use prost::Message;
use prost_types::Struct;
use registry::{
    ApiBundle, BundleQuery, Graph, ListedBundle, RegistryError,
    api::{
        ApiChannelEntry, ApiPackage, CustomSchemasRequest, GetAllReplacementsRequest, GetBundleInChannelRequest,
        GetBundleRequest, GetPackageRequest, GetReplacementRequest, ListBundlesRequest, ListPackageRequest,
        PackageName, ProvidersRequest,
    },
    meta_struct,
};
use tonic::Status;

use crate::{
    PublishedState,
    call::{ApiCall, Replies},
    contents::LARGE_LINE,
    status::{of_published, of_registry},
};

type Answer<'c> = BoxFuture<'c, Result<(), Status>>;

/// Messages of a stream, made one after the other.
type Messages<'g, M> = Box<dyn Iterator<Item = Result<M, RegistryError>> + Send + 'g>;

pub(crate) fn list_packages(
    call: &mut ApiCall,
    request: ListPackageRequest,
    replies: Replies<PackageName>,
) -> Answer<'_> {
    stream(call, request, replies, |graph, _| Ok(Box::new(graph.list_packages())))
}

pub(crate) fn get_package(call: &mut ApiCall, request: GetPackageRequest, replies: Replies<ApiPackage>) -> Answer<'_> {
    stream(call, request, replies, |graph, request| {
        let package = graph.get_package(&request.name)?;
        Ok(Box::new(std::iter::once(Ok(package))))
    })
}

pub(crate) fn get_bundle(call: &mut ApiCall, request: GetBundleRequest, replies: Replies<ApiBundle>) -> Answer<'_> {
    bundle(call, request, replies, Graph::get_bundle)
}

pub(crate) fn get_bundle_for_channel(
    call: &mut ApiCall,
    request: GetBundleInChannelRequest,
    replies: Replies<ApiBundle>,
) -> Answer<'_> {
    bundle(call, request, replies, Graph::get_bundle_for_channel)
}

pub(crate) fn entries_that_replace(
    call: &mut ApiCall,
    request: GetAllReplacementsRequest,
    replies: Replies<ApiChannelEntry>,
) -> Answer<'_> {
    stream(call, request, replies, |graph, request| {
        Ok(Box::new(graph.get_channel_entries_that_replace(&request.csv_name)?))
    })
}

pub(crate) fn bundle_that_replaces(
    call: &mut ApiCall,
    request: GetReplacementRequest,
    replies: Replies<ApiBundle>,
) -> Answer<'_> {
    bundle(call, request, replies, Graph::get_bundle_that_replaces)
}

pub(crate) fn entries_that_provide(
    call: &mut ApiCall,
    request: ProvidersRequest,
    replies: Replies<ApiChannelEntry>,
) -> Answer<'_> {
    stream(call, request, replies, |graph, request| {
        Ok(Box::new(graph.get_channel_entries_that_provide(request)?))
    })
}

pub(crate) fn latest_entries_that_provide(
    call: &mut ApiCall,
    request: ProvidersRequest,
    replies: Replies<ApiChannelEntry>,
) -> Answer<'_> {
    stream(call, request, replies, |graph, request| {
        Ok(Box::new(graph.get_latest_channel_entries_that_provide(request)?))
    })
}

pub(crate) fn default_bundle_that_provides(
    call: &mut ApiCall,
    request: ProvidersRequest,
    replies: Replies<ApiBundle>,
) -> Answer<'_> {
    bundle(call, request, replies, Graph::get_default_bundle_that_provides)
}

pub(crate) fn list_bundles(call: &mut ApiCall, _: ListBundlesRequest, replies: Replies<ApiBundle>) -> Answer<'_> {
    async move {
        let state = call.state().await?;
        for bundle in state.graph().list_bundles() {
            let bundle = match bundle.map_err(of_registry)? {
                ListedBundle::Complete(bundle) => {
                    let size = bundle.encoded_len() as u64;
                    if size >= LARGE_LINE {
                        call.memory.reserve(size).await?;
                    }
                    bundle
                }
                ListedBundle::Incomplete(query) => {
                    call.memory.reserve(message_size(&query)).await?;
                    complete(&*state, call, query).await?
                }
            };
            replies.send(bundle).await?;
        }
        Ok(())
    }
    .boxed()
}

pub(crate) fn list_custom_schemas(
    call: &mut ApiCall,
    request: CustomSchemasRequest,
    replies: Replies<Struct>,
) -> Answer<'_> {
    async move {
        // Like opm: a client that does not know that the method is experimental gets nothing.
        if !call.acknowledged {
            return Ok(());
        }
        let state = call.state().await?;
        for range in state.graph().list_custom_schemas(&request).map_err(of_registry)? {
            let read = state.lines(&request.package_name, &[range]).await;
            for lines in read.map_err(of_published)? {
                for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    replies.send(meta_struct(line).map_err(of_registry)?).await?;
                }
            }
        }
        Ok(())
    }
    .boxed()
}

/// Answers with the messages that the graph has.
fn stream<Req, Res>(
    call: &mut ApiCall,
    request: Req,
    replies: Replies<Res>,
    find: for<'g> fn(&'g Graph, &'g Req) -> Result<Messages<'g, Res>, RegistryError>,
) -> Answer<'_>
where
    Req: Send + Sync + 'static,
    Res: Send + 'static,
{
    async move {
        let state = call.state().await?;
        for message in find(state.graph(), &request).map_err(of_registry)? {
            replies.send(message.map_err(of_registry)?).await?;
        }
        Ok(())
    }
    .boxed()
}

/// Answers with one bundle.
fn bundle<Req: Send + Sync + 'static>(
    call: &mut ApiCall,
    request: Req,
    replies: Replies<ApiBundle>,
    find: fn(&Graph, &Req) -> Result<BundleQuery, RegistryError>,
) -> Answer<'_> {
    async move {
        let state = call.state().await?;
        let query = || find(state.graph(), &request).map_err(of_registry);
        let mut found = query()?;
        let memory = message_size(&found);
        if !call.memory.try_reserve(memory) {
            // It may have megabytes of properties, which must not wait in memory.
            drop(found);
            call.memory.reserve(memory).await?;
            found = query()?;
        }
        replies.send(complete(&*state, call, found).await?).await
    }
    .boxed()
}

/// Returns the size of the message of a bundle, in bytes: content is in it twice, as `csvJson` and as `object`.
const fn message_size(query: &BundleQuery) -> u64 {
    query.bundle_line.length.saturating_mul(2)
}

/// Returns a bundle with its content: a known one, or one that is made of its lines.
async fn complete(state: &dyn PublishedState, call: &ApiCall, query: BundleQuery) -> Result<ApiBundle, Status> {
    let _turn = match query.bundle_line.length >= LARGE_LINE {
        true => call.memory.turn().await,
        false => None,
    };
    let contents = &call.shared.contents;
    if let Some(content) = contents.get(&query) {
        return Ok(query.with_content(content));
    }
    let ranges = [query.bundle_line, query.package_line];
    let lines = state.lines(&query.package, &ranges).await.map_err(of_published)?;
    let [bundle, package] = lines.as_slice() else {
        return Err(Status::internal("the store did not return the lines"));
    };
    let content = query.content(bundle, package).map_err(of_registry)?;
    contents.keep(&query, &content);
    Ok(query.with_content(content))
}
