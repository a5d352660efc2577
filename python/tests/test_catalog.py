"""The catalog: entities, stored limits, switches, audit, usage, buckets and namespaces."""

from __future__ import annotations

import asyncio
import copy
import datetime
import inspect
import pickle

import pytest

import tollgate as tg


@pytest.fixture(params=["memory", "file", "shm"])
def limiter(request, tmp_path):
    url = {"memory": "memory", "file": f"file:{tmp_path}/limits.db", "shm": "shm:"}[request.param]
    return tg.Limiter(url, principal="alice")


@pytest.fixture
def catalog(limiter):
    return limiter.catalog


def test_entities_are_created_found_moved_and_deleted(catalog):
    team = catalog.create_entity("team")
    assert (team.id, team.parent, team.cascades, team.metadata) == ("team", None, False, {})
    user = catalog.create_entity("user-1", name="Ada", parent="team", cascades=True, metadata={"plan": "pro"})
    assert catalog.get_entity("user-1") == user
    assert (user.name, user.parent, user.cascades, user.metadata) == ("Ada", "team", True, {"plan": "pro"})
    assert catalog.get_entity("team").children == 1
    assert catalog.get_entity("nobody") is None
    assert list(catalog.children("team")) == ["user-1"]
    assert list(catalog.list_entities()) == ["team", "user-1"]
    page = catalog.list_entities(limit=1)
    assert page.next and list(catalog.list_entities(limit=1, after=page.next)) != list(page)
    with pytest.raises(tg.AlreadyExists, match="user-1"):
        catalog.create_entity("user-1")
    with pytest.raises(tg.NotFound, match="ghost"):
        catalog.create_entity("user-2", parent="ghost")
    with pytest.raises(tg.Conflict, match="child"):
        catalog.delete_entity("team")
    with pytest.raises(tg.InvalidValue, match="below"):
        catalog.set_parent("team", "user-1")
    assert catalog.set_cascades("user-1", False) is True
    assert catalog.set_cascades("user-1", False) is False
    assert catalog.set_name("user-1", "Ada L.") is True
    assert catalog.set_parent("user-1", None) is True
    assert catalog.get_entity("user-1").parent is None
    catalog.delete_entity("user-1")
    with pytest.raises(tg.NotFound):
        catalog.delete_entity("user-1")


def test_limits_are_stored_on_four_levels_and_listed(catalog):
    limits = [tg.per_minute("rpm", 10), tg.per_minute("tpm", 100)]
    assert catalog.get_limits() is None and catalog.delete_limits() is False
    catalog.set_limits(limits)
    assert catalog.get_limits().limits == tuple(limits)
    assert catalog.ensure_limits(limits) is False
    assert catalog.ensure_limits(limits[:1], resource="gpt-4") is True
    catalog.set_limits(limits, entity="bob")
    catalog.set_limits(limits, entity="bob", resource="gpt-4")
    assert catalog.resources_with_limits() == ["gpt-4"]
    assert list(catalog.entities_with_limits()) == ["bob"]
    assert list(catalog.entities_with_limits("gpt-4")) == ["bob"]
    assert catalog.resources_with_entity_limits()["gpt-4"] == 1
    assert sorted(catalog.limits_of_entity("bob")) == ["_default_", "gpt-4"]
    catalog.set_system_limits(limits, on_unavailable="allow")
    assert catalog.get_limits().on_unavailable == "allow"
    catalog.set_system_limits([], on_unavailable="local")
    assert catalog.get_limits().limits == ()
    with pytest.raises(tg.InvalidValue, match="no limits"):
        catalog.set_limits([], resource="gpt-4")
    with pytest.raises(tg.InvalidValue, match="rpm"):
        catalog.set_limits([limits[0], limits[0]])
    with pytest.raises(TypeError, match="not a Limit"):
        catalog.set_limits([5])
    with pytest.raises(tg.InvalidValue, match="on_unavailable"):
        catalog.set_system_limits(limits, on_unavailable="sometimes")


def test_several_levels_change_at_once_and_belong_to_a_managed_set(catalog):
    limits = [tg.per_minute("rpm", 10)]
    catalog.set_limits(limits, entity="bob")
    assert catalog.apply_limits([{"limits": limits}, {"entity": "bob", "limits": None}], managed_set="limits.toml") is None
    assert catalog.get_limits(entity="bob") is None
    (found,) = catalog.managed_sets()
    assert (found.name, found.levels) == ("limits.toml", ((None, None),))
    change = [{"resource": "gpt-4", "limits": limits}]
    revision = catalog.apply_limits(change, managed_set="limits.toml", seen=found.revision)
    assert revision != found.revision
    with pytest.raises(tg.Conflict, match="another process"):
        catalog.apply_limits(change, managed_set="limits.toml", seen=found.revision)
    for bad in ([5], [{}], [{"limits": limits, "colour": 1}], [{"limits": [1]}], [{"entity": 5, "limits": None}], 5):
        with pytest.raises((tg.InvalidValue, TypeError)):
            catalog.apply_limits(bad)
    with pytest.raises(tg.InvalidValue, match="managed set"):
        catalog.apply_limits(change, seen=1)
    for bad in (-1, 2**70, True, 0.5, "1"):
        with pytest.raises(tg.InvalidValue, match="seen"):
            catalog.apply_limits(change, managed_set="limits.toml", seen=bad)


def test_entities_and_resources_are_disabled_with_exceptions(limiter, catalog):
    catalog.set_limits([tg.per_hour("rpm", 10)])
    assert catalog.disable_entity("bob") is True and catalog.is_entity_disabled("bob") is True
    with pytest.raises(tg.Disabled, match="bob"):
        limiter.acquire("bob", "gpt-4", rpm=1)
    assert catalog.enable_entity("bob") is True and catalog.enable_entity("bob") is False
    assert catalog.disable_resource("gpt-4") is True and catalog.disabled_resources() == ["gpt-4"]
    with pytest.raises(tg.Disabled, match="gpt-4"):
        limiter.acquire("bob", "gpt-4", rpm=1)
    assert catalog.set_access("bob", "gpt-4", True) is True
    assert catalog.get_access("bob", "gpt-4") is True and catalog.get_access("ann", "gpt-4") is None
    assert catalog.accesses_of_entity("bob") == {"gpt-4": True}
    limiter.acquire("bob", "gpt-4", rpm=1).commit()
    assert catalog.set_access("bob", "gpt-4", None) is True
    assert catalog.enable_resource("gpt-4") is True


def test_a_cascade_policy_overrides_the_entity(limiter, catalog):
    catalog.set_limits([tg.per_hour("rpm", 10)])
    catalog.create_entity("team")
    catalog.create_entity("bob", parent="team", cascades=True)
    assert catalog.set_cascade(False, resource="budget") is True
    assert catalog.get_cascade(resource="budget") is False and catalog.get_cascade(entity="bob") is None
    assert len(limiter.peek("bob", "budget").statuses) == 1
    assert len(limiter.peek("bob", "gpt-4").statuses) == 2
    with pytest.raises(tg.InvalidValue):
        catalog.set_cascade(True)


def test_every_change_has_an_audit_event(catalog):
    catalog.create_entity("bob")
    catalog.acting_as("eve").set_limits([tg.per_hour("rpm", 10)], entity="bob")
    catalog.set_limits([tg.per_hour("rpm", 10)])
    catalog.disable_resource("gpt-4")
    events = catalog.audit(entity="bob")
    assert [(e.subject, e.principal, e.action) for e in events] == [
        ("bob", "alice", "entity_created"),
        ("bob", "eve", "limits_set"),
    ]
    assert catalog.audit(entity="bob", newest_first=True, limit=1).items[0].action == "limits_set"
    assert [e.subject for e in catalog.audit(system=True)] == ["$SYSTEM"]
    assert [e.subject for e in catalog.audit(resource="gpt-4")] == ["$RESOURCE:gpt-4"]
    assert len(catalog.audit()) == 4
    assert events.items[0].timestamp.endswith("Z") and isinstance(events.items[1].details, dict)
    with pytest.raises(tg.InvalidValue, match="or none"):
        catalog.audit(entity="bob", system=True)
    for bad in ("", "\ud800", 5):
        with pytest.raises((tg.InvalidValue, TypeError)):
            catalog.acting_as(bad)


def test_usage_is_exact_and_counted_once(limiter, catalog):
    catalog.set_limits([tg.per_day("rpm", 100), tg.per_day("tpm", 10_000)])
    catalog.create_entity("team")
    catalog.create_entity("bob", parent="team", cascades=True)
    for tokens in (10, 20):
        with limiter.acquire("bob", "gpt-4", {"rpm": 1, "tpm": 50}) as lease:
            lease.settle(tpm=tokens)
    rows = catalog.usage("day", entity="bob").items
    assert sum(row.events for row in rows) == 2 and sum(row.amounts["tpm"] for row in rows) == 30
    assert {row.window for row in rows} == {"day"} and rows[0].start % 86_400 == 0
    summary = catalog.usage_summary("hour", entity="bob", resource="gpt-4")
    assert summary.events == 2 and summary.limits["rpm"].total == 2 and summary.limits["tpm"].average > 0
    everyone = catalog.usage_by_window("month")
    assert sum(usage.events for usage in everyone.values()) == 2, "a call counts once, not for its parent again"
    now = datetime.datetime.now(datetime.timezone.utc)
    assert catalog.usage("day", entity="bob", since=now + datetime.timedelta(days=3)).items == ()
    assert catalog.usage("day", resource="gpt-4", since=0, until=now.timestamp() + 9e6).items
    for bad in ("week", "", "Day", "\ud800"):
        with pytest.raises(tg.InvalidValue):
            catalog.usage(bad, entity="bob")
    for bad in (-1, float("nan"), float("inf"), True, "today", 10**400, []):
        with pytest.raises((tg.InvalidValue, TypeError)):
            catalog.usage("day", entity="bob", since=bad)
    with pytest.raises(tg.InvalidValue, match="later"):
        catalog.usage("day", since=5, until=4)


def test_credit_is_given_once_by_its_key(limiter, catalog):
    catalog.set_limits([tg.per_day("tpm", 1_000), tg.resource("slots", 1)])
    limiter.acquire("bob", "gpt-4", tpm=900).commit()
    assert catalog.top_up("bob", "gpt-4", {"tpm": 300}, key="invoice-17") is True
    assert catalog.top_up("bob", "gpt-4", tpm=300, key="invoice-17") is False
    assert limiter.peek("bob", "gpt-4")["tpm"].available == 400
    assert catalog.reset("bob", "gpt-4", key="r") is True and catalog.reset("bob", "gpt-4", key="r") is False
    assert limiter.peek("bob", "gpt-4")["tpm"].available == 1_000
    for credit in ({}, {"x": 1}, {"slots": 1}, {"tpm": -1}, {"tpm": True}):
        with pytest.raises((tg.InvalidDemand, tg.InvalidValue)):
            catalog.top_up("bob", "gpt-4", credit)
    for key in ("", "k" * 5_000, "\ud800"):
        with pytest.raises(tg.InvalidValue):
            catalog.reset("bob", "gpt-4", key=key)
    with pytest.raises(tg.InvalidValue):
        catalog.reset("bo#b", "gpt-4")


def test_buckets_capacity_and_counts(limiter, catalog):
    catalog.set_limits([tg.per_day("rpd", 1_000)])
    catalog.create_entity("bob")
    limiter.acquire("bob", "gpt-4", rpd=300).commit()
    (bucket,) = catalog.buckets("bob")
    assert (bucket.entity, bucket.resource, bucket.statuses[0].available) == ("bob", "gpt-4", 700)
    capacity = catalog.capacity("gpt-4", "rpd")
    assert (capacity.total_used, capacity.total_available, capacity.entities[0].entity) == (300, 700, "bob")
    counts = catalog.counts()
    assert (counts.entities, counts.system_limits, counts.buckets) == (1, 1, 1)
    assert catalog.counts("bob").entities == 1
    catalog.invalidate()
    assert catalog.cache_stats().entries >= 0


def test_namespaces_have_nothing_in_common_and_are_purged(limiter, catalog):
    namespaces = catalog.namespaces
    assert [namespace.name for namespace in namespaces.list()] == ["default"]
    created = namespaces.create("staging")
    assert namespaces.create("staging") == created == namespaces.get("staging")
    assert namespaces.get("nothing") is None and created.status == "active"
    gone = namespaces.delete("staging")
    assert gone.status == "deleted" and [found.id for found in namespaces.orphans()] == [created.id]
    assert namespaces.recover(created.id).status == "active"
    with pytest.raises(tg.Conflict):
        namespaces.purge(created.id)
    namespaces.delete("staging")
    purged = namespaces.purge(created.id)
    assert purged.namespace.id == created.id
    with pytest.raises(tg.NotFound):
        namespaces.recover(created.id)
    with pytest.raises(tg.NotFound):
        namespaces.delete("staging")
    for bad in ("", "a b", "x" * 300, "\ud800"):
        with pytest.raises(tg.InvalidValue):
            namespaces.create(bad)


def test_a_deleted_namespace_refuses_calls(tmp_path):
    url = f"file:{tmp_path}/limits.db"
    limiter, other = tg.Limiter(url, namespace="jobs", cache_ttl=0), tg.Limiter(url)
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    other.catalog.namespaces.delete("jobs")
    with pytest.raises(tg.NotFound, match="deleted"):
        limiter.catalog.set_limits([tg.per_hour("rpm", 11)])


def test_the_async_twins_do_the_same(limiter, catalog):
    async def main() -> None:
        await catalog.create_entity_async("team")
        await catalog.create_entity_async("bob", parent="team", cascades=True)
        assert list(await catalog.children_async("team")) == ["bob"]
        await catalog.set_limits_async([tg.per_hour("rpm", 10)], entity="team")
        await catalog.set_limits_async([tg.per_hour("rpm", 10)], entity="bob")
        assert (await catalog.get_limits_async(entity="bob")).limits[0].amount == 10
        await (await limiter.acquire_async("bob", "gpt-4", rpm=4)).commit_async()
        assert await catalog.top_up_async("bob", "gpt-4", rpm=1, key="k") is True
        assert (await catalog.usage_summary_async("day", entity="bob")).events == 1
        assert len(await catalog.audit_async(entity="bob")) >= 2
        assert (await catalog.namespaces.create_async("staging")).status == "active"
        with pytest.raises(tg.AlreadyExists):
            await catalog.create_entity_async("bob")

    asyncio.run(main())


@pytest.mark.parametrize("cls", [tg.Catalog, tg.Namespaces, tg.Limiter], ids=lambda cls: cls.__name__)
def test_every_operation_has_an_async_twin_of_the_same_signature_and_a_docstring(cls):
    plain = {"acting_as", "invalidate", "cache_stats", "demand", "open"}
    names = [name for name in vars(cls) if not name.startswith("_") and callable(getattr(cls, name))]
    for name in names:
        method = getattr(cls, name)
        assert method.__doc__, f"{cls.__name__}.{name}"
        if name.endswith("_async"):
            other = name.removesuffix("_async")
            if other not in plain:
                assert inspect.signature(getattr(cls, other)) == inspect.signature(method), name
        elif name not in plain:
            assert hasattr(cls, f"{name}_async"), name


@pytest.mark.parametrize("name", ["", "x" * 300, "a#b", "\ud800", "\0"])
def test_p45_p46_names_that_are_not_valid_are_refused(name):
    catalog = tg.Limiter("memory").catalog
    limits = [tg.per_hour("rpm", 10)]
    calls = [
        lambda: catalog.create_entity(name),
        lambda: catalog.create_entity("bob", parent=name),
        lambda: catalog.get_entity(name),
        lambda: catalog.delete_entity(name),
        lambda: catalog.children(name),
        lambda: catalog.set_limits(limits, entity=name),
        lambda: catalog.set_limits(limits, resource=name),
        lambda: catalog.get_limits(entity=name),
        lambda: catalog.delete_limits(resource=name),
        lambda: catalog.limits_of_entity(name),
        lambda: catalog.disable_entity(name),
        lambda: catalog.disable_resource(name),
        lambda: catalog.set_access("bob", name, True),
        lambda: catalog.audit(entity=name),
        lambda: catalog.buckets(name),
        lambda: catalog.capacity("gpt-4", name),
        lambda: catalog.counts(name),
        lambda: catalog.namespaces.create(name),
    ]
    for index, call in enumerate(calls):
        with pytest.raises(tg.InvalidValue):
            call()
            pytest.fail(f"call {index} took {name!r}")


@pytest.mark.parametrize("limit", [0, -1, 1_001, 2**70, True, 0.5, "5", float("nan")])
def test_p43_pages_want_a_whole_number_of_items(limit):
    catalog = tg.Limiter("memory").catalog
    for call in (catalog.list_entities, catalog.audit, catalog.entities_with_limits):
        with pytest.raises(tg.InvalidValue, match="limit is"):
            call(limit=limit)


def test_a_cursor_that_is_none_of_ours_is_an_error_and_no_panic(catalog):
    for after in ("", "nonsense", "\0", "9:x", "é", "x" * 10_000):
        for call in (catalog.list_entities, catalog.audit, lambda after: catalog.children("team", after=after)):
            try:
                call(after=after)
            except tg.Error:
                pass


@pytest.mark.parametrize("metadata", [5, [], {"a": 1}, {1: "a"}, {"\ud800": "x"}, {"a": "x" * 1_000_000}])
def test_metadata_is_texts_by_name(metadata):
    with pytest.raises((TypeError, tg.InvalidValue)):
        tg.Limiter("memory").catalog.create_entity("bob", metadata=metadata)


def test_records_do_not_change_compare_by_value_and_pickle(catalog):
    one = catalog.create_entity("bob", metadata={"plan": "pro"})
    two = catalog.get_entity("bob")
    assert one == two and one != catalog.create_entity("ann") and one != "bob"
    for again in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert again == one and type(again) is tg.Entity
    with pytest.raises(AttributeError):
        one.name = "x"
    with pytest.raises(AttributeError):
        del one.name
    assert repr(one).startswith("Entity(id='bob', name=") and one.as_dict()["metadata"] == {"plan": "pro"}
    with pytest.raises(TypeError, match="Entity"):
        tg.Entity("bob")
    with pytest.raises(TypeError):
        tg.Page(1, 2, 3)
    assert hash(tg.Page((), None)) == hash(tg.Page((), None))


def test_the_catalog_keeps_its_limiter_and_shows_no_password(limiter, catalog):
    assert repr(catalog).startswith('<Catalog "default" of ')
    assert repr(catalog.namespaces).startswith("<Namespaces of ")
    assert catalog.namespace == "default" and len(catalog.namespace_id) == 11
    del limiter
    assert list(catalog.list_entities()) == []


def test_what_has_nothing_to_return_returns_none(limiter, catalog):
    async def main() -> None:
        assert await catalog.set_limits_async([tg.quota("rpm", 10, after=86_400)]) is None
        assert await (await limiter.acquire_async("bob", "gpt-4", rpm=1)).settle_async(rpm=1) is None
        assert await catalog.delete_entity_async("bob") is None

    catalog.create_entity("bob")
    assert catalog.set_system_limits([tg.quota("rpm", 10, after=86_400)]) is None
    asyncio.run(main())
