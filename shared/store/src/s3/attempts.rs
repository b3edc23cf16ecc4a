use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use aws_runtime::auth::PayloadSigningOverride;
use aws_sdk_s3::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::{
            BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
            BeforeTransmitInterceptorContextRef,
        },
    },
    error::BoxError,
    primitives::{DateTime, DateTimeFormat},
};
use aws_smithy_runtime_api::client::{
    interceptors::context::InterceptorContext,
    retries::classifiers::{ClassifyRetry, RetryAction},
};
use aws_smithy_types::retry::ErrorKind;
use model::Sha256;
use parking_lot::Mutex;

/// Number of times that the SDK sent a request. After more than one, an answer may be about the effect of an earlier one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts(Arc<AtomicU32>);

impl Attempts {
    pub(crate) fn repeated(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

impl Intercept for Attempts {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn read_before_transmit(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Repeats a request after 429, which the SDK does not. R2 and Google Cloud Storage answer it to writers that write one object more than
/// once in a second.
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
                // Writers that were refused at the same time must not all come back at the same time.
                Duration::from_secs(1).mul_f64(1.0 + rand::random::<f64>()),
            ),
            _ => RetryAction::NoActionIndicated,
        }
    }
}

/// Signs a known hash of the payload. Without it the SDK hashes a body in memory and signs nothing of a streamed one
/// (`UNSIGNED-PAYLOAD`), whose bytes plain HTTP would not protect then.
#[derive(Debug)]
pub(crate) struct SignedPayload(pub(crate) Sha256);

impl Intercept for SignedPayload {
    fn name(&self) -> &'static str {
        "SignedPayload"
    }

    fn modify_before_signing(
        &self,
        _context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let signed = PayloadSigningOverride::Precomputed(self.0.to_string());
        config.interceptor_state().store_put(signed);
        Ok(())
    }
}

/// The `Date` of the last answer to a request, which the SDK does not hand on.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerDate(Arc<Mutex<Option<SystemTime>>>);

impl AnswerDate {
    pub(crate) fn get(&self) -> Option<SystemTime> {
        *self.0.lock()
    }
}

impl Intercept for AnswerDate {
    fn name(&self) -> &'static str {
        "AnswerDate"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let date = date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok());
        let date = date.and_then(|date| SystemTime::try_from(date).ok());
        *self.0.lock() = date;
        Ok(())
    }
}
