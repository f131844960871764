"""Shared by every suite: run the command line, and write a small kernel for the fake device."""

import contextlib
import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from autotune.cli import main, progress
from autotune.devices import listing
from autotune.problem.data_sets import DATA_SETS
from autotune.processes import fork_server
from autotune.tuning import data_checks, remeasure, stress_checks, tuner
from autotune.tuning.context import open_context
from autotune.tuning.journaled_task import with_journal
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options

ROOT = Path(__file__).parents[1]
DEFAULT_WORKLOADS = data_checks._default_workloads
LAST_ROUND = {name: getattr(remeasure, name) for name in ("ROUNDS", "MAX_EXTRA_S")}
sys.path.append(str(ROOT / "benchmarks"))  # scripts there share modules that tests read, too
settings.register_profile(  # the same examples in every run, however long the machine takes for one
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


def pytest_xdist_auto_num_workers():
    """Two workers more than cores for `-n auto`: many tests wait for processes that they start."""
    return len(os.sched_getaffinity(0)) + 2


def pytest_xdist_make_scheduler(config, log):
    """Tests of pages stay together, and what takes long comes first."""
    from tests.scheduling import Scheduling

    return Scheduling(config, log)


KERNEL = """\
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""
REFERENCE = """\
def reference(inputs, sizes):
    return {"y": 2 * inputs["x"]}
"""
SPACE = """\
schema: 1
kernel: double
dialect: python
source: double.py
reference: reference.py
sizes:
  default: {n: 1000}
verify_sizes: [{n: 1}, {n: 17}]
dtypes: [int32]
parameters:
  A: [1, 2, 3, 4, 5, 6]
  B: [0, 1, 2]
constraints:
  - A + B <= 7
default: {A: 1, B: 0}
landmarks:
  first: {A: 1, note: where it starts}
  second: {A: 2}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}}
  - {name: y, dtype: int32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: double, grid: [1], block: [1], arguments: [x, y, n]}
verify: {rtol: 0, atol: 0}
work: {bytes: 8 * n}
"""


class Folder:
    """A folder with a kernel of its own, in which commands are run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.space = path / "double.yaml"
        self.write(KERNEL)
        (path / "reference.py").write_text(REFERENCE)
        self.space.write_text(SPACE)

    def write(self, kernel: str) -> None:
        (self.path / "double.py").write_text(kernel)

    def edit(self, old: str, new: str) -> None:
        """Change the space file; the text to replace must be there."""
        text = self.space.read_text()
        assert old in text
        self.space.write_text(text.replace(old, new))

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen:
        """Start a command in a process of its own, without waiting for it."""
        return subprocess.Popen(
            [sys.executable, "-m", "autotune", *map(str, arguments)],
            cwd=self.path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        """Run a command to its end: in this process, or with an environment of its own in another."""
        if not environment:
            return run_in_process(self.path, *arguments)
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=LIMIT_S)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def search(self, *arguments: str, **environment: str) -> dict:
        """Search the folder's space on the fake device and return the JSON result."""
        done = self.run("search", "double.yaml", "--device", "fake", "--json", *arguments, **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def files(self) -> dict[str, bytes]:
        """Every file with its content, relative to the folder."""
        found = [file for file in self.path.rglob("*") if file.is_file() and ".pyc" not in file.name]
        return {str(file.relative_to(self.path)): file.read_bytes() for file in found}


def run_in_process(
    folder: Path, *arguments: object, screen: io.StringIO | None = None
) -> subprocess.CompletedProcess:
    """What the command line does and says in a folder, at a third of the cost of a process.

    `screen` gets both streams.
    """
    out, err = screen or io.StringIO(), screen or io.StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)  # as Python's own defaults have it
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as ended:  # of --help, say
            code = ended.code
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def pytest_addoption(parser):
    parser.addoption("--wide", action="store_true", help="also run tests of many minutes, marked wide")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """No garbage collection looks at modules and tests, half a million objects: none of them is garbage."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_sessionfinish():
    """What libraries look for at their end is found again."""
    gc.unfreeze()


def pytest_collection_modifyitems(config, items):
    """Leave tests of many minutes to a job of their own; where several run at once, the longest begin."""
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist
        from tests.scheduling import LONGEST

        items.sort(key=lambda item: item.nodeid not in LONGEST)
    for item in items:
        if item.get_closest_marker("wide") and not config.getoption("--wide"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: --wide, as .ci/triton does"))


def pytest_configure():
    """Keep each worker of pytest-xdist to one core: a search then starts one compiler, not one per core."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:  # under nohup, for example; commands leave it so
        signal.signal(number, usual)


@pytest.fixture(scope="session", autouse=True)
def own_cache_home(tmp_path_factory):
    """Binaries of tests are kept apart from the user's, and are gone with the session's other files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache-home")))
        yield


@pytest.fixture(autouse=True)
def children_start_fast():
    """What children import is imported once: this file, for functions of tests, and what drafts a space.

    Each test asks for it, as some end the server that has imported it.
    """
    fork_server.preload((__name__, "autotune.drafting.draft_steps"))


@pytest.fixture(scope="session", autouse=True)
def nothing_takes_long():
    """Commands in this process say the same on a loaded machine: not what they do if that takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress.SearchProgress, "_say_lines", lambda shown: shown._ended.wait())
        yield


@pytest.fixture(scope="session", autouse=True)
def devices_listed_once():
    """Commands in this process share one look at the devices: each look starts a process."""
    begin, one_thread = cache(listing.Listing), threading.Lock()

    def begin_once(names):
        with one_thread:  # the others find it finished, as two cannot wait for one process
            found = begin(names)
            found.devices()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "Listing", begin_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def few_runs_of_winners():
    """Commands in this process run a winner 5 times in a row, not 200, as one test of faults does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stress_checks, "MAX_RUNS", 5)
        yield


@pytest.fixture(scope="session", autouse=True)
def short_last_round():
    """Commands in this process time the best in 3 rounds, not 13: on a real CPU, each flushes the caches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remeasure, "ROUNDS", 3)
        patch.setattr(remeasure, "MAX_EXTRA_S", 0.0)
        yield


@pytest.fixture
def whole_last_round(monkeypatch):
    """A last round as users have it."""
    for name, value in LAST_ROUND.items():
        monkeypatch.setattr(remeasure, name, value)


def _fewer_workloads(context):
    """The workloads on other data; on the fake device, of the first three sets only."""
    for name, workload in DEFAULT_WORKLOADS(context):
        if context.task.device.backend != "fake" or name not in DATA_SETS[3:]:
            yield name, workload


@pytest.fixture(scope="session", autouse=True)
def few_data_sets():
    """Commands in this process check winners on the fake device on 3 of 12 other data sets, in less time.

    Real kernels meet all of them, and so do all that tests with `all_data_sets` run.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_checks, "_default_workloads", _fewer_workloads)
        yield


@pytest.fixture
def all_data_sets(monkeypatch):
    """All other data sets on the fake device as well."""
    monkeypatch.setattr(data_checks, "_default_workloads", DEFAULT_WORKLOADS)


LIMIT_S = 300.0  # longer than what does not hang takes on any loaded machine


def wait_until(holds):
    """Return once a condition holds; fail if that takes longer than any loaded machine needs."""
    deadline_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def opened(task, options=None, observer=None, *arguments):
    """What is open during a run of a task."""
    options = options or Options()
    return open_context(with_journal(task, options), options, observer or Observer(), *arguments)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files that only this test uses, with a fork server of its own."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    monkeypatch.setattr(fork_server, "_running", None)
    yield path
    if fork_server._running is not None:
        fork_server._running.close()


@pytest.fixture
def folder(tmp_path):
    """A fresh folder with the doubling kernel."""
    return Folder(tmp_path)


@pytest.fixture(scope="session")
def searched_once(tmp_path_factory):
    """A folder in which all configurations of the doubling kernel were searched."""
    searched = Folder(tmp_path_factory.mktemp("searched"))
    searched.search("--engine", "exhaustive")
    return searched.path


@pytest.fixture
def searched_folder(folder, searched_once):
    """A folder with the doubling kernel and what a search of it left, for tests of what reads that."""
    shutil.copytree(searched_once, folder.path, dirs_exist_ok=True)
    return folder


@pytest.fixture
def short_energy(monkeypatch):
    """Energies of few runs: those of the fake device are the same however many there are."""
    monkeypatch.setattr(tuner, "ENERGY_POLICY", replace(tuner.ENERGY_POLICY, energy_s=0.05))


@pytest.fixture(scope="session")
def root():
    """The project's own folder."""
    return ROOT
