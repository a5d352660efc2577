//! LLM providers: the meaning of their replies, and estimates of requests. All of it is the crate `tollgate-provider`.

mod estimate;
mod hint;
mod reader;

pub(crate) use estimate::{PyEstimate, PyEstimator, estimate_tokens};
pub(crate) use hint::{PyHint, PyLimitReading, PyTokens, hint_of, read_reply, wall_time};
pub(crate) use reader::ReplyReader;
