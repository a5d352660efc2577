"""Data about stacks, which programs may have in their own code. Nothing here deploys any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from ._unsupported import DEPLOYMENT


@dataclass(frozen=True)
class StackOptions:
    """How zae-limiter would deploy a stack. It can be made and compared; whatever takes it raises ``NotImplementedError``.

    >>> from tollgate.compat.zae import StackOptions
    >>> StackOptions().lambda_memory
    256
    """

    snapshot_windows: str = "hourly,daily"
    usage_retention_days: int = 90
    audit_retention_days: int = 90
    enable_aggregator: bool = True
    enable_provisioner: bool = True
    pitr_recovery_days: int | None = None
    log_retention_days: int = 30
    lambda_timeout: int = 60
    lambda_memory: int = 256
    enable_alarms: bool = True
    alarm_sns_topic: str | None = None
    lambda_duration_threshold_pct: int = 80
    permission_boundary: str | None = None
    role_name_format: str | None = None
    policy_name_format: str | None = None
    enable_audit_archival: bool = True
    audit_archive_glacier_days: int = 90
    enable_tracing: bool = False
    create_iam_roles: bool = False
    create_iam: bool = True
    aggregator_role_arn: str | None = None
    enable_deletion_protection: bool = False
    tags: dict[str, str] | None = None

    @property
    def deploys_aggregator_lambda(self) -> bool:
        """Whether there would be an aggregator."""
        return self.enable_aggregator and (self.create_iam or self.aggregator_role_arn is not None)

    @property
    def deploys_provisioner_lambda(self) -> bool:
        """Whether there would be a provisioner."""
        return self.enable_provisioner and self.create_iam

    def get_role_name(self, stack_name: str, component: str) -> NoReturn:
        """Not supported."""
        raise NotImplementedError(DEPLOYMENT)

    def get_policy_name(self, stack_name: str, component: str) -> NoReturn:
        """Not supported."""
        raise NotImplementedError(DEPLOYMENT)

    def to_parameters(self, stack_name: str | None = None) -> NoReturn:
        """Not supported."""
        raise NotImplementedError(DEPLOYMENT)


@dataclass(frozen=True)
class LimiterInfo:
    """What zae-limiter lists of a stack.

    >>> from tollgate.compat.zae import LimiterInfo
    >>> LimiterInfo("limits", "limits", "eu-west-1", "CREATE_COMPLETE", "2026-01-01T00:00:00Z").is_healthy
    True
    """

    stack_name: str
    user_name: str
    region: str
    stack_status: str
    creation_time: str
    last_updated_time: str | None = None
    version: str | None = None
    lambda_version: str | None = None
    schema_version: str | None = None
    stack_type: str | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether the last operation was completed."""
        return self.stack_status in ("CREATE_COMPLETE", "UPDATE_COMPLETE")

    @property
    def is_in_progress(self) -> bool:
        """Whether an operation has not ended."""
        return "IN_PROGRESS" in self.stack_status

    @property
    def is_failed(self) -> bool:
        """Whether an operation failed."""
        return "FAILED" in self.stack_status or "ROLLBACK" in self.stack_status


@dataclass(frozen=True)
class Status:
    """What zae-limiter shows of a stack; of a store, `tollgate status` does.

    >>> from tollgate.compat.zae import Status
    >>> Status.__dataclass_fields__["table_status"].type
    'str | None'
    """

    available: bool
    latency_ms: float | None
    stack_status: str | None
    table_status: str | None
    aggregator_enabled: bool
    name: str
    region: str | None
    schema_version: str | None
    lambda_version: str | None
    client_version: str
    table_item_count: int | None
    table_size_bytes: int | None
    app_role_arn: str | None = None
    admin_role_arn: str | None = None
    readonly_role_arn: str | None = None
