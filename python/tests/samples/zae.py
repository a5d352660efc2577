"""Programs on the names of zae-limiter: what type checkers must accept."""

from __future__ import annotations

from tollgate.compat.zae import (
    Availability,
    Entity,
    Limit,
    OnUnavailable,
    RateLimiter,
    RateLimitExceeded,
    Repository,
    RepositoryProtocol,
    SyncRateLimiter,
    SyncRepository,
    UsageSummary,
)


async def awaited(also: dict[str, dict[str, int]]) -> dict[str, int]:
    repository: Repository = await Repository.builder().stack("limits").namespace("tenant-1").build()
    other: RepositoryProtocol = await repository.namespace("tenant-2", on_unavailable="allow")
    limiter = RateLimiter(repository=other, on_unavailable=OnUnavailable.ALLOW)
    entity: Entity | None = await limiter.get_entity("key-1")
    parent: str | None = entity.parent_id if entity else None
    await limiter.set_limits("key-1", [Limit.per_minute("rpm", 5)], principal=parent)
    policy: OnUnavailable | None = (await limiter.get_system_defaults())[1]
    try:
        async with limiter.acquire("key-1", "gpt-4", {"rpm": 1}, also=also, on_unavailable=policy) as lease:
            await lease.adjust(tpm=5)
            await lease.resource("search").consume(rpm=1)
            used: dict[str, int] = lease.consumed
    except RateLimitExceeded as error:
        header: str = error.retry_after_header
        return {header: 1}
    return used


def blocking(repository: SyncRepository) -> float:
    limiter = SyncRateLimiter(repository=repository)
    found: Availability = limiter.check_availability("key-1", "gpt-4", {"rpm": 1})
    left: dict[str, int] = limiter.available("key-1", "gpt-4")
    used: UsageSummary = limiter.get_usage_summary("key-1")
    ids: dict[str, str] = repository.register_namespaces(["tenant-1"])
    limits, policy = repository.get_system_defaults()
    rates: list[float] = [limit.refill_rate for limit in limits]
    with limiter.acquire("key-1", "gpt-4", {"rpm": 1}, limits) as lease:
        lease.release(rpm=1)
    moved: int = limiter.set_parent("key-1", ids.get(policy or "block"))
    return found.retry_after_seconds + sum(rates) + sum(used.average.values()) + sum(left.values()) + moved
