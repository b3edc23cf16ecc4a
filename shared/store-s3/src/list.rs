use std::collections::VecDeque;

use aws_sdk_s3::types;
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use layout::Key;
use store::{Listed, Operation, StoreError};

use crate::{S3Store, fault, read::time};

/// A listing between two pages.
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

/// No part of a key is empty or starts with a dot, and some servers refuse to look for one that does.
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

    /// Reads one page, of at most 1,000 objects.
    async fn page(&mut self, token: Option<String>) -> Result<(), StoreError> {
        let request = self.store.client().list_objects_v2().bucket(&self.store.place().bucket);
        let request = request.prefix(&self.prefix).set_continuation_token(token);
        let page = request.send().await;
        let page = page.map_err(|error| fault::failed(Operation::List, &self.store.place(), error))?;
        for object in page.contents() {
            self.found.extend(self.listed(object));
        }
        if page.is_truncated() == Some(true) {
            self.next = page.next_continuation_token.map_or(Next::End, Next::Page);
        }
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
    fn what_cannot_start_a_key_is_not_asked_for() {
        for prefix in ["", "c", "catalogs/", "catalogs/a", "packages/sha256/0"] {
            assert!(can_start_a_key(prefix), "{prefix}");
        }
        for prefix in ["/", ".", "catalogs/../", "catalogs/..", "catalogs//a", "/catalogs"] {
            assert!(!can_start_a_key(prefix), "{prefix}");
        }
    }
}
