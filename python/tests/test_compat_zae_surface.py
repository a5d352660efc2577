"""The names of zae-limiter 0.17.0, one by one: zae_surface.txt was written from theirs, and ours must take every call it allows."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import pickle
import re
from pathlib import Path

import pytest

import tollgate.compat.zae as zae
from tollgate.compat.zae import _unsupported
from tollgate.compat.zae._builder import RepositoryBuilder, SyncRepositoryBuilder

SURFACE = [line for line in Path(__file__).with_name("zae_surface.txt").read_text().splitlines() if not line.startswith("#")]

#: Members that are not offered, and why.
NOT_OFFERED = {
    "Lease.compute_images": "a private argument that their data class shows",
    "SyncLease.compute_images": "a private argument that their data class shows",
}


def parameters_of(text: str) -> list[tuple[str, str, str | None]]:
    """Return name, kind and default of each parameter of such a line."""
    found, kind = [], "either"
    # Commas inside of defaults are in quotes.
    for part in re.findall(r"(?:[^,']|'[^']*')+", text):
        part = part.strip()
        if part == "*":
            kind = "named"
        elif part.startswith("**"):
            found.append((part[2:], "rest", None))
        else:
            name, _, default = part.partition("=")
            found.append((name, kind, default or None))
    return found


def member(dotted: str) -> object:
    name, _, attribute = dotted.partition(".")
    owner = getattr(zae, name)
    return inspect.getattr_static(owner, attribute) if attribute else owner


@pytest.mark.parametrize("line", [line for line in SURFACE if line.partition("(")[0] not in NOT_OFFERED])
def test_a_name_is_there_and_takes_what_theirs_takes(line):
    dotted, has_call, rest = line.partition("(")
    found = member(dotted)
    if not has_call:
        return
    if isinstance(found, (classmethod, staticmethod)):
        found = found.__func__
        drop = 1
    else:
        drop = 0 if inspect.isclass(found) else 1
    ours = list(inspect.signature(found).parameters.values())[drop:]
    theirs = parameters_of(rest.removesuffix(")"))
    by_name = {each.name: each for each in ours}
    positional = [each.name for each in ours if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert positional[: sum(kind == "either" for _, kind, _ in theirs)] == [name for name, kind, _ in theirs if kind == "either"]
    for name, kind, default in theirs:
        if kind == "rest":
            assert any(each.kind is each.VAR_KEYWORD for each in ours)
            continue
        each = by_name.pop(name)
        if default is None:
            assert each.default is each.empty, f"{name} must be given"
        elif default != "...":
            assert repr(each.default) == default
        else:
            assert each.default is not each.empty
    # What is ours alone must never be needed.
    assert all(each.default is not each.empty or each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in by_name.values())


def test_the_list_is_complete_enough_to_fail():
    names = {line.partition("(")[0].partition(".")[0] for line in SURFACE}
    assert len(SURFACE) > 350 and names - {"LeaseResource"} <= set(zae.__all__)
    assert parameters_of("a, *, b='x,y', **c") == [("a", "either", None), ("b", "named", "'x,y'"), ("c", "rest", None)]
    assert all(dotted in {line.partition("(")[0] for line in SURFACE} for dotted in NOT_OFFERED)


def test_operations_of_repositories_and_limiters_are_awaited_in_one_twin_and_not_in_the_other():
    for awaited, blocking in ((zae.Repository, zae.SyncRepository), (zae.RateLimiter, zae.SyncRateLimiter), (zae.Lease, zae.SyncLease)):
        names = {name for name in dir(blocking) if not name.startswith("_")}
        assert names == {name for name in dir(awaited) if not name.startswith("_")}
        for name in names:
            left, right = inspect.getattr_static(awaited, name), inspect.getattr_static(blocking, name)
            assert left.__doc__, name
            if isinstance(left, (property, classmethod)) or name in ("acquire", "resource", "namespace"):
                continue
            assert not inspect.iscoroutinefunction(right), name
            assert inspect.signature(left) == inspect.signature(right), name
            assert "Operation[" not in str(inspect.signature(left)), name


@pytest.mark.parametrize("instead", _unsupported.PLUMBING, ids=str.split)
def test_plumbing_raises_and_says_what_to_use(instead):
    repository = zae.SyncRepository.open(url="memory")
    assert re.search(r"use |deploy |tollgate|Repository\.open", instead)
    for name in _unsupported.PLUMBING[instead]:
        with pytest.raises(NotImplementedError, match=re.escape(f"{name}: {instead}")):
            getattr(repository, name)("anything", limit=1)


@pytest.mark.parametrize("builder", [RepositoryBuilder, SyncRepositoryBuilder])
def test_every_setter_of_a_builder_is_taken_or_refused(builder):
    taken, refused = set(), set()
    for line in SURFACE:
        kind, _, rest = line.partition(".")
        name = rest.partition("(")[0]
        if kind != builder.__name__ or name in ("", "build"):
            continue
        made = builder()
        try:
            assert getattr(made, name)("value") is made
            taken.add(name)
        except NotImplementedError as error:
            assert str(error).startswith(f"{name}: ") and "deploy/template.json" in str(error)
            refused.add(name)
    assert taken >= {"namespace", "stack", "region", "endpoint_url", "config_cache_ttl", "on_unavailable", "auto_update"}
    assert len(refused) == 24 and not taken & refused


def test_stacks_are_refused_with_a_pointer():
    for made in (zae.StackManager, zae.SyncStackManager, zae.SyncConfigCache, zae.BucketState):
        with pytest.raises(NotImplementedError, match=f"{made.__name__}: .*use |deploy"):
            made("limits", region="eu-west-1")
    options = zae.StackOptions(lambda_memory=512)
    assert options == zae.StackOptions(lambda_memory=512) != zae.StackOptions()
    with pytest.raises(NotImplementedError, match=r"deploy/template\.json"):
        options.to_parameters("limits")
    with pytest.raises(NotImplementedError, match="stack_options: stacks"):
        zae.SyncRateLimiter(name="limits", stack_options=options)
    with pytest.raises(NotImplementedError, match="list_deployed: stacks"):
        zae.SyncRateLimiter.list_deployed()
    info = zae.LimiterInfo("limits", "limits", "eu-west-1", "UPDATE_ROLLBACK_IN_PROGRESS", "2026-01-01T00:00:00Z")
    assert (info.is_healthy, info.is_in_progress, info.is_failed) == (False, True, True)


def test_every_exception_pickles_and_says_what_theirs_says():
    why = ValueError("why")
    made = {
        zae.EntityNotFoundError("e"): "Entity not found: e",
        zae.EntityExistsError("e"): "Entity already exists: e",
        zae.NamespaceNotFoundError("n"): "Namespace 'n' not found. Register it first or check for typos.",
        zae.NamespaceStateError("m", namespace_name="n", state="active"): "m",
        zae.ValidationError("limits", "x" * 60, "why"): "Invalid limits: why",
        zae.InvalidNameError("name", "x", "why"): "Invalid name: why",
        zae.InvalidIdentifierError("entity_id", "x", "why"): "Invalid entity_id: why",
        zae.ResourceDisabled("e", "r", "entity"): "Resource 'r' is disabled for entity 'e' (disabled at entity level)",
        zae.LeaseExpiredError(): "Lease is no longer active",
        zae.RateLimiterUnavailable("m", stack_name="s", entity_id="e", resource="r"): "m [stack=s, entity=e, resource=r]",
        zae.PermissionDenied("m"): "m",
        zae.StackOperationError("s", "why"): "Stack 's' operation failed: why",
        zae.StackAlreadyExistsError("s"): "Stack 's' already exists",
        zae.VersionMismatchError("1", "2", None, "m"): "Version mismatch: client=1, schema=2, lambda=unknown. m",
        zae.IncompatibleSchemaError("1", "2", "m", "u"): "Incompatible schema: client 1 is not compatible with schema 2. m See: u",
    }
    for error, text in made.items():
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error)) == (type(error), text)
        assert vars(again) == vars(error) and isinstance(error, zae.ZAELimiterError)
    assert zae.ValidationError("f", "x" * 60, "why").value == "x" * 50 + "..."
    assert zae.FanoutIncomplete(3, why, resource="r").cause is why
    with pytest.raises(ValueError, match="exceeded"):
        zae.RateLimitExceeded([])


def test_data_classes_that_are_frozen_there_are_frozen_here():
    for kind in (zae.Limit, zae.ScheduleEntry, zae.BucketOperationResult, zae.StackOptions, zae.LimiterInfo):
        assert dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen, kind


def test_every_class_has_an_example_that_is_right():
    classes = [value for name in zae.__all__ if inspect.isclass(value := getattr(zae, name))]
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    assert [each.__name__ for each in classes if ">>> " not in (each.__doc__ or "")] == []
    for each in [zae, *classes]:
        for test in finder.find(each, each.__name__, module=False, globs={}):
            runner.run(test)
    assert runner.summarize().failed == 0
    assert runner.tries > 150
