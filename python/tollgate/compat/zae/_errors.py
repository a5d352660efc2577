"""The exceptions. All of them pickle."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import tollgate as tg

if TYPE_CHECKING:
    from ._models import LimitStatus


class ZAELimiterError(Exception):
    """Anything that is raised here."""


class RateLimitError(ZAELimiterError):
    """About limits."""


class InfrastructureError(ZAELimiterError):
    """About the store."""


class EntityError(ZAELimiterError):
    """About entities."""


class RateLimitExceeded(RateLimitError):
    """A limit denies the call. ``statuses`` are those of every limit of every entity that it would be charged to."""

    def __init__(self, statuses: list[LimitStatus], *, contended: bool = False) -> None:
        self.statuses, self.contended = list(statuses), contended
        self.violations = [status for status in self.statuses if status.exceeded]
        self.passed = [status for status in self.statuses if not status.exceeded]
        slowest = max(self.violations, key=lambda status: status.retry_after_seconds, default=None)
        self.primary_violation = slowest
        self.retry_after_seconds = slowest.retry_after_seconds if slowest else 0.0
        super().__init__(self._message())

    def _message(self) -> str:
        first = self.primary_violation
        if first is None:
            return "Rate limit exceeded"
        names = ", ".join(status.limit_name for status in self.violations)
        whose = f"{first.entity_id}/{first.resource}"
        return f"Rate limit exceeded for {whose}: [{names}]. Retry after {self.retry_after_seconds:.1f}s"

    @property
    def retry_after_header(self) -> str:
        """For the header ``Retry-After``: whole seconds."""
        return str(math.floor(self.retry_after_seconds) + 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the refusal as a dict, for an answer in JSON."""
        return {
            "error": "rate_limit_exceeded",
            "message": str(self),
            "contended": self.contended,
            "retry_after_seconds": self.retry_after_seconds,
            "retry_after_ms": math.ceil(self.retry_after_seconds * 1_000),
            "limits": [status.as_dict() for status in self.statuses],
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _exceeded, (self.statuses, self.contended)


def _exceeded(statuses: list[LimitStatus], contended: bool) -> RateLimitExceeded:
    return RateLimitExceeded(statuses, contended=contended)


class LeaseExpiredError(RateLimitError):
    """The lease has ended."""

    def __init__(self) -> None:
        super().__init__("the lease has ended; it can be used inside its block only")

    def __reduce__(self) -> tuple[Any, ...]:
        return LeaseExpiredError, ()


class RateLimiterUnavailable(InfrastructureError):
    """The store did not answer."""

    def __init__(
        self,
        message: str,
        cause: BaseException | None = None,
        *,
        stack_name: str | None = None,
        entity_id: str | None = None,
        resource: str | None = None,
    ) -> None:
        super().__init__(message)
        self.cause, self.stack_name, self.entity_id, self.resource = cause, stack_name, entity_id, resource

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),), {"entity_id": self.entity_id, "resource": self.resource}


class PermissionDenied(RateLimiterUnavailable):
    """The store refuses the call."""


class NamespaceNotFoundError(InfrastructureError):
    """There is no such namespace."""


class NamespaceStateError(InfrastructureError):
    """The status of the namespace does not allow it."""


class EntityNotFoundError(EntityError):
    """There is no such entity."""


class EntityExistsError(EntityError):
    """There is such an entity already."""


class ValidationError(ZAELimiterError):
    """An argument is not valid."""

    def __init__(self, field: str, value: str, reason: str) -> None:
        super().__init__(reason)
        self.field, self.value, self.reason = field, value, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field, self.value, self.reason)


class ResourceDisabled(ZAELimiterError):
    """The entity or the resource is disabled."""

    def __init__(self, entity_id: str, resource: str, level: str) -> None:
        super().__init__(f"{resource or entity_id} is disabled")
        self.entity_id, self.resource, self.level = entity_id, resource, level

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entity_id, self.resource, self.level)


def translated(error: Exception) -> Exception:
    """Return the exception of this package for one of the library; others stay as they are."""
    made = _translated(error)
    if made is not error:
        made.__cause__ = error
    return made


def _translated(error: Exception) -> Exception:
    text = str(error)
    match error:
        case tg.RateLimited():
            from ._models import LimitStatus

            return RateLimitExceeded([LimitStatus.of(status) for status in error.statuses])
        case tg.NoLimits():
            return ValidationError("limits", "", text)
        case tg.NotFound():
            return NamespaceNotFoundError(text) if text.startswith(("namespace", "there is no namespace")) else EntityNotFoundError(text)
        case tg.AlreadyExists():
            return EntityExistsError(text)
        case tg.Conflict():
            return NamespaceStateError(text) if text.startswith("namespace") else ValidationError("entity_id", "", text)
        case tg.Disabled():
            found = re.match(r'(?:resource "(?P<resource>[^"]*)"(?: for )?)?(?:entity "(?P<entity>[^"]*)")?', text)
            entity, resource = (found["entity"], found["resource"]) if found else (None, None)
            level = "entity" if entity else "resource"
            return ResourceDisabled(entity or "", resource or "", level)
        case tg.Unavailable():
            return RateLimiterUnavailable(text, error)
        case tg.StoreRefused():
            return PermissionDenied(text, error)
        case tg.LeaseEnded():
            return LeaseExpiredError()
        case tg.InvalidValue() | tg.InvalidDemand() | tg.Impossible():
            return ValidationError("argument", "", text)
        case tg.Error():
            return ZAELimiterError(text)
    return error
