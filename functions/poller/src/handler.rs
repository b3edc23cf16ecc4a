//! Between Lambda's runtime and the poller.

use std::{env, sync::Arc};

use anyhow::Context;
use futures_util::FutureExt;
use lambda_runtime::{Diagnostic, LambdaEvent, Runtime, service_fn};
use serde_json::Value;
use store_s3::{S3Store, Settings};
use telemetry::chain;
use tokio::sync::OnceCell;
use tracing::Instrument;

use crate::{Aws, Deadline, Environment, Poller};

/// What AWS's tools read custom endpoints from.
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

/// The poller, once there was an event.
struct Function {
    environment: Arc<Environment>,
    poller: OnceCell<Poller>,
}

/// Answers events until Lambda ends the process. Nothing is set up before the first one, as until there every millisecond
/// is part of the cold start.
///
/// # Errors
/// If Lambda's runtime API fails.
pub async fn serve(environment: Environment) -> Result<(), lambda_runtime::Error> {
    let function = Arc::new(Function {
        environment: Arc::new(environment),
        poller: OnceCell::new(),
    });
    let handler = service_fn(move |event: LambdaEvent<Value>| {
        let span = tracing::error_span!("invocation", request_id = event.context.request_id);
        let function = function.clone();
        // Boxed, because the state of a whole invocation is large, and so is its type.
        async move { function.answer(event).await }.instrument(span).boxed()
    });
    Runtime::new(handler).run().await
}

impl Function {
    async fn answer(&self, event: LambdaEvent<Value>) -> Result<Value, Diagnostic> {
        let deadline = Deadline::at(event.context.deadline());
        self.handle(event.payload, deadline).await.map_err(|error| {
            let error_message = chain(error.as_ref());
            tracing::error!(error = error_message, "the event failed");
            Diagnostic {
                error_type: "Poller.Failed".to_owned(),
                error_message,
            }
        })
    }

    async fn handle(&self, event: Value, deadline: Deadline) -> anyhow::Result<Value> {
        let poller = self.poller.get_or_try_init(|| connect(self.environment.clone()));
        poller.await?.handle(event, deadline).await
    }
}

/// Everything shares one SDK configuration, and so connections and credentials.
async fn connect(environment: Arc<Environment>) -> anyhow::Result<Poller> {
    let is_custom = ENDPOINTS
        .iter()
        .any(|name| env::var(name).is_ok_and(|url| !url.is_empty()));
    let settings = Settings {
        // Servers that are not AWS seldom have a host name for each bucket.
        path_style: is_custom,
        ..Settings::default()
    };
    let sdk = store_s3::sdk_config(&settings)
        .await
        .context("cannot set up the AWS clients")?;
    let store = S3Store::new(&sdk, environment.store.clone(), &settings);
    if is_custom {
        // AWS itself need not be asked.
        store
            .check_writes()
            .await
            .context("the store cannot be written by several")?;
    }
    let outside = Aws::new(sdk, &environment, settings.path_style);
    Ok(Poller::new(environment, Arc::new(store), Arc::new(outside)))
}
