"""A drop-in for ``async_batch_llm``: the names that programs use, on the driver of ``tollgate.batch``.

>>> import asyncio
>>> from tollgate.compat.batch_llm import CallableStrategy, CallOutcome, ProcessorConfig, process_prompts
>>> async def invoke(prompt, *, attempt, timeout, state):
...     return CallOutcome(prompt.upper(), token_usage={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5})
>>> batch = asyncio.run(process_prompts(CallableStrategy(invoke), ["one", "two"], config=ProcessorConfig(concurrency=10), preserve_order=True))
>>> list(batch.outputs()), batch.total_output_tokens
(['ONE', 'TWO'], 4)

What differs: cooldowns and the pace are learned, so that those settings are ignored with a warning. The default classifier reads the status of
HTTP, so that a 400 or a 401 is not tried again. Artifacts are journals of ``tollgate.batch``.
"""

from ._artifacts import JsonlArtifactStore, ResumePolicy
from ._classify import DefaultErrorClassifier, ErrorCategory, ErrorClassifier, ErrorInfo, TimeoutCategory
from ._config import AbortMode, AttemptUsage, GuardrailConfig, ProcessorConfig, RateLimitConfig, RetryConfig, StartupRampConfig
from ._errors import (
    ArtifactError,
    ArtifactFormatError,
    ArtifactIOError,
    ArtifactIdentityError,
    ArtifactSerializationError,
    AsyncBatchLLMError,
    BatchAbortedError,
    BatchAdmissionClosedError,
    BatchBudgetExceeded,
    BatchDeadlineExceeded,
    BatchInterruptedError,
    EmptyResponseError,
    FrameworkTimeoutError,
    ItemDeadlineExceeded,
    LLMCallError,
    ProviderResponseError,
    RateLimitRetriesExceeded,
    ResultSerializationError,
    StructuredOutputSchemaError,
    StructuredOutputValidationError,
    TokenTrackingError,
)
from ._models import llm
from ._pool import LLMCallPool, ParallelBatchProcessor
from ._quotas import TokenEstimateExceedsLimit, TokenEstimatorRequired
from ._results import AttemptTiming, BatchResult, BatchTermination, TokenUsage, WorkItemResult, WorkItemTiming
from ._runs import call, call_result, process_prompts, process_stream
from ._strategies import (
    ArtifactIdentity,
    CallOutcome,
    CallableStrategy,
    CharacterTokenEstimator,
    LLMCallStrategy,
    LLMWorkItem,
    RetryState,
    TokenEstimate,
)

__all__ = [
    "AbortMode",
    "ArtifactError",
    "ArtifactFormatError",
    "ArtifactIOError",
    "ArtifactIdentity",
    "ArtifactIdentityError",
    "ArtifactSerializationError",
    "AsyncBatchLLMError",
    "AttemptTiming",
    "AttemptUsage",
    "BatchAbortedError",
    "BatchAdmissionClosedError",
    "BatchBudgetExceeded",
    "BatchDeadlineExceeded",
    "BatchInterruptedError",
    "BatchResult",
    "BatchTermination",
    "CallOutcome",
    "CallableStrategy",
    "CharacterTokenEstimator",
    "DefaultErrorClassifier",
    "EmptyResponseError",
    "ErrorCategory",
    "ErrorClassifier",
    "ErrorInfo",
    "FrameworkTimeoutError",
    "GuardrailConfig",
    "ItemDeadlineExceeded",
    "JsonlArtifactStore",
    "LLMCallError",
    "LLMCallPool",
    "LLMCallStrategy",
    "LLMWorkItem",
    "ParallelBatchProcessor",
    "ProcessorConfig",
    "ProviderResponseError",
    "RateLimitConfig",
    "RateLimitRetriesExceeded",
    "ResultSerializationError",
    "ResumePolicy",
    "RetryConfig",
    "RetryState",
    "StartupRampConfig",
    "StructuredOutputSchemaError",
    "StructuredOutputValidationError",
    "TimeoutCategory",
    "TokenEstimate",
    "TokenEstimateExceedsLimit",
    "TokenEstimatorRequired",
    "TokenTrackingError",
    "TokenUsage",
    "WorkItemResult",
    "WorkItemTiming",
    "call",
    "call_result",
    "llm",
    "process_prompts",
    "process_stream",
]

