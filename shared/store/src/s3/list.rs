use aws_sdk_s3::{operation::list_objects_v2::ListObjectsV2Output, types};
use futures_util::{StreamExt as _, TryStreamExt as _, stream, stream::BoxStream};
use model::Key;

use crate::{
    Listed, Operation, StoreError,
    s3::{S3Store, fault, read::time},
};

/// Lists page by page. S3 puts at most 1,000 objects on one.
pub(crate) fn list(store: S3Store, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
    let request = store.bucket.client.list_objects_v2().bucket(&store.place().bucket);
    let pages = request.prefix(store.place().name(prefix)).into_paginator().send();
    stream::try_unfold((store, Some(pages)), async |(store, pages)| {
        let Some(mut pages) = pages else { return Ok(None) };
        let Some(page) = pages.next().await else {
            return Ok(None);
        };
        let page = page.map_err(|error| fault::failed(Operation::List, &store.place(), error))?;
        let more = is_cut(&page).map_err(|error| StoreError::failed(Operation::List, &store.place(), error))?;
        let found: Vec<_> = page
            .contents()
            .iter()
            .filter_map(|object| listed(&store, object))
            .collect();
        Ok(Some((stream::iter(found).map(Ok), (store, more.then_some(pages)))))
    })
    .try_flatten()
    .boxed()
}

/// Returns true if another page follows. A cut page without a token is an error: a listing that ends early would hide pointers from
/// collection, which would then delete the objects of those catalogs.
fn is_cut(page: &ListObjectsV2Output) -> Result<bool, &'static str> {
    let is_cut = page.is_truncated() == Some(true);
    if is_cut && page.next_continuation_token().is_none_or(str::is_empty) {
        return Err("the listing was cut off without a continuation token");
    }
    Ok(is_cut)
}

fn listed(store: &S3Store, object: &types::Object) -> Option<Listed> {
    Some(Listed {
        key: Key::parse(store.place().path(object.key()?)?)?,
        size: u64::try_from(object.size()?).ok()?,
        modified: time(object.last_modified()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_page_without_token_is_an_error() {
        let page = |cut, token: Option<&str>| {
            let page = ListObjectsV2Output::builder().is_truncated(cut);
            is_cut(&page.set_next_continuation_token(token.map(str::to_owned)).build())
        };
        assert!(matches!(page(false, None), Ok(false)));
        assert!(matches!(page(true, Some("t")), Ok(true)));
        for token in [None, Some("")] {
            page(true, token).expect_err("the rest cannot be asked for");
        }
    }
}
