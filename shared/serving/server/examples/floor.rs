//! Answers each request with one finished answer: hyper's own share of what a request costs, for
//! `scripts/bench`.
//!
//! `floor ADDRESS HEAD BODY`: HEAD is a file as `curl -D` writes it, BODY a file. gRPC gets the
//! trailers of a success.

use std::{convert::Infallible, env, error::Error, fs};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Either, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, address, head, body] = &arguments[..] else {
        return Err("floor ADDRESS HEAD BODY".into());
    };
    let (answer, body) = (
        parse(&fs::read_to_string(head)?)?,
        Bytes::from(fs::read(body)?),
    );
    let is_grpc =
        answer.headers().get("content-type") == Some(&HeaderValue::from_static("application/grpc"));
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (answer, body) = (answer.clone(), body.clone());
        let service = service_fn(move |_: Request<Incoming>| {
            let body = Full::new(body.clone());
            let trailers = HeaderMap::from_iter([(
                "grpc-status".parse().unwrap(),
                HeaderValue::from_static("0"),
            )]);
            let body = match is_grpc {
                true => Either::Left(body.with_trailers(async { Some(Ok(trailers)) })),
                false => Either::Right(body),
            };
            let answer = answer.clone().map(|()| body);
            async { Ok::<_, Infallible>(answer) }
        });
        tokio::spawn(async move {
            let http = auto::Builder::new(TokioExecutor::new());
            http.serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        });
    }
}

/// Parses the head of an answer. Fields of the connection are left out, because hyper writes its
/// own.
fn parse(head: &str) -> Result<Response<()>, Box<dyn Error>> {
    let mut lines = head.lines();
    let status: u16 = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .ok_or("no status")?
        .parse()?;
    let mut answer = Response::builder().status(status);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if !matches!(
            &*name.to_ascii_lowercase(),
            "connection" | "content-length" | "date" | "transfer-encoding"
        ) {
            answer = answer.header(name, value);
        }
    }
    Ok(answer.body(())?)
}
