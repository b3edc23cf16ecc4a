use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use aws_runtime::auth::PayloadSigningOverride;
use aws_sdk_s3::config::interceptors::{
    BeforeTransmitInterceptorContextMut, FinalizerInterceptorContextRef,
};
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;
use aws_sdk_s3::primitives::{DateTime, DateTimeFormat};
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};
use aws_smithy_types::retry::ErrorKind;
use model::Sha256;
use parking_lot::Mutex;

/// Facts about one request that the SDK does not hand on, and the hash of its payload, which the
/// SDK does not take.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    is_repeated: Arc<AtomicBool>,
    date: Arc<Mutex<Option<SystemTime>>>,
    payload: Option<Sha256>,
}

impl Exchange {
    /// Signs this hash of the payload. Without it the SDK hashes a body in memory and signs nothing
    /// of a streamed one (`UNSIGNED-PAYLOAD`), whose bytes plain HTTP would not protect then.
    pub(crate) fn signing(payload: Sha256) -> Self {
        Self {
            payload: Some(payload),
            ..Self::default()
        }
    }

    /// True if the SDK sent the request more than once: an answer may be about the effect of an
    /// earlier one.
    pub(crate) fn is_repeated(&self) -> bool {
        self.is_repeated.load(Ordering::Relaxed)
    }

    /// Returns the `Date` of the last answer.
    pub(crate) fn date(&self) -> Option<SystemTime> {
        *self.date.lock()
    }
}

impl Intercept for Exchange {
    fn name(&self) -> &'static str {
        "Exchange"
    }

    fn modify_before_signing(
        &self,
        _context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(payload) = self.payload {
            let signed = PayloadSigningOverride::Precomputed(payload.to_string());
            config.interceptor_state().store_put(signed);
        }
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let attempts = config.load::<RequestAttempts>();
        let is_repeated = attempts.is_some_and(|made| made.attempts() > 1);
        self.is_repeated.store(is_repeated, Ordering::Relaxed);
        let answer = context.response();
        let date = answer.and_then(|answer| answer.headers().get("date"));
        *self.date.lock() = date.and_then(http_date);
        Ok(())
    }
}

/// Reads a date of HTTP (RFC 9110, section 5.6.7).
fn http_date(text: &str) -> Option<SystemTime> {
    let date = DateTime::from_str(text, DateTimeFormat::HttpDate).ok()?;
    date.try_into().ok()
}

/// Repeats a request after 429, which the SDK does not. R2 and Google Cloud Storage answer it to
/// writers that write one object more than once in a second.
#[derive(Debug)]
pub(crate) struct TooManyWrites;

impl ClassifyRetry for TooManyWrites {
    fn name(&self) -> &'static str {
        "TooManyWrites"
    }

    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        match context.response().map(|answer| answer.status().as_u16()) {
            Some(429) => RetryAction::retryable_error_with_explicit_delay(
                ErrorKind::ThrottlingError,
                // Writers that were refused at the same time must not all come back at the same
                // time.
                Duration::from_secs(1).mul_f64(1.0 + rand::random::<f64>()),
            ),
            _ => RetryAction::NoActionIndicated,
        }
    }
}
