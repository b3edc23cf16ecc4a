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
        next: Next::First,
    };
    stream::try_unfold(listing, Listing::step).boxed()
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
