//! The examples of the guide and of the migration pages, run as tests.

#[doc = include_str!("../../../docs/guide/batches.md")]
struct Batches;

#[doc = include_str!("../../../docs/migration/async-batch-llm.md")]
struct FromAsyncBatchLlm;
