//! Connects Lambda's runtime with the poller.

use std::sync::Arc;

use anyhow::Context;
use config::ConfigProblems;
use futures_util::FutureExt;
use lambda_runtime::{Diagnostic, LambdaEvent, Runtime, service_fn};
use model::text::{Chain, chain};
use serde_json::Value;
use store::s3::{S3Settings, S3Store};
use tokio::sync::OnceCell;
use tracing::Instrument;

use crate::{Aws, Deadline, Environment, Poller};

/// State of the function between its events.
struct Function {
    /// Settings, or the problems with which each event fails.
    environment: Result<Arc<Environment>, ConfigProblems>,
    /// Set by the first event that can reach the store.
    poller: OnceCell<Poller>,
}

/// Answers events until Lambda ends the process. Without an environment each event fails with its
/// problems, since Lambda shows them to the caller.
///
/// # Errors
/// If Lambda's runtime API fails.
pub async fn serve(
    environment: Result<Environment, ConfigProblems>,
) -> Result<(), lambda_runtime::Error> {
    let function = Arc::new(Function {
        environment: environment.map(Arc::new),
        // Connected by the first event: every millisecond before it is part of the cold start.
        poller: OnceCell::new(),
    });
    let handler = service_fn(move |event: LambdaEvent<Value>| {
        // At the level of errors, so that the lines of every log level have the request's id.
        let span = tracing::error_span!("invocation", request_id = event.context.request_id);
        let function = function.clone();
        // Boxed, because the state of a whole invocation is large, and so is its type.
        async move { function.answer(event).await }
            .instrument(span)
            .boxed()
    });
    Runtime::new(handler).run().await
}

impl Function {
    async fn answer(&self, event: LambdaEvent<Value>) -> Result<Value, Diagnostic> {
        let deadline = Deadline::at(event.context.deadline());
        let error = match self.handle(event.payload, deadline).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        tracing::error!(error = %Chain(error.as_ref()), "the event failed");
        Err(Diagnostic {
            error_type: "Poller.Failed".to_owned(),
            error_message: chain(error.as_ref()),
        })
    }

    async fn handle(&self, event: Value, deadline: Deadline) -> anyhow::Result<Value> {
        let environment = match &self.environment {
            Ok(environment) => environment,
            Err(problems) => anyhow::bail!("{problems}"),
        };
        // A connection that fails is tried again by the next event, since the cell stays empty.
        let connecting = self.poller.get_or_try_init(|| connect(environment.clone()));
        connecting.await?.handle(event, deadline).await
    }
}

/// Connects the poller with AWS. All clients share one SDK configuration, and with it connections
/// and credentials.
async fn connect(environment: Arc<Environment>) -> anyhow::Result<Poller> {
    let settings = S3Settings {
        proxy_of: Some(source::proxy_of_environment),
        ..S3Settings::of_environment()
    };
    let sdk = store::s3::sdk_config(&settings).await;
    let sdk = sdk.context("cannot set up the AWS clients")?;
    let store = S3Store::new(&sdk, environment.store.clone(), &settings);
    if settings.path_style {
        // AWS is known to support conditional writes; other servers may ignore the condition.
        store
            .check_writes()
            .await
            .context("the store does not support several writers")?;
    }
    let services = Aws::new(sdk, settings.path_style);
    Ok(Poller::new(
        environment,
        Arc::new(store),
        Arc::new(services),
    ))
}
