use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;
use serde_json::Value;
use tokio::{net::TcpListener, sync::mpsc};

/// Secret of the receiver: `whsec_` and the base64 of the bytes 0 to 31.
pub(crate) const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A server that receives webhooks and verifies their signatures.
pub(crate) struct Receiver {
    pub(crate) url: String,
    broken: Arc<Mutex<bool>>,
    events: mpsc::UnboundedReceiver<Value>,
}

#[derive(Clone)]
struct Site {
    broken: Arc<Mutex<bool>>,
    events: mpsc::UnboundedSender<Value>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let broken = Arc::<Mutex<bool>>::default();
        let site = Site {
            broken: broken.clone(),
            events: sender,
        };
        let router = Router::new().route("/hook", post(receive)).with_state(site);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there are free ports");
        let url = format!("http://{}/hook", listener.local_addr().expect("it is bound"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, broken, events }
    }

    /// Answers 503 from now on if `broken` is true.
    pub(crate) fn break_down(&self, broken: bool) {
        *self.broken.lock().expect("the lock is not poisoned") = broken;
    }

    /// Returns the events that arrived since the last call.
    pub(crate) fn take(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.events.try_recv().ok()).collect()
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> Value {
        self.events.recv().await.expect("the server runs on")
    }
}

/// Handles a webhook. A broken receiver asks for a retry in an hour, so that a poll does not wait for it.
async fn receive(State(site): State<Site>, fields: HeaderMap, body: Bytes) -> Result<(), (StatusCode, HeaderMap)> {
    if *site.broken.lock().expect("the lock is not poisoned") {
        let later = [("retry-after".parse().expect("a name"), "3600".parse().expect("a value"))];
        return Err((StatusCode::SERVICE_UNAVAILABLE, later.into_iter().collect()));
    }
    verify(&fields, &body);
    let event = serde_json::from_slice(&body).expect("events are JSON");
    site.events.send(event).expect("the test listens");
    Ok(())
}

/// Verifies a signature as the Standard Webhooks specification says.
fn verify(fields: &HeaderMap, body: &[u8]) {
    let field = |name: &str| fields[name].to_str().expect("fields are text");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &(0..32).collect::<Vec<u8>>());
    let signed = format!("{}.{}.", field("webhook-id"), field("webhook-timestamp"));
    let signature = field("webhook-signature").strip_prefix("v1,").expect("version 1");
    let signature = STANDARD.decode(signature).expect("signatures are base64");
    hmac::verify(&key, &[signed.as_bytes(), body].concat(), &signature).expect("the signature is valid");
}
