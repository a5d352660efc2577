//! Bound of the length of a reply.

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeDeserializationInterceptorContextMut;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::ConfigBag;
use http_body_util::Limited;

/// How long a reply may be, in bytes. The service reads 16 MB at once at most; as text that is a few times as much.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Breaks off a reply that is longer than any of the service's. The SDK keeps a whole reply in memory.
#[derive(Debug)]
pub(crate) struct Bounded;

impl Intercept for Bounded {
    fn name(&self) -> &'static str {
        "Bounded"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response_mut().body_mut();
        // A body in memory has its length already.
        if body.bytes().is_none() {
            let unread = std::mem::replace(body, SdkBody::taken());
            *body = SdkBody::from_body_1_x(Limited::new(unread, ANSWER_BYTES_MAX));
        }
        Ok(())
    }
}
