//! The methods of the registry API.

use futures_util::{FutureExt, future::BoxFuture};
use prost::Message;
use registry::{
    BundleQuery, Graph, ListedBundle, MessageParts, RegistryError,
    api::{
        CustomSchemasRequest, GetAllReplacementsRequest, GetBundleInChannelRequest, GetBundleRequest,
        GetPackageRequest, GetReplacementRequest, ListBundlesRequest, ListPackageRequest, ProvidersRequest,
    },
    meta_struct,
};
use tokio::task::spawn_blocking;
use tonic::Status;

use crate::{
    PublishedState,
    call::{ApiCall, Replies},
    lines::LineReader,
    status::of_registry,
};

/// Length from which the message of a bundle is made outside of the threads that serve connections, in bytes.
const LARGE_LINE: u64 = 64 << 10;

type Answer<'c> = BoxFuture<'c, Result<(), Status>>;

/// Messages of a stream, made one after the other.
type Messages<'g, M> = Box<dyn Iterator<Item = Result<M, RegistryError>> + Send + 'g>;

pub(crate) fn list_packages(call: &mut ApiCall, request: ListPackageRequest, replies: Replies) -> Answer<'_> {
    stream(call, request, replies, |graph, _| Ok(Box::new(graph.list_packages())))
}

pub(crate) fn get_package(call: &mut ApiCall, request: GetPackageRequest, replies: Replies) -> Answer<'_> {
    stream(call, request, replies, |graph, request| {
        let package = graph.get_package(&request.name)?;
        Ok(Box::new(std::iter::once(Ok(package))))
    })
}

pub(crate) fn get_bundle(call: &mut ApiCall, request: GetBundleRequest, replies: Replies) -> Answer<'_> {
    bundle(call, request, replies, Graph::get_bundle)
}

pub(crate) fn get_bundle_for_channel(
    call: &mut ApiCall,
    request: GetBundleInChannelRequest,
    replies: Replies,
) -> Answer<'_> {
    bundle(call, request, replies, Graph::get_bundle_for_channel)
}

pub(crate) fn entries_that_replace(
    call: &mut ApiCall,
    request: GetAllReplacementsRequest,
    replies: Replies,
) -> Answer<'_> {
    stream(call, request, replies, |graph, request| {
        Ok(Box::new(graph.get_channel_entries_that_replace(&request.csv_name)?))
    })
}

pub(crate) fn bundle_that_replaces(call: &mut ApiCall, request: GetReplacementRequest, replies: Replies) -> Answer<'_> {
    bundle(call, request, replies, Graph::get_bundle_that_replaces)
}

pub(crate) fn entries_that_provide(call: &mut ApiCall, request: ProvidersRequest, replies: Replies) -> Answer<'_> {
    stream(call, request, replies, |graph, request| {
        Ok(Box::new(graph.get_channel_entries_that_provide(request)?))
    })
}

pub(crate) fn latest_entries_that_provide(
    call: &mut ApiCall,
    request: ProvidersRequest,
    replies: Replies,
) -> Answer<'_> {
    stream(call, request, replies, |graph, request| {
        Ok(Box::new(graph.get_latest_channel_entries_that_provide(request)?))
    })
}

pub(crate) fn default_bundle_that_provides(
    call: &mut ApiCall,
    request: ProvidersRequest,
    replies: Replies,
) -> Answer<'_> {
    bundle(call, request, replies, Graph::get_default_bundle_that_provides)
}

pub(crate) fn list_bundles(call: &mut ApiCall, _: ListBundlesRequest, replies: Replies) -> Answer<'_> {
    async move {
        let state = call.state().await?;
        for bundle in state.graph().list_bundles() {
            match bundle.map_err(of_registry)? {
                ListedBundle::Complete(bundle) => {
                    let size = bundle.encoded_len() as u64;
                    if size >= LARGE_LINE {
                        call.memory.reserve(size).await?;
                    }
                    replies.send(&bundle).await?;
                }
                ListedBundle::Incomplete(query) => {
                    call.memory.reserve(query.answer_memory()).await?;
                    replies.send_parts(complete(&*state, call, query).await?).await?;
                }
            }
        }
        Ok(())
    }
    .boxed()
}

pub(crate) fn list_custom_schemas(call: &mut ApiCall, request: CustomSchemasRequest, replies: Replies) -> Answer<'_> {
    async move {
        // Like opm: a client that does not know that the method is experimental gets nothing.
        if !call.acknowledged {
            return Ok(());
        }
        let state = call.state().await?;
        let ranges = state.graph().list_custom_schemas(&request).map_err(of_registry)?;
        if ranges.is_empty() {
            return Ok(());
        }
        let mut lines = LineReader::open(&*state, &request.package_name).await?;
        for range in ranges {
            while let Some(line) = lines.next(&range).await? {
                replies.send(&meta_struct(&line).map_err(of_registry)?).await?;
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
    replies: Replies,
    find: for<'g> fn(&'g Graph, &'g Req) -> Result<Messages<'g, Res>, RegistryError>,
) -> Answer<'_>
where
    Req: Send + Sync + 'static,
    Res: Message + 'static,
{
    async move {
        let state = call.state().await?;
        for message in find(state.graph(), &request).map_err(of_registry)? {
            replies.send(&message.map_err(of_registry)?).await?;
        }
        Ok(())
    }
    .boxed()
}

/// Answers with one bundle.
fn bundle<Req: Send + Sync + 'static>(
    call: &mut ApiCall,
    request: Req,
    replies: Replies,
    find: fn(&Graph, &Req) -> Result<BundleQuery, RegistryError>,
) -> Answer<'_> {
    async move {
        let state = call.state().await?;
        let query = || find(state.graph(), &request).map_err(of_registry);
        let mut found = query()?;
        let memory = found.answer_memory();
        if !call.memory.try_reserve(memory) {
            // It may have megabytes of properties, which must not wait in memory.
            drop(found);
            call.memory.reserve(memory).await?;
            found = query()?;
        }
        replies.send_parts(complete(&*state, call, found).await?).await
    }
    .boxed()
}

/// Returns a bundle with its content.
async fn complete(state: &dyn PublishedState, call: &ApiCall, query: BundleQuery) -> Result<MessageParts, Status> {
    let contents = call.shared.contents.get(state, &query).await?;
    if query.bundle_line.length < LARGE_LINE {
        let content = contents.content(&query).map_err(of_registry)?;
        return Ok(query.with_content(&content));
    }
    let _turn = call.memory.turn().await;
    let bundle = spawn_blocking(move || contents.content(&query).map(|content| query.with_content(&content)));
    let bundle = bundle.await.map_err(|error| Status::internal(error.to_string()))?;
    bundle.map_err(of_registry)
}
