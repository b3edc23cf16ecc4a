use std::collections::VecDeque;

use crate::{Listed, Operation, StoreError};
use aws_sdk_s3::types;
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use model::Key;

use crate::s3::{S3Store, fault, read::time};

/// Listing between two of its pages.
struct Listing {
    store: S3Store,
    prefix: String,
    found: VecDeque<Listed>,
    next: Next,
}

enum Next {
    First,
    Page(String),
    End,
}

/// Error for a page that says that more follows, without the token to ask for it.
#[derive(Debug, thiserror::Error)]
#[error("the listing was cut off without a continuation token")]
struct NoToken;

impl Next {
    /// Returns the request after a page. A cut page without a token is an error: a listing that ends early would hide
    /// pointers from collection, which would then delete the objects of those catalogs.
    fn after(truncated: bool, token: Option<String>) -> Result<Self, NoToken> {
        match token {
            _ if !truncated => Ok(Self::End),
            Some(token) if !token.is_empty() => Ok(Self::Page(token)),
            _ => Err(NoToken),
        }
    }
}

pub(crate) fn list(store: S3Store, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
    let listing = Listing {
        prefix: store.place().name(prefix),
        store,
        found: VecDeque::new(),
        next: if can_start_a_key(prefix) {
            Next::First
        } else {
            Next::End
        },
    };
    stream::try_unfold(listing, Listing::step).boxed()
}

/// False for a prefix that no key has: no part of a key is empty or starts with a dot. Some servers refuse such a prefix.
fn can_start_a_key(prefix: &str) -> bool {
    let (whole, last) = prefix
        .rsplit_once('/')
        .map_or(("a", prefix), |(whole, last)| (whole, last));
    !last.starts_with('.') && whole.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

impl Listing {
    async fn step(mut self) -> Result<Option<(Listed, Self)>, StoreError> {
        loop {
            if let Some(listed) = self.found.pop_front() {
                return Ok(Some((listed, self)));
            }
            let token = match std::mem::replace(&mut self.next, Next::End) {
                Next::First => None,
                Next::Page(token) => Some(token),
                Next::End => return Ok(None),
            };
            self.page(token).await?;
        }
    }

    /// Reads one page. S3 puts at most 1,000 objects on one.
    async fn page(&mut self, token: Option<String>) -> Result<(), StoreError> {
        let request = self
            .store
            .bucket
            .client
            .list_objects_v2()
            .bucket(&self.store.place().bucket);
        let request = request.prefix(&self.prefix).set_continuation_token(token);
        let page = request.send().await;
        let page = page.map_err(|error| fault::failed(Operation::List, &self.store.place(), error))?;
        for object in page.contents() {
            self.found.extend(self.listed(object));
        }
        let next = Next::after(page.is_truncated() == Some(true), page.next_continuation_token);
        self.next = next.map_err(|error| StoreError::failed(Operation::List, &self.store.place(), error))?;
        Ok(())
    }

    fn listed(&self, object: &types::Object) -> Option<Listed> {
        Some(Listed {
            key: Key::parse(self.store.place().path(object.key()?)?)?,
            size: u64::try_from(object.size()?).ok()?,
            modified: time(object.last_modified()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_page_of_a_cut_listing_without_token_is_an_error() {
        assert!(matches!(Next::after(false, None), Ok(Next::End)));
        assert!(matches!(Next::after(true, Some("t".into())), Ok(Next::Page(_))));
        for token in [None, Some(String::new())] {
            Next::after(true, token).err().expect("the rest cannot be asked for");
        }
    }

    #[test]
    fn can_start_a_key_of_a_bad_prefix_is_false() {
        for prefix in ["", "c", "catalogs/", "catalogs/a", "packages/sha256/0"] {
            assert!(can_start_a_key(prefix), "{prefix}");
        }
        for prefix in ["/", ".", "catalogs/../", "catalogs/..", "catalogs//a", "/catalogs"] {
            assert!(!can_start_a_key(prefix), "{prefix}");
        }
    }
}
