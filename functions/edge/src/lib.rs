#![doc = include_str!("../README.md")]
#![cfg(target_arch = "wasm32")]

mod answer;
mod bucket;
mod cached;

use std::cell::OnceCell;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use api::{BaseUrl, HttpMetrics, HttpSettings, LargeBodies};
use axum::Router;
use config::Variables;
use reader::{PublishedCatalogs, ReaderSettings};
use trust::{PublicKey, Trust};
use worker::{
    Context, Date, Env, Request, console_error, event, send::SendWrapper, worker_sys::web_sys,
};

use crate::bucket::R2Store;

/// Default memory for caches, in MiB. An isolate has 128 MB for the program, its requests and the
/// caches.
const CACHE_MIB: u64 = 16;

/// Maximum memory for caches, in MiB: half of an isolate.
const CACHE_MIB_MAX: u64 = 64;

/// Default size of a stored object above which a client is redirected to it, in bytes.
const INLINE_MAX: u64 = 1 << 20;

thread_local! {
    /// Router of this isolate, with its caches. A Worker has one thread.
    static ROUTER: OnceCell<Router> = const { OnceCell::new() };
}

/// Answers a request from the edge cache or from the bucket.
///
/// # Errors
/// Fails if the variables or the binding cannot be used, or if an answer cannot be made a
/// JavaScript object. The cause is logged.
#[event(fetch)]
pub async fn fetch(
    request: Request,
    env: Env,
    context: Context,
) -> worker::Result<web_sys::Response> {
    let router = router(&env)?;
    cached::answer(&request, &context, router).await
}

/// Returns the router of this isolate, and makes it for the first request. Other requests may run
/// in between, but not within this.
fn router(env: &Env) -> worker::Result<Router> {
    ROUTER.with(|known| {
        if let Some(router) = known.get() {
            return Ok(router.clone());
        }
        start_log();
        let made = build(env)?;
        Ok(known.get_or_init(|| made).clone())
    })
}

/// Builds the router from the variables of the Worker, which the README lists. An empty one counts
/// as absent.
fn build(env: &Env) -> worker::Result<Router> {
    let variables = Variables::new(|name: &str| env.var(name).ok().map(|value| value.to_string()));
    let path = variables.text("PREFIX").unwrap_or_default();
    let mut prefix = path.trim_matches('/').to_owned();
    if !prefix.is_empty() {
        prefix.push('/');
    }
    let public_url = variables.parsed("PUBLIC_URL", BaseUrl::from_str);
    let inline_max = variables.number("INLINE_MAX", 1..=u64::MAX);
    let settings = HttpSettings {
        large: public_url.map(|url| LargeBodies {
            above: inline_max.unwrap_or(INLINE_MAX),
            // A Worker sends bodies of any size. Those that are no stored object it makes itself.
            max: u64::MAX,
            to: Arc::new(url),
        }),
        clock: || UNIX_EPOCH + since_1970(),
        ..HttpSettings::default()
    };
    let freshness = variables.parsed("FRESHNESS", humantime::parse_duration);
    let cache_mib = variables.number("CACHE_MIB", 1..=CACHE_MIB_MAX);
    let keys = variables.parsed("VERIFY_KEYS", PublicKey::from_text);
    let reading = ReaderSettings {
        cache_bytes: cache_mib.unwrap_or(CACHE_MIB) << 20,
        freshness: freshness.unwrap_or_default(),
        trust: keys.map(Trust::new),
        clock: since_1970,
        ..ReaderSettings::default()
    };
    variables
        .finish()
        .map_err(|problems| problems.to_string())?;
    let bucket = SendWrapper(env.bucket("BUCKET")?);
    let store = R2Store { bucket, prefix };
    let catalogs = PublishedCatalogs::new(Arc::new(store), reading);
    // A Worker has no /metrics: each isolate would count for itself.
    Ok(api::router(catalogs, settings, HttpMetrics::default()))
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
