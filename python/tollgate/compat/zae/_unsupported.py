"""What zae-limiter has and this does not: each name says what to use instead."""

from __future__ import annotations

from typing import Any, NoReturn

DEPLOYMENT = (
    "stacks are not deployed, changed or deleted from here; deploy deploy/template.json, or let Repository.open() create the table "
    "(docs/dynamodb.md)"
)
LOOK = "buckets are not read as records; use check_availability, resolve_limits or get_resource_capacity"
RECORDS = "records are written by the library alone; use acquire, top_up and reset_bucket"
UPGRADE = "versions of records are kept by the library; use `tollgate check` and `tollgate upgrade`"
PROVISIONER = "there is no provisioner; use `tollgate limits plan` and `tollgate limits apply` with a limits file"

#: The members of a repository that raise, by what to use instead.
PLUMBING = {
    DEPLOYMENT: ("create_stack", "create_table", "delete_stack", "delete_table", "ensure_infrastructure"),
    LOOK: (
        "batch_get_buckets",
        "batch_get_configs",
        "batch_get_entity_and_buckets",
        "get_bucket",
        "get_buckets",
        "get_or_create_bucket",
        "get_resource_buckets",
        "get_shard_window_starts",
        "limits_read_fresh",
        "resolve_access",
        "resolve_bypass_from_fetched",
        "resolve_cascade_from_fetched",
        "resolve_disabled_from_fetched",
        "resolve_soft_limits",
        "select_shard",
    ),
    RECORDS: (
        "build_bucket_operation",
        "build_bucket_put_item",
        "build_bucket_update_item",
        "build_bypass_consume",
        "build_composite_adjust",
        "build_composite_create",
        "build_composite_normal",
        "build_composite_retry",
        "build_operation_record",
        "build_owner_check",
        "build_quota_donor_debits",
        "build_stamp_fix",
        "bump_shard_count",
        "fix_bucket_stamps",
        "plan_quota_shard",
        "reconcile_bucket_to_defaults",
        "repair_created_quota_shard",
        "restamp_owner_if_current",
        "speculative_consume",
        "transact_write",
        "write_each",
    ),
    UPGRADE: ("get_version_record", "require_reset_after_readers", "set_version_record"),
    PROVISIONER: ("get_provisioner_state", "put_provisioner_state"),
}


class Unsupported:
    """The base of classes that zae-limiter has and that cannot be made here."""

    _instead: str

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: {self._instead}")


class StackManager(Unsupported):
    """Not supported: stacks are deployed by the tools of AWS."""

    _instead = DEPLOYMENT


class SyncStackManager(Unsupported):
    """Not supported: stacks are deployed by the tools of AWS."""

    _instead = DEPLOYMENT


class SyncConfigCache(Unsupported):
    """Not supported: the cache of stored limits is in the library."""

    _instead = "the cache is in the library; use get_cache_stats and invalidate_config_cache"


class BucketState(Unsupported):
    """Not supported: buckets are not read as records."""

    _instead = LOOK


class PlumbingMethods:
    """The members of a repository that nothing outside of zae-limiter needs. They raise ``NotImplementedError`` when they are called."""


def _refusing(name: str, instead: str) -> Any:
    def refused(self: PlumbingMethods, *arguments: Any, **named: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: {instead}")

    refused.__name__, refused.__qualname__ = name, f"PlumbingMethods.{name}"
    refused.__doc__ = f"Not supported: {instead}."
    return refused


for _instead, _names in PLUMBING.items():
    for _name in _names:
        setattr(PlumbingMethods, _name, _refusing(_name, _instead))
