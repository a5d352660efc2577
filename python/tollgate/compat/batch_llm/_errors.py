"""The exceptions of async-batch-llm, with its names and bases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class AsyncBatchLLMError(Exception):
    """The base of all exceptions of this package.

    >>> from tollgate.compat.batch_llm import AsyncBatchLLMError, BatchDeadlineExceeded
    >>> issubclass(BatchDeadlineExceeded, AsyncBatchLLMError), issubclass(BatchDeadlineExceeded, TimeoutError)
    (True, True)
    """


class _ItemError(AsyncBatchLLMError):
    def __init__(self, message: str, *, item_id: str | None = None) -> None:
        super().__init__(message)
        self.item_id = item_id


class _UsageError(AsyncBatchLLMError):
    """An error of a call that has used tokens, which are counted."""

    def __init__(self, message: str, *, token_usage: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.token_usage: dict[str, int] = dict(token_usage or {})


class FrameworkTimeoutError(AsyncBatchLLMError, TimeoutError):
    """A call took longer than ``attempt_timeout``.

    >>> from tollgate.compat.batch_llm import FrameworkTimeoutError
    >>> FrameworkTimeoutError("too long", timeout_limit=30.0).timeout_limit
    30.0
    """

    def __init__(
        self, message: str, *, item_id: str | None = None, elapsed: float | None = None, timeout_limit: float | None = None
    ) -> None:
        super().__init__(message)
        self.item_id, self.elapsed, self.timeout_limit = item_id, elapsed, timeout_limit


class ItemDeadlineExceeded(_ItemError, TimeoutError):
    """An item took longer than ``total_timeout_per_item``.

    >>> from tollgate.compat.batch_llm import ItemDeadlineExceeded
    >>> ItemDeadlineExceeded("too long", item_id="a").item_id
    'a'
    """


class BatchDeadlineExceeded(_ItemError, TimeoutError):
    """The batch took longer than ``batch_timeout``.

    >>> from tollgate.compat.batch_llm import BatchDeadlineExceeded
    >>> str(BatchDeadlineExceeded("too long"))
    'too long'
    """


class BatchAbortedError(_ItemError, RuntimeError):
    """The batch ended before this item was done.

    >>> from tollgate.compat.batch_llm import BatchAbortedError
    >>> str(BatchAbortedError("aborted", item_id="a"))
    'aborted'
    """


class BatchBudgetExceeded(BatchAbortedError):
    """The budget of the batch was used up before this item was done.

    >>> from tollgate.compat.batch_llm import BatchAbortedError, BatchBudgetExceeded
    >>> issubclass(BatchBudgetExceeded, BatchAbortedError)
    True
    """


class BatchInterruptedError(AsyncBatchLLMError, RuntimeError):
    """A batch was interrupted.

    >>> from tollgate.compat.batch_llm import BatchInterruptedError
    >>> issubclass(BatchInterruptedError, RuntimeError)
    True
    """


class BatchAdmissionClosedError(AsyncBatchLLMError, RuntimeError):
    """A processor takes no more work.

    >>> from tollgate.compat.batch_llm import BatchAdmissionClosedError
    >>> issubclass(BatchAdmissionClosedError, RuntimeError)
    True
    """


class LLMCallError(AsyncBatchLLMError, RuntimeError):
    """A call failed without an exception of its own; ``result`` has the facts.

    >>> from tollgate.compat.batch_llm import LLMCallError
    >>> LLMCallError("submit timed out").result is None
    True
    """

    def __init__(self, message: str, *, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class RateLimitRetriesExceeded(AsyncBatchLLMError):
    """The provider throttled an item too often.

    >>> from tollgate.compat.batch_llm import RateLimitRetriesExceeded
    >>> RateLimitRetriesExceeded("too often", rate_limit_retries=2).rate_limit_retries
    2
    """

    def __init__(self, message: str, *, item_id: str | None = None, rate_limit_retries: int | None = None) -> None:
        super().__init__(message)
        self.item_id, self.rate_limit_retries = item_id, rate_limit_retries


class EmptyResponseError(_UsageError, ValueError):
    """The provider answered without a text.

    >>> from tollgate.compat.batch_llm import EmptyResponseError
    >>> EmptyResponseError("empty", token_usage={"total_tokens": 3}).token_usage
    {'total_tokens': 3}
    """


class StructuredOutputSchemaError(_UsageError, ValueError):
    """The provider refuses the schema.

    >>> from tollgate.compat.batch_llm import StructuredOutputSchemaError
    >>> issubclass(StructuredOutputSchemaError, ValueError)
    True
    """


class StructuredOutputValidationError(AsyncBatchLLMError, ValueError):
    """An output does not match its schema; it is tried again.

    >>> from tollgate.compat.batch_llm import StructuredOutputValidationError
    >>> issubclass(StructuredOutputValidationError, ValueError)
    True
    """


class TokenTrackingError(_UsageError):
    """A failure of a call that has used tokens.

    >>> from tollgate.compat.batch_llm import TokenTrackingError
    >>> TokenTrackingError("not JSON", token_usage={"total_tokens": 3}).token_usage
    {'total_tokens': 3}
    """


class ProviderResponseError(_UsageError):
    """A reply of the provider that reports an error in its body.

    >>> from tollgate.compat.batch_llm import ProviderResponseError
    >>> ProviderResponseError("refused", code=502).code
    502
    """

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        provider_error: Any = None,
        token_usage: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(message, token_usage=token_usage)
        self.code, self.provider_error = code, provider_error


class ArtifactError(AsyncBatchLLMError, RuntimeError):
    """An artifact store cannot be used.

    >>> from tollgate.compat.batch_llm import ArtifactError, ArtifactIOError
    >>> issubclass(ArtifactIOError, ArtifactError)
    True
    """


class ArtifactIdentityError(ArtifactError):
    """It is not known what has made the results of an item.

    >>> from tollgate.compat.batch_llm import ArtifactError, ArtifactIdentityError
    >>> issubclass(ArtifactIdentityError, ArtifactError)
    True
    """


class ArtifactFormatError(ArtifactError):
    """A file is no artifact store of this package.

    >>> from tollgate.compat.batch_llm import ArtifactError, ArtifactFormatError
    >>> issubclass(ArtifactFormatError, ArtifactError)
    True
    """


class ArtifactIOError(ArtifactError):
    """An artifact store cannot be read or written.

    >>> from tollgate.compat.batch_llm import ArtifactError, ArtifactIOError
    >>> issubclass(ArtifactIOError, ArtifactError)
    True
    """


class ArtifactSerializationError(ArtifactError):
    """A result is not JSON.

    >>> from tollgate.compat.batch_llm import ArtifactError, ArtifactSerializationError
    >>> issubclass(ArtifactSerializationError, ArtifactError)
    True
    """


class ResultSerializationError(AsyncBatchLLMError, ValueError):
    """A result cannot be written as JSON, or read.

    >>> from tollgate.compat.batch_llm import BatchResult, ResultSerializationError
    >>> try:
    ...     BatchResult.from_json("{}")
    ... except ResultSerializationError as error:
    ...     print(error)
    no batch_result of schema async-batch-llm-result, version 1
    """
