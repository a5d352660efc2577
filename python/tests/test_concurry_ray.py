"""Limits of Concurry in workers of Ray on one host. Ray is started and stopped in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import tollgate

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")

PROGRAM = """
import os, sys
import ray
from tollgate.compat.concurry import LimitPool, LimitSet, RateLimit, RaySharedLimitSet, ResourceLimit

def limits_of(tokens):
    return [RateLimit(key="tokens", window=100_000_000, capacity=tokens, algorithm="TokenBucket"),
            ResourceLimit(key="slots", capacity=1)]

try:
    RaySharedLimitSet(limits_of(5))
except RuntimeError as error:
    print(error)

package = os.path.dirname(os.path.dirname(sys.modules["tollgate"].__file__))
ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80_000_000, log_to_driver=False,
         runtime_env={"env_vars": {"PYTHONPATH": package}})

@ray.remote
def work(limits):
    taken = 0
    while True:
        with limits.acquire({"tokens": 0}) as acquisition:
            acquisition.update({"tokens": 0})
        acquisition = limits.try_acquire({"tokens": 1, "slots": 0})
        if not acquisition.successful:
            return taken
        acquisition.update({"tokens": 1})
        acquisition.release()
        taken += 1

try:
    limits = LimitSet(limits_of(300), shared=True, mode="ray")
    print(sum(ray.get([work.remote(limits) for _ in range(4)])), limits._available(1))
    pool = LimitPool(limit_sets=[LimitSet(limits_of(20), shared=True, mode="ray") for _ in range(2)])
    print(sum(ray.get([work.remote(one) for one in (pool[0], pool[1], pool[0])])))
    held = limits.acquire({"tokens": 0})
    print(ray.get(ray.remote(lambda limits: limits.try_acquire({"tokens": 0}).successful).remote(limits)))
finally:
    ray.shutdown()
"""


def test_workers_of_ray_share_a_set_in_memory(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    environment["PYTHONPATH"] = str(pathlib.Path(tollgate.__file__).parent.parent)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=400, env=environment)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Ray is not initialized")
    assert lines[1:] == ["300 1.0", "40", "False"]
