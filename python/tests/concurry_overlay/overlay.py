"""Puts the limits of Tollgate in the place of Concurry's, in an installed Concurry."""

from __future__ import annotations

import importlib
import sys

#: What is replaced, wherever it is bound.
NAMES = (
    "Acquisition",
    "BaseLimitSet",
    "CallLimit",
    "InMemorySharedLimitSet",
    "Limit",
    "LimitPool",
    "LimitSet",
    "LimitSetAcquisition",
    "LoadBalancer",
    "MultiprocessSharedLimitSet",
    "NoOpLimitSet",
    "RateLimit",
    "RateLimiter",
    "RaySharedLimitSet",
    "ResourceLimit",
)

#: Where it is bound, beside modules that import it from there.
MODULES = (
    "concurry",
    "concurry.core",
    "concurry.core.algorithms",
    "concurry.core.limit",
    "concurry.core.limit.acquisition",
    "concurry.core.limit.limit",
    "concurry.core.limit.limit_pool",
    "concurry.core.limit.limit_set",
    "concurry.core.worker.base_worker",
)


def apply() -> int:
    """Replace them and return in how many places."""
    import tollgate.compat.concurry as ours

    for module in MODULES:
        # By name: a decorator hides one of the modules where it is an attribute.
        importlib.import_module(module)
    originals = {name: _original(name) for name in NAMES}
    replaced = 0
    for module_name, module in list(sys.modules.items()):
        if module is None or module_name.partition(".")[0] != "concurry":
            continue
        for name, original in originals.items():
            if vars(module).get(name) is original:
                setattr(module, name, getattr(ours, name))
                replaced += 1
    return replaced


def _original(name: str) -> object:
    for module in ("limit_set", "limit_pool", "limit", "acquisition"):
        found = vars(sys.modules[f"concurry.core.limit.{module}"]).get(name)
        if found is not None:
            return found
    return vars(sys.modules["concurry.core.algorithms"])[name]
