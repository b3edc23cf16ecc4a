use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::SystemTime,
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
