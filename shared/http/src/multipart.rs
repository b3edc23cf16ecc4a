use std::{ops::Range, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG},
};

use reader::{ReaderError, once};

use crate::{error::ApiError, payload::Payload, respond::RoutedRequest, router::App};

impl App {
    /// Turns the head of a whole answer into a partial one (RFC 9110, section 15.3.7).
    pub(crate) async fn partial(
        self: &Arc<Self>,
        request: RoutedRequest<'_>,
        mut response: Response<Body>,
        payload: Payload,
        mut parts: Vec<Range<u64>>,
    ) -> Result<Response<Body>, ApiError> {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        match (parts.pop(), parts.is_empty()) {
            // One range is not sent as multipart (RFC 9110, section 15.3.7.2).
            (Some(part), true) => self.single(request, response, payload, part).await,
            (last, _) => {
                parts.extend(last);
                self.multiple(request, response, payload, parts)
            }
        }
    }

    async fn single(
        self: &Arc<Self>,
        request: RoutedRequest<'_>,
        mut response: Response<Body>,
        payload: Payload,
        part: Range<u64>,
    ) -> Result<Response<Body>, ApiError> {
        let range = content_range(&part, payload.length().unwrap_or_default());
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
        headers.insert(
            CONTENT_RANGE,
            HeaderValue::try_from(range).expect("digits are visible ASCII"),
        );
        *response.body_mut() = self.streamed(request, self.part(&payload, part).await?);
        Ok(response)
    }

    /// Answers with `multipart/byteranges` (RFC 9110, section 14.6). The entity tag is the boundary: it is as good as random,
    /// and equal requests get equal bytes.
    fn multiple(
        self: &Arc<Self>,
        request: RoutedRequest<'_>,
        mut response: Response<Body>,
        payload: Payload,
        parts: Vec<Range<u64>>,
    ) -> Result<Response<Body>, ApiError> {
        let headers = response.headers_mut();
        let text = |value: Option<&HeaderValue>| {
            value
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        let boundary = text(headers.get(ETAG)).trim_matches('"').to_owned();
        let content_type = text(headers.get(CONTENT_TYPE));
        let length = payload.length().unwrap_or_default();
        let opening = |part: &Range<u64>| {
            let range = content_range(part, length);
            format!("\r\n--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {range}\r\n\r\n")
        };
        let closing = format!("\r\n--{boundary}--\r\n");
        let parts: Vec<(String, Range<u64>)> = parts.into_iter().map(|part| (opening(&part), part)).collect();
        let sizes = parts
            .iter()
            .map(|(opening, part)| opening.len() as u64 + part.end - part.start);
        let size = sizes.sum::<u64>() + closing.len() as u64;
        let multipart = format!("multipart/byteranges; boundary={boundary}");
        headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::try_from(multipart).expect("a tag is visible ASCII"),
        );
        let (app, payload) = (Arc::clone(self), Arc::new(payload));
        let bodies = stream::iter(parts).then(move |(opening, part)| {
            let (app, payload) = (Arc::clone(&app), Arc::clone(&payload));
            async move { Ok::<_, ReaderError>(once(opening.into()).chain(app.part(&payload, part).await?)) }
        });
        let chunks = bodies.try_flatten().chain(once(Bytes::from(closing)));
        *response.body_mut() = self.streamed(request, chunks.boxed());
        Ok(response)
    }
}

fn content_range(part: &Range<u64>, length: u64) -> String {
    format!("bytes {}-{}/{length}", part.start, part.end - 1)
}
