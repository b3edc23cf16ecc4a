use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use aws_sdk_s3::{
    config::{ConfigBag, Intercept, RuntimeComponents, interceptors::BeforeTransmitInterceptorContextRef},
    error::BoxError,
};

/// How often the SDK sent a request. After more than one attempt an answer may speak of what an earlier one did.
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
