"""What an exception means: the categories and classifiers of async-batch-llm."""

from __future__ import annotations

import enum
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import tollgate as tg
from tollgate import batch

from ._errors import (
    BatchAbortedError,
    BatchBudgetExceeded,
    BatchDeadlineExceeded,
    EmptyResponseError,
    FrameworkTimeoutError,
    ItemDeadlineExceeded,
    ProviderResponseError,
    RateLimitRetriesExceeded,
    StructuredOutputSchemaError,
    StructuredOutputValidationError,
)


class ErrorCategory(str, enum.Enum):
    """What kind of failure it was; a text.

    >>> from tollgate.compat.batch_llm import ErrorCategory
    >>> ErrorCategory.RATE_LIMIT == "rate_limit", str(ErrorCategory.RATE_LIMIT)
    (True, 'rate_limit')
    """

    RATE_LIMIT = "rate_limit"
    INSUFFICIENT_BALANCE = "insufficient_balance"
    QUOTA_EXHAUSTED = "quota_exhausted"
    USAGE_LIMIT_EXCEEDED = "usage_limit_exceeded"
    AUTHENTICATION = "authentication"
    PERMISSION_DENIED = "permission_denied"
    CLIENT_ERROR = "client_error"
    SERVER_ERROR = "server_error"
    SERVER_OVERLOAD = "server_overload"
    SERVER_TIMEOUT = "server_timeout"
    UPSTREAM_ERROR = "upstream_error"
    API_ERROR = "api_error"
    API_TIMEOUT = "api_timeout"
    TIMEOUT = "timeout"
    NETWORK_ERROR = "network_error"
    CONNECTION_ERROR = "connection_error"
    VALIDATION_ERROR = "validation_error"
    STRUCTURED_OUTPUT_VALIDATION_ERROR = "structured_output_validation_error"
    STRUCTURED_OUTPUT_SCHEMA_REJECTED = "structured_output_schema_rejected"
    LOGIC_ERROR = "logic_error"
    EMPTY_RESPONSE = "empty_response"
    UNKNOWN = "unknown"
    CLASSIFIER_ERROR = "classifier_error"
    FRAMEWORK_TIMEOUT = "framework_timeout"
    RATE_LIMIT_RETRIES_EXCEEDED = "rate_limit_retries_exceeded"
    FRAMEWORK_TOTAL_ITEM_TIMEOUT = "framework_total_item_timeout"
    BATCH_DEADLINE_EXCEEDED = "batch_deadline_exceeded"
    BATCH_ABORTED = "batch_aborted"
    BATCH_BUDGET_EXCEEDED = "batch_budget_exceeded"
    TOKEN_ESTIMATOR_REQUIRED = "token_estimator_required"
    TOKEN_ESTIMATION_ERROR = "token_estimation_error"
    TOKEN_ESTIMATE_EXCEEDS_LIMIT = "token_estimate_exceeds_limit"
    QUOTA_SCOPE_ERROR = "quota_scope_error"
    MIDDLEWARE_CONTRACT_ERROR = "middleware_contract_error"
    MIDDLEWARE_FILTERED = "middleware_filtered"
    ARTIFACT_PREPARATION_ERROR = "artifact_preparation_error"
    ARTIFACT_SERIALIZATION_ERROR = "artifact_serialization_error"

    def __str__(self) -> str:
        return str(self.value)


class TimeoutCategory(str, enum.Enum):
    """Which time has passed; a text.

    >>> from tollgate.compat.batch_llm import TimeoutCategory
    >>> str(TimeoutCategory.ADMISSION_TIMEOUT)
    'admission_timeout'
    """

    FRAMEWORK_EXECUTION_TIMEOUT = "framework_execution_timeout"
    FRAMEWORK_TOTAL_ITEM_TIMEOUT = "framework_total_item_timeout"
    PROVIDER_OR_TRANSPORT_TIMEOUT = "provider_or_transport_timeout"
    ADMISSION_TIMEOUT = "admission_timeout"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class ErrorInfo:
    """What a classifier says of an exception.

    >>> from tollgate.compat.batch_llm import ErrorInfo
    >>> ErrorInfo(is_retryable=True, is_rate_limit=True, is_timeout=False, error_category="rate_limit", suggested_wait=7.0).suggested_wait
    7.0
    """

    is_retryable: bool
    is_rate_limit: bool
    is_timeout: bool
    error_category: str
    suggested_wait: float | None = None
    hint: str | None = None


class ErrorClassifier(ABC):
    """Decides which exceptions are rate limits, and which are tried again.

    >>> from tollgate.compat.batch_llm import ErrorClassifier, ErrorInfo
    >>> class Strict(ErrorClassifier):
    ...     def classify(self, exception):
    ...         return ErrorInfo(False, False, False, "client_error")
    >>> Strict().classify(ValueError()).is_retryable
    False
    """

    @abstractmethod
    def classify(self, exception: Exception) -> ErrorInfo:
        """Return what the exception means."""


class DefaultErrorClassifier(ErrorClassifier):
    """Reads status and headers that an exception carries, then its type and its text.

    async-batch-llm has a classifier for each provider, which knows these statuses; its default tries every status but 429 again.

    >>> from tollgate.compat.batch_llm import DefaultErrorClassifier
    >>> info = DefaultErrorClassifier().classify(RuntimeError("429 Too Many Requests"))
    >>> info.is_rate_limit, info.error_category
    (True, 'rate_limit')
    """

    def classify(self, exception: Exception) -> ErrorInfo:
        for kinds, info in _BY_TYPE:
            if isinstance(exception, kinds):
                return info
        if isinstance(exception, (batch.Throttled, tg.RateLimited)):
            wait = exception.retry_after
            seconds = wait.total_seconds() if isinstance(wait, timedelta) else wait
            return ErrorInfo(True, True, False, ErrorCategory.RATE_LIMIT.value, seconds)
        status, headers, text = status_of(exception), _headers_of(exception), str(exception).lower()
        if status is not None and not 200 <= status < 400:
            return _of_status(status, headers, f"{getattr(exception, 'code', '')} {text}")
        name = type(exception).__name__
        if isinstance(exception, TimeoutError) or "Timeout" in name:
            return ErrorInfo(True, False, True, ErrorCategory.API_TIMEOUT.value)
        if isinstance(exception, ConnectionError):
            return ErrorInfo(True, False, False, ErrorCategory.CONNECTION_ERROR.value)
        if "Connection" in name or "ConnectError" in name:
            return ErrorInfo(True, False, False, ErrorCategory.NETWORK_ERROR.value)
        if _is_program_error(exception):
            return ErrorInfo(False, False, False, ErrorCategory.LOGIC_ERROR.value)
        if re.search(r"\b429\b|rate.?limit|too many requests", text):
            return _rate_limit(headers)
        return ErrorInfo(True, False, False, ErrorCategory.UNKNOWN.value)


def _info(category: ErrorCategory, *, again: bool = False, timeout: bool = False) -> ErrorInfo:
    return ErrorInfo(again, False, timeout, category.value)


_BY_TYPE: list[tuple[type[BaseException], ErrorInfo]] = [
    (FrameworkTimeoutError, _info(ErrorCategory.FRAMEWORK_TIMEOUT, again=True, timeout=True)),
    (ItemDeadlineExceeded, _info(ErrorCategory.FRAMEWORK_TOTAL_ITEM_TIMEOUT, timeout=True)),
    (BatchDeadlineExceeded, _info(ErrorCategory.BATCH_DEADLINE_EXCEEDED, timeout=True)),
    (BatchBudgetExceeded, _info(ErrorCategory.BATCH_BUDGET_EXCEEDED)),
    (BatchAbortedError, _info(ErrorCategory.BATCH_ABORTED)),
    (RateLimitRetriesExceeded, _info(ErrorCategory.RATE_LIMIT_RETRIES_EXCEEDED)),
    (EmptyResponseError, _info(ErrorCategory.EMPTY_RESPONSE)),
    (StructuredOutputSchemaError, _info(ErrorCategory.STRUCTURED_OUTPUT_SCHEMA_REJECTED)),
    (StructuredOutputValidationError, _info(ErrorCategory.STRUCTURED_OUTPUT_VALIDATION_ERROR, again=True)),
]


def _is_program_error(exception: Exception) -> bool:
    """Faults of a program stay: another attempt finds them again. Errors of validation, which are ValueErrors too, may pass."""
    if any(kind.__name__ == "ValidationError" for kind in type(exception).__mro__):
        return False
    return isinstance(exception, (ValueError, TypeError, LookupError, AttributeError, NameError, ArithmeticError, AssertionError))


def status_of(exception: Exception) -> int | None:
    """Return the status of HTTP that an error of an SDK carries."""
    response = getattr(exception, "response", None)
    if isinstance(response, dict):
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        found = getattr(response, "status_code", None) or getattr(exception, "status_code", None)
    if found is None and isinstance(exception, ProviderResponseError):
        found = exception.code
    return found if isinstance(found, int) and not isinstance(found, bool) and 100 <= found <= 999 else None


def _headers_of(exception: Exception) -> Any:
    response = getattr(exception, "response", None)
    if isinstance(response, dict):
        return response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return getattr(response, "headers", None) or {}


def _of_status(status: int, headers: Any, text: str) -> ErrorInfo:
    if re.search(r"insufficient_(quota|balance)|billing|payment required", text) and status in (402, 403, 429):
        return _info(ErrorCategory.INSUFFICIENT_BALANCE)
    if status in (429, 529):
        return _rate_limit(headers)
    known = {
        401: ErrorCategory.AUTHENTICATION,
        402: ErrorCategory.INSUFFICIENT_BALANCE,
        403: ErrorCategory.PERMISSION_DENIED,
        408: ErrorCategory.SERVER_ERROR,
    }.get(status)
    if known is None:
        known = ErrorCategory.SERVER_ERROR if status >= 500 else ErrorCategory.CLIENT_ERROR
    return _info(known, again=status == 408 or status >= 500, timeout=status == 504)


def _rate_limit(headers: Any) -> ErrorInfo:
    return ErrorInfo(True, True, False, ErrorCategory.RATE_LIMIT.value, _retry_after(headers))


def _retry_after(headers: Any) -> float | None:
    text = next((str(value) for name, value in dict(headers).items() if str(name).lower() == "retry-after"), None)
    if text is None:
        return None
    try:
        wait = float(text)
    except ValueError:
        try:
            wait = (parsedate_to_datetime(text) - datetime.now(timezone.utc)).total_seconds()
        except (TypeError, ValueError):
            return None
    return wait if 0 <= wait < 31 * 86_400 else None
