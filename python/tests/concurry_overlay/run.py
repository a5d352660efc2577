"""Runs the tests of Concurry 0.13.2 about limits on Tollgate. Exits with 0 if all pass that should."""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parent.parent
VERSION = "0.13.2"
SHA256 = "9692aad9ae806edc55613dcdcce19d5ca2f60512baa80e047e0b813d3cb951c2"

FILES = (
    *(
        f"tests/core/limit/test_{name}.py"
        for name in (
            "limit",
            "limit_set",
            "limit_pool",
            "float_capacity",
            "async_acquire",
            "shared_limits",
            "worker_limits",
        )
    ),
    "tests/core/algorithms/test_rate_limiting_algorithms.py",
    "tests/core/algorithms/test_load_balancing.py",
)

#: How many tests have to pass in each run, by the modes of its workers. Others need Ray or more than one worker in one thread.
RUNS = {"sync,thread,asyncio": 398, "process": 328}


def main() -> int:
    """Run the tests in each mode and print a summary."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--modes", action="append", choices=list(RUNS), help="only these modes; can be repeated")
    arguments.add_argument("--target", type=pathlib.Path, default=None, help="the folder for downloads and reports")
    arguments.add_argument("--repeat", type=int, default=1, help="how many times each run is made")
    arguments.add_argument("rest", nargs="*", help="further arguments for pytest, after --")
    chosen = arguments.parse_args()
    target = chosen.target or target_folder()
    target.mkdir(parents=True, exist_ok=True)
    suite = fetched(target)
    is_right = True
    for modes in chosen.modes or RUNS:
        for turn in range(chosen.repeat):
            counts = run(suite, target, modes, chosen.rest)
            expected = RUNS[modes]
            is_right &= counts["failed"] == 0 and (counts["passed"] == expected or bool(chosen.rest))
            print(
                f"concurry {VERSION} on tollgate, {modes}: {counts['passed']} of {expected} passed, "
                f"{counts['failed']} failed, {counts['skipped']} skipped (run {turn + 1})",
                flush=True,
            )
    return 0 if is_right else 1


def target_folder() -> pathlib.Path:
    """Return the folder of build products."""
    root = os.environ.get("CARGO_TARGET_DIR", PYTHON.parent / "target")
    return pathlib.Path(root) / "concurry-overlay"


def fetched(target: pathlib.Path) -> pathlib.Path:
    """Return the folder of the source distribution, which is downloaded once."""
    suite = target / f"concurry-{VERSION}"
    if suite.is_dir():
        return suite
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*download, "--dest", str(target), f"concurry=={VERSION}"], check=True)
    archive = target / f"concurry-{VERSION}.tar.gz"
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{archive} is not the distribution whose tests are counted here")
    partly = target / f"unpacked-{os.getpid()}"
    with tarfile.open(archive) as tar:
        tar.extractall(partly, filter="data")
    (partly / suite.name).rename(suite)
    return suite


def run(suite: pathlib.Path, target: pathlib.Path, modes: str, rest: list[str]) -> dict[str, int]:
    """Run the files in these modes and return the counts."""
    settings, report = target / "pytest.ini", target / f"{modes.replace(',', '-')}.xml"
    # Its own settings would put its sources before the installed package, in this process only.
    settings.write_text("[pytest]\nmarkers =\n    performance: takes long\n")
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(settings), f"--rootdir={suite}"]
    command += ["-p", "no:cacheprovider", "--timeout=120", f"--execution-modes={modes}", f"--junitxml={report}"]
    path = [str(HERE / "site"), str(suite), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "TOLLGATE_CONCURRY_OVERLAY": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }
    check = [sys.executable, "-c", "import concurry; print(concurry.LimitSet.__module__)"]
    module = subprocess.run(check, cwd=suite, env=environment, check=True, capture_output=True, text=True).stdout
    if not module.startswith("tollgate."):
        raise SystemExit(f"the overlay is not applied: LimitSet is of {module}")
    done = subprocess.run([*command, *FILES, *rest], cwd=suite, env=environment, check=False)
    if not report.exists():
        raise SystemExit(f"pytest ended with {done.returncode} and without a report")
    return counted(report)


def counted(report: pathlib.Path) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped."""
    suite = next(xml.parse(report).getroot().iter("testsuite"))
    number = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    failed = number["failures"] + number["errors"]
    return {"failed": failed, "skipped": number["skipped"], "passed": number["tests"] - failed - number["skipped"]}


if __name__ == "__main__":
    sys.exit(main())
