"""What zae-limiter has and this does not: each name says what to use instead."""

from __future__ import annotations

from collections.abc import Callable
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
PLUMBING: dict[str, list[str]] = {}


class Unsupported:
    """The base of classes that zae-limiter has and that cannot be made here."""

    _instead: str

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: {self._instead}")


class StackManager(Unsupported):
    """Not supported: stacks are deployed by the tools of AWS.

    >>> from tollgate.compat.zae import StackManager
    >>> try:
    ...     StackManager("limits")
    ... except NotImplementedError as error:
    ...     print(str(error).partition(":")[0])
    StackManager
    """

    _instead = DEPLOYMENT


class SyncStackManager(Unsupported):
    """Not supported: stacks are deployed by the tools of AWS.

    >>> from tollgate.compat.zae import SyncStackManager
    >>> try:
    ...     SyncStackManager("limits")
    ... except NotImplementedError as error:
    ...     print(str(error).partition(":")[0])
    SyncStackManager
    """

    _instead = DEPLOYMENT


class SyncConfigCache(Unsupported):
    """Not supported: the cache of stored limits is in the library.

    >>> from tollgate.compat.zae import SyncConfigCache
    >>> try:
    ...     SyncConfigCache("limits")
    ... except NotImplementedError as error:
    ...     print(str(error).partition(":")[0])
    SyncConfigCache
    """

    _instead = "the cache is in the library; use get_cache_stats and invalidate_config_cache"


class BucketState(Unsupported):
    """Not supported: buckets are not read as records.

    >>> from tollgate.compat.zae import BucketState
    >>> try:
    ...     BucketState("limits")
    ... except NotImplementedError as error:
    ...     print(str(error).partition(":")[0])
    BucketState
    """

    _instead = LOOK


def _refused(name: str, instead: str) -> Callable[..., NoReturn]:
    def refused(self: PlumbingMethods, *arguments: Any, **named: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: {instead}")

    refused.__name__, refused.__qualname__ = name, f"PlumbingMethods.{name}"
    refused.__doc__ = f"Not supported: {instead}."
    PLUMBING.setdefault(instead, []).append(name)
    return refused


class PlumbingMethods:
    """The members of a repository that nothing outside of zae-limiter needs. They raise ``NotImplementedError`` when they are called."""

    batch_get_buckets = _refused("batch_get_buckets", LOOK)
    batch_get_configs = _refused("batch_get_configs", LOOK)
    batch_get_entity_and_buckets = _refused("batch_get_entity_and_buckets", LOOK)
    build_bucket_operation = _refused("build_bucket_operation", RECORDS)
    build_bucket_put_item = _refused("build_bucket_put_item", RECORDS)
    build_bucket_update_item = _refused("build_bucket_update_item", RECORDS)
    build_bypass_consume = _refused("build_bypass_consume", RECORDS)
    build_composite_adjust = _refused("build_composite_adjust", RECORDS)
    build_composite_create = _refused("build_composite_create", RECORDS)
    build_composite_normal = _refused("build_composite_normal", RECORDS)
    build_composite_retry = _refused("build_composite_retry", RECORDS)
    build_operation_record = _refused("build_operation_record", RECORDS)
    build_owner_check = _refused("build_owner_check", RECORDS)
    build_quota_donor_debits = _refused("build_quota_donor_debits", RECORDS)
    build_stamp_fix = _refused("build_stamp_fix", RECORDS)
    bump_shard_count = _refused("bump_shard_count", RECORDS)
    create_stack = _refused("create_stack", DEPLOYMENT)
    create_table = _refused("create_table", DEPLOYMENT)
    delete_stack = _refused("delete_stack", DEPLOYMENT)
    delete_table = _refused("delete_table", DEPLOYMENT)
    ensure_infrastructure = _refused("ensure_infrastructure", DEPLOYMENT)
    fix_bucket_stamps = _refused("fix_bucket_stamps", RECORDS)
    get_bucket = _refused("get_bucket", LOOK)
    get_buckets = _refused("get_buckets", LOOK)
    get_or_create_bucket = _refused("get_or_create_bucket", LOOK)
    get_provisioner_state = _refused("get_provisioner_state", PROVISIONER)
    get_resource_buckets = _refused("get_resource_buckets", LOOK)
    get_shard_window_starts = _refused("get_shard_window_starts", LOOK)
    get_version_record = _refused("get_version_record", UPGRADE)
    limits_read_fresh = _refused("limits_read_fresh", LOOK)
    plan_quota_shard = _refused("plan_quota_shard", RECORDS)
    put_provisioner_state = _refused("put_provisioner_state", PROVISIONER)
    reconcile_bucket_to_defaults = _refused("reconcile_bucket_to_defaults", RECORDS)
    repair_created_quota_shard = _refused("repair_created_quota_shard", RECORDS)
    require_reset_after_readers = _refused("require_reset_after_readers", UPGRADE)
    resolve_access = _refused("resolve_access", LOOK)
    resolve_bypass_from_fetched = _refused("resolve_bypass_from_fetched", LOOK)
    resolve_cascade_from_fetched = _refused("resolve_cascade_from_fetched", LOOK)
    resolve_disabled_from_fetched = _refused("resolve_disabled_from_fetched", LOOK)
    resolve_soft_limits = _refused("resolve_soft_limits", LOOK)
    restamp_owner_if_current = _refused("restamp_owner_if_current", RECORDS)
    select_shard = _refused("select_shard", LOOK)
    set_version_record = _refused("set_version_record", UPGRADE)
    speculative_consume = _refused("speculative_consume", RECORDS)
    transact_write = _refused("transact_write", RECORDS)
    write_each = _refused("write_each", RECORDS)
