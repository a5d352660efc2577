"""Builders of repositories. What belongs to a program is taken; what belongs to a stack raises ``NotImplementedError``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn

from ._operations import run, run_async
from ._unsupported import DEPLOYMENT

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._repository import Repository, SyncRepository
    from ._stacks import StackOptions


class _BuilderSetters:
    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def _with(self, **named: Any) -> Self:
        self._named.update(named)
        return self

    def _refuse(self, name: str) -> NoReturn:
        raise NotImplementedError(f"{name}: {DEPLOYMENT}")

    def url(self, url: str) -> Self:
        """Set any store of the library's, such as ``file:limits.db``."""
        return self._with(url=url)

    def stack(self, name: str) -> Self:
        """Set the stack, which is the table on DynamoDB."""
        return self._with(stack=name)

    def namespace(self, name: str) -> Self:
        """Set the namespace, which is created if it is new."""
        return self._with(namespace=name)

    def region(self, name: str) -> Self:
        """Set the region of the table."""
        return self._with(region=name)

    def endpoint_url(self, url: str) -> Self:
        """Set where a local engine is."""
        return self._with(endpoint_url=url)

    def config_cache_ttl(self, seconds: int) -> Self:
        """Set how long stored limits are cached."""
        return self._with(config_cache_ttl=seconds)

    def on_unavailable(self, value: Literal["allow", "block"]) -> Self:
        """Set what limiters of the repository do while the store does not answer."""
        return self._with(on_unavailable=value)

    def auto_update(self, enabled: bool) -> Self:
        """Do nothing: there is no function to update."""
        return self

    def rejection_cache_ttl(self, seconds: float) -> Self:
        """Do nothing: refusals are not cached."""
        return self

    def rejection_cache_size(self, entries: int) -> Self:
        """Do nothing: refusals are not cached."""
        return self

    def stamp_ttl(self, seconds: float) -> Self:
        """Do nothing: nothing is stamped."""
        return self

    def bucket_ttl_multiplier(self, value: int) -> Self:
        """Do nothing: the library deletes unused buckets itself."""
        return self

    def stack_options(self, opts: StackOptions) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("stack_options")

    def snapshot_windows(self, value: str) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("snapshot_windows")

    def usage_retention_days(self, value: int) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("usage_retention_days")

    def audit_retention_days(self, value: int) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("audit_retention_days")

    def log_retention_days(self, value: int) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("log_retention_days")

    def lambda_timeout(self, value: int) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("lambda_timeout")

    def lambda_memory(self, value: int) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("lambda_memory")

    def lambda_duration_threshold_pct(self, value: int) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("lambda_duration_threshold_pct")

    def audit_archive_glacier_days(self, value: int) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("audit_archive_glacier_days")

    def pitr_recovery_days(self, value: int | None) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("pitr_recovery_days")

    def alarm_sns_topic(self, value: str | None) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("alarm_sns_topic")

    def permission_boundary(self, value: str | None) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("permission_boundary")

    def role_name_format(self, value: str | None) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("role_name_format")

    def policy_name_format(self, value: str | None) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("policy_name_format")

    def aggregator_role_arn(self, value: str | None) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("aggregator_role_arn")

    def enable_aggregator(self, value: bool = True) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("enable_aggregator")

    def enable_provisioner(self, value: bool = True) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("enable_provisioner")

    def enable_alarms(self, value: bool = True) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("enable_alarms")

    def enable_audit_archival(self, value: bool = True) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("enable_audit_archival")

    def enable_tracing(self, value: bool = True) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("enable_tracing")

    def create_iam_roles(self, value: bool = True) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("create_iam_roles")

    def create_iam(self, value: bool = True) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("create_iam")

    def enable_deletion_protection(self, value: bool = True) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("enable_deletion_protection")

    def tags(self, value: dict[str, str] | None) -> Self:
        """Not supported: stacks are not deployed from here."""
        self._refuse("tags")


class RepositoryBuilder(_BuilderSetters):
    """Settings of a repository in an event loop: ``await Repository.builder().namespace("tenant-1").build()``.

    >>> import asyncio
    >>> from tollgate.compat.zae import Repository
    >>> asyncio.run(Repository.builder().url("memory").namespace("tenant-1").build()).namespace_name
    'tenant-1'
    """

    async def build(self) -> Repository:
        """Open the repository."""
        from ._repository import Repository, opened

        return Repository._of(await run_async(opened(**self._named)))


class SyncRepositoryBuilder(_BuilderSetters):
    """Settings of a repository.

    >>> from tollgate.compat.zae import SyncRepository
    >>> SyncRepository.builder().url("memory").namespace("tenant-1").build().namespace_name
    'tenant-1'
    """

    def parallel_mode(self, value: str) -> Self:
        """Do nothing: a call is one transaction, and needs no threads."""
        return self

    def build(self) -> SyncRepository:
        """Open the repository."""
        from ._repository import SyncRepository, opened

        return SyncRepository._of(run(opened(**self._named)))
