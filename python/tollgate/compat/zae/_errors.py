"""The exceptions. All of them pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._statuses import LimitStatus


class ZAELimiterError(Exception):
    """Anything that is raised here.

    >>> from tollgate.compat.zae import ZAELimiterError, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> try:
    ...     limiter.set_parent("nobody", None)
    ... except ZAELimiterError as error:
    ...     print(error)
    Entity not found: nobody
    """


class RateLimitError(ZAELimiterError):
    """About limits.

    >>> from tollgate.compat.zae import LeaseExpiredError, RateLimitError, RateLimitExceeded
    >>> issubclass(RateLimitExceeded, RateLimitError) and issubclass(LeaseExpiredError, RateLimitError)
    True
    """


class InfrastructureError(ZAELimiterError):
    """About the store.

    >>> from tollgate.compat.zae import InfrastructureError, NamespaceNotFoundError, RateLimiterUnavailable
    >>> issubclass(RateLimiterUnavailable, InfrastructureError) and issubclass(NamespaceNotFoundError, InfrastructureError)
    True
    """


class EntityError(ZAELimiterError):
    """About entities.

    >>> from tollgate.compat.zae import EntityError, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> try:
    ...     limiter.set_parent("nobody", None)
    ... except EntityError as error:
    ...     print(error)
    Entity not found: nobody
    """


class VersionError(ZAELimiterError):
    """About versions of the records.

    >>> from tollgate.compat.zae import IncompatibleSchemaError, VersionError
    >>> issubclass(IncompatibleSchemaError, VersionError)
    True
    """


class RateLimitExceeded(RateLimitError):
    """A limit denies the call. ``statuses`` are those of every limit of every entity that it would be charged to.

    >>> from tollgate.compat.zae import Limit, RateLimitExceeded, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> try:
    ...     with limiter.acquire("key-1", "gpt-4", {"rpm": 9}, [Limit.per_hour("rpm", 8)]):
    ...         pass
    ... except RateLimitExceeded as error:
    ...     print(error, error.retry_after_header)
    Rate limit exceeded for key-1/gpt-4: [rpm]. Retry after 450.0s 451
    """

    def __init__(self, statuses: list[LimitStatus], *, contended: bool = False) -> None:
        self.statuses, self.contended = list(statuses), contended
        self.violations = [status for status in self.statuses if status.exceeded]
        self.passed = [status for status in self.statuses if not status.exceeded]
        candidates = self.violations or (self.statuses if contended else [])
        if not candidates:
            raise ValueError("a refusal needs a limit that is exceeded")
        self.primary_violation = max(candidates, key=lambda status: status.retry_after_seconds)
        self.retry_after_seconds = self.primary_violation.retry_after_seconds
        super().__init__(self._message())

    def _message(self) -> str:
        first = self.primary_violation
        if not self.violations:
            whose = f"{first.entity_id}/{first.resource}"
            return f"Rate limiter contended for {whose}. Retry after {self.retry_after_seconds:.1f}s"
        names = ", ".join(status.limit_name for status in self.violations)
        whose = f"{first.entity_id}/{first.resource}"
        return f"Rate limit exceeded for {whose}: [{names}]. Retry after {self.retry_after_seconds:.1f}s"

    @property
    def retry_after_header(self) -> str:
        """For the header ``Retry-After``: whole seconds."""
        return str(int(self.retry_after_seconds) + 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the refusal as a dict, for an answer in JSON."""
        return {
            "error": "rate_limit_exceeded",
            "message": str(self),
            "contended": self.contended,
            "retry_after_seconds": self.retry_after_seconds,
            "retry_after_ms": int(self.retry_after_seconds * 1_000),
            "limits": [status.as_dict() for status in self.statuses],
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _exceeded, (self.statuses, self.contended)


def _exceeded(statuses: list[LimitStatus], contended: bool) -> RateLimitExceeded:
    return RateLimitExceeded(statuses, contended=contended)


class LeaseExpiredError(RateLimitError):
    """The lease has ended.

    >>> from tollgate.compat.zae import LeaseExpiredError
    >>> str(LeaseExpiredError())
    'Lease is no longer active'
    """

    def __init__(self) -> None:
        super().__init__("Lease is no longer active")

    def __reduce__(self) -> tuple[Any, ...]:
        return LeaseExpiredError, ()


class RateLimiterUnavailable(InfrastructureError):
    """The store did not answer, and the policy is to block.

    >>> from tollgate.compat.zae import RateLimiterUnavailable
    >>> print(RateLimiterUnavailable("no answer", stack_name="limits", entity_id="key-1"))
    no answer [stack=limits, entity=key-1]
    """

    def __init__(
        self,
        message: str,
        cause: Exception | None = None,
        *,
        stack_name: str | None = None,
        entity_id: str | None = None,
        resource: str | None = None,
    ) -> None:
        named = {"stack": stack_name, "entity": entity_id, "resource": resource}
        where = ", ".join(f"{key}={value}" for key, value in named.items() if value)
        super().__init__(f"{message} [{where}]" if where else message)
        self.cause, self.stack_name, self.entity_id, self.resource = cause, stack_name, entity_id, resource
        self._message = message

    def __reduce__(self) -> tuple[Any, ...]:
        # The cause stays where it is: those of drivers do not pickle.
        return _unavailable, (type(self), self._message, self.stack_name, self.entity_id, self.resource)


def _unavailable(
    kind: type[RateLimiterUnavailable], message: str, stack: str | None, entity: str | None, resource: str | None
) -> RateLimiterUnavailable:
    return kind(message, stack_name=stack, entity_id=entity, resource=resource)


class PermissionDenied(RateLimiterUnavailable):
    """The store refuses the call, whatever the policy is.

    >>> from tollgate.compat.zae import PermissionDenied, RateLimiterUnavailable
    >>> issubclass(PermissionDenied, RateLimiterUnavailable)
    True
    """


class _Named(ZAELimiterError):
    """An exception whose message is made from the arguments; it pickles by them."""

    _arguments: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments


class StackOperationError(InfrastructureError, _Named):
    """An operation on a stack failed. Never raised here: stacks are not managed.

    >>> from tollgate.compat.zae import StackOperationError
    >>> print(StackOperationError("limits", "why"))
    Stack 'limits' operation failed: why
    """

    def __init__(self, stack_name: str, reason: str, events: list[dict[str, Any]] | None = None) -> None:
        super().__init__(f"Stack '{stack_name}' operation failed: {reason}")
        self.stack_name, self.reason, self.events = stack_name, reason, events or []
        self._arguments = (stack_name, reason, self.events)


class StackAlreadyExistsError(InfrastructureError, _Named):
    """There is such a stack. Never raised here: stacks are not managed.

    >>> from tollgate.compat.zae import StackAlreadyExistsError
    >>> StackAlreadyExistsError("limits").stack_name
    'limits'
    """

    def __init__(self, stack_name: str) -> None:
        super().__init__(f"Stack '{stack_name}' already exists")
        self.stack_name, self._arguments = stack_name, (stack_name,)


class InfrastructureNotFoundError(InfrastructureError, _Named):
    """There is no such table.

    >>> from tollgate.compat.zae import InfrastructureNotFoundError
    >>> InfrastructureNotFoundError("limits").stack_name
    'limits'
    """

    def __init__(self, stack_name: str) -> None:
        super().__init__(f"Infrastructure not found for stack '{stack_name}'")
        self.stack_name, self._arguments = stack_name, (stack_name,)


class NamespaceNotFoundError(InfrastructureError, _Named):
    """There is no such namespace.

    >>> from tollgate.compat.zae import NamespaceNotFoundError, SyncRepository
    >>> try:
    ...     SyncRepository.open(url="memory").namespace("tenant-9")
    ... except NamespaceNotFoundError as error:
    ...     print(error.namespace_name)
    tenant-9
    """

    def __init__(self, namespace_name: str) -> None:
        super().__init__(f"Namespace '{namespace_name}' not found. Register it first or check for typos.")
        self.namespace_name, self._arguments = namespace_name, (namespace_name,)


class NamespaceStateError(InfrastructureError):
    """The status of the namespace does not allow it.

    >>> from tollgate.compat.zae import NamespaceStateError, SyncRepository
    >>> repo = SyncRepository.open(url="memory")
    >>> try:
    ...     repo.purge_namespace(repo.namespace_id)
    ... except NamespaceStateError as error:
    ...     print(error.state)
    active
    """

    def __init__(self, message: str, *, namespace_name: str = "", state: str = "") -> None:
        super().__init__(message)
        self.namespace_name, self.state = namespace_name, state


class EntityNotFoundError(EntityError, _Named):
    """There is no such entity.

    >>> from tollgate.compat.zae import EntityNotFoundError, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> try:
    ...     limiter.create_entity("key-1", parent_id="nobody")
    ... except EntityNotFoundError as error:
    ...     print(error)
    Entity not found: nobody
    """

    def __init__(self, entity_id: str) -> None:
        super().__init__(f"Entity not found: {entity_id}")
        self.entity_id, self._arguments = entity_id, (entity_id,)


class EntityExistsError(EntityError, _Named):
    """There is such an entity already.

    >>> from tollgate.compat.zae import EntityExistsError, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> made = limiter.create_entity("key-1")
    >>> try:
    ...     limiter.create_entity("key-1")
    ... except EntityExistsError as error:
    ...     print(error)
    Entity already exists: key-1
    """

    def __init__(self, entity_id: str) -> None:
        super().__init__(f"Entity already exists: {entity_id}")
        self.entity_id, self._arguments = entity_id, (entity_id,)


class VersionMismatchError(VersionError, _Named):
    """The records need another version of the program.

    >>> from tollgate.compat.zae import VersionMismatchError
    >>> VersionMismatchError("0.17.0", "0.10.0", None, "why").schema_version
    '0.10.0'
    """

    def __init__(
        self,
        client_version: str,
        schema_version: str,
        lambda_version: str | None,
        message: str,
        can_auto_update: bool = False,
    ) -> None:
        versions = f"client={client_version}, schema={schema_version}, lambda={lambda_version or 'unknown'}"
        super().__init__(f"Version mismatch: {versions}. {message}")
        self.client_version, self.schema_version = client_version, schema_version
        self.lambda_version, self.can_auto_update = lambda_version, can_auto_update
        self._arguments = (client_version, schema_version, lambda_version, message, can_auto_update)


class IncompatibleSchemaError(VersionError, _Named):
    """The records have to be migrated: ``tollgate upgrade``.

    >>> from tollgate.compat.zae import IncompatibleSchemaError
    >>> IncompatibleSchemaError("0.17.0", "1.0.0", "why").client_version
    '0.17.0'
    """

    def __init__(
        self, client_version: str, schema_version: str, message: str, migration_guide_url: str | None = None
    ) -> None:
        text = f"Incompatible schema: client {client_version} is not compatible with schema {schema_version}. {message}"
        super().__init__(f"{text} See: {migration_guide_url}" if migration_guide_url else text)
        self.client_version, self.schema_version = client_version, schema_version
        self.migration_guide_url = migration_guide_url
        self._arguments = (client_version, schema_version, message, migration_guide_url)


class ValidationError(ZAELimiterError):
    """An argument is not valid.

    >>> from tollgate.compat.zae import ValidationError, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> try:
    ...     limiter.available("key-1", "gpt-4")
    ... except ValidationError as error:
    ...     print(error)
    Invalid limits: there are no limits for entity "key-1" and resource "gpt-4"; set some on any level
    """

    def __init__(self, field: str, value: str, reason: str) -> None:
        super().__init__(f"Invalid {field}: {reason}")
        self.field, self.reason = field, reason
        self.value = f"{value[:50]}..." if len(value) > 50 else value

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field, "", self.reason), {"value": self.value}


class InvalidIdentifierError(ValidationError):
    """The id of an entity is not valid.

    >>> from tollgate.compat.zae import InvalidIdentifierError
    >>> InvalidIdentifierError("entity_id", "k#1", "# is reserved").field
    'entity_id'
    """


class InvalidNameError(ValidationError):
    """The name of a limit, a resource or a namespace is not valid.

    >>> from tollgate.compat.zae import InvalidNameError, Limit
    >>> try:
    ...     Limit.per_minute("r p m", 5)
    ... except InvalidNameError as error:
    ...     print(error.field, error.value)
    name r p m
    """


class InvalidLimitError(ValidationError, ValueError):
    """A limit, a quota or a schedule cannot be as it was written. zae-limiter raises a plain ``ValueError``, which this is as well.

    >>> from tollgate.compat.zae import Limit
    >>> try:
    ...     Limit.quota("rpd", 5)
    ... except ValueError as error:
    ...     print(error)
    Invalid limit: a quota has either cron or reset_after
    """


class FanoutIncomplete(ZAELimiterError):
    """A change reached a part of the buckets. Never raised here: changes are written once and read by every bucket.

    >>> from tollgate.compat.zae import FanoutIncomplete
    >>> FanoutIncomplete(3, OSError("why"), resource="gpt-4").stamped
    3
    """

    def __init__(
        self,
        stamped: int,
        cause: Exception,
        *,
        resource: str | None = None,
        entity_id: str | None = None,
        action: str = "stamping",
    ) -> None:
        whose = " ".join(f"{key} '{value}'" for key, value in (("entity", entity_id), ("resource", resource)) if value)
        super().__init__(f"Fan-out for {whose} stopped after {action} {stamped} bucket(s): {cause}")
        self.stamped, self.cause, self.resource, self.entity_id = stamped, cause, resource, entity_id


class ResourceDisabled(ZAELimiterError):
    """The entity or the resource is disabled. ``level`` is where: entity, entity_default or resource.

    >>> from tollgate.compat.zae import Limit, ResourceDisabled, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> limiter.disable_resource("gpt-4")
    1
    >>> try:
    ...     with limiter.acquire("key-1", "gpt-4", {"rpm": 1}, [Limit.per_minute("rpm", 5)]):
    ...         pass
    ... except ResourceDisabled as error:
    ...     print(error.level)
    resource
    """

    def __init__(self, entity_id: str, resource: str, level: str) -> None:
        super().__init__(f"Resource '{resource}' is disabled for entity '{entity_id}' (disabled at {level} level)")
        self.entity_id, self.resource, self.level = entity_id, resource, level

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entity_id, self.resource, self.level)
