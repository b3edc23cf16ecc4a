#![doc = include_str!("../README.md")]
#![cfg(target_arch = "wasm32")]

mod answer;
mod bucket;
mod cached;
mod environment;

use std::{
    cell::OnceCell,
    io::{self, Write},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use axum::Router;
use http_api::{HttpMetrics, HttpSettings, LargeBodies};
use reader::PublishedCatalogs;
use worker::{Context, Date, Env, Request, console_error, event, worker_sys::web_sys};

use crate::{bucket::R2Store, environment::EdgeEnvironment};

thread_local! {
    /// Router of this isolate, with its caches. A Worker has one thread.
    static ROUTER: OnceCell<Router> = const { OnceCell::new() };
}

/// Answers a request from the edge cache or from the bucket.
///
/// # Errors
/// Fails if the variables or the binding cannot be used, or if an answer cannot be made a JavaScript object. The cause is logged.
#[event(fetch)]
pub async fn fetch(request: Request, env: Env, context: Context) -> worker::Result<web_sys::Response> {
    let router = router(&env)?;
    cached::answer(&request, &context, router).await
}

/// Returns the router of this isolate, and makes it for the first request. Other requests may run in between, but not within this.
fn router(env: &Env) -> worker::Result<Router> {
    ROUTER.with(|known| {
        if let Some(router) = known.get() {
            return Ok(router.clone());
        }
        start_log();
        let environment = EdgeEnvironment::read(|name| env.var(name).ok().map(|value| value.to_string()));
        let environment = environment.map_err(|problems| problems.to_string())?;
        let made = build(environment, env.bucket("BUCKET")?);
        Ok(known.get_or_init(|| made).clone())
    })
}

fn build(environment: EdgeEnvironment, bucket: worker::Bucket) -> Router {
    let settings = HttpSettings {
        large: environment.public_url.map(|url| LargeBodies {
            above: environment.inline_max,
            // A Worker sends bodies of any size. Those that are no stored object it makes itself.
            max: u64::MAX,
            to: Arc::new(url),
        }),
        clock: || UNIX_EPOCH + since_1970(),
        ..HttpSettings::default()
    };
    let store = R2Store::new(bucket, environment.prefix);
    let catalogs = PublishedCatalogs::new(Arc::new(store), environment.reading);
    // A Worker has no /metrics: each isolate would count for itself.
    http_api::router(catalogs, settings, HttpMetrics::default())
}

/// Returns the time of the last input or output: a Worker's clock stands still between them.
fn since_1970() -> Duration {
    Duration::from_millis(Date::now().as_millis())
}

/// Sends warnings and errors to the console as JSON, which adds the time. Call it once.
fn start_log() {
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .without_time()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(|| ConsoleLines)
        .init();
}

/// Writer whose every write is one line.
struct ConsoleLines;

impl Write for ConsoleLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        console_error!("{}", String::from_utf8_lossy(line).trim_end());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
