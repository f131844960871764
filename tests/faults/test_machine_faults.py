"""What the machine does to a trial costs no more than the trial: real kills, no memory, a loaded machine."""

import json
import os
import signal
import subprocess
import time
from functools import partial

import pytest

from autotune.core.trials import Binary, Status
from autotune.devices import Address, backend, listing
from autotune.devices.listing import Listing
from autotune.errors import SetupError
from autotune.evaluation import worker as worker_module
from autotune.evaluation.compiler_pool import CompilerPool, CompilerSetting, device_setting
from autotune.evaluation.device_process import DeviceSetting
from autotune.evaluation.journal import read_trials
from autotune.evaluation.worker import Worker
from autotune.processes.child import Child
from autotune.processes.fork_server import fork_server, preload

FAKE = Address("fake", 0)
KERNEL = """\
import os, pathlib, signal

def die_at(number, event):
    \"\"\"Let something happen at the so-manieth time only.\"\"\"
    with open("count", "a") as file:
        file.write("+")
    if os.path.getsize("count") in number:
        event()

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def no_memory():
    raise MemoryError("no room on the host")

def compiling():
    COMPILING

def double(grid, block, x, y, n):
    source = x.view("int32")
    RUNNING
    y.view("int32")[:n] = 2 * source[:n]
    return (A - 5) ** 2 + B + 1.0
"""
BEST = {"A": 5, "B": 0}


@pytest.fixture
def disturbed(folder):
    """A folder with two configurations, in which something happens to the compiler or to the kernel."""
    folder.edit("A: [1, 2, 3, 4, 5, 6]", "A: [1, 5]")
    folder.edit("B: [0, 1, 2]", "B: [0]")
    folder.edit("  second: {A: 2}", "  second: {A: 5}")

    def write(compiling="pass", running="pass"):
        folder.write(KERNEL.replace("COMPILING", compiling).replace("RUNNING", running))
        return folder

    return write


def _rows(folder, result):
    return {trial.config["A"]: trial for trial in read_trials(folder.path / result["journal"])}


@pytest.mark.parametrize("event", ["kill", "no_memory"])
def test_what_befalls_a_compiler_once_costs_no_trial(disturbed, event):
    folder = disturbed(compiling=f"A == 5 and die_at([1], {event})")
    result = folder.search()
    assert result["config"] == BEST and result["counts"] == {"ok": 2}


def test_a_compiler_that_is_killed_again_is_tried_by_the_next_search(disturbed):
    folder = disturbed(compiling="A == 5 and die_at([1, 2], kill)")
    first = folder.search()
    row = _rows(folder, first)[5]
    assert first["config"]["A"] == 1 and first["counts"] == {"ok": 1, "crashed": 1}
    assert row.status is Status.CRASHED and row.by_machine and "SIGKILL" in row.detail
    second = folder.search()
    assert second["config"] == BEST and second["counts"] == {"ok": 2}
    assert second["trials"] == 2 and second["resumed"] == 1
    assert not _rows(folder, second)[5].by_machine


def test_compilers_that_are_all_killed_at_once_cost_no_trial():
    """They are forks of one server, and end with it."""
    pool = CompilerPool(device_setting(FAKE), size=4, timeout_s=60)
    try:
        assert isinstance(pool.compile_source("x = 0", ()).result(), Binary)
        fork_server().process.kill()
        compiled = [pool.compile_source(f"x = {number}", ()).result() for number in range(4)]
        assert [one for one in compiled if not isinstance(one, Binary)] == []
    finally:
        pool.close()


def test_a_compiler_that_cannot_be_started_again_is_started_by_the_next_compilation(monkeypatch):
    def no_process(*arguments, **options):
        raise BlockingIOError("the machine has too many processes")

    pool = CompilerPool(device_setting(FAKE), size=1, timeout_s=60)
    try:
        server = fork_server()
        server.process.kill()
        server.process.wait()
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", no_process)
            for _ in range(2):
                failure = pool.compile_source("x = 0", ()).result(timeout=60)
                assert failure.by_machine and failure.detail == (
                    "no compiler can be started: the machine has too many processes"
                )
        assert isinstance(pool.compile_source("x = 0", ()).result(timeout=60), Binary)
    finally:
        pool.close()


STAGES = {  # runs of the best configuration: two at each of three sizes, then timing, then the last round
    "verifying": ("die_at([1], kill)", ()),
    "timing": ("die_at([9], kill)", ()),
    "without memory": ("die_at([9], no_memory)", ()),
    "fresh inputs": ("n == 1000 and source[0] != FIRST and die_at([1], kill)", ()),
    "turns": ("die_at([60], kill)", ()),
    "energy": ("OPTIONS == () and die_at([600], kill)", ("--objective", "energy")),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_kill_of_the_device_process_costs_no_trial_at_any_stage(disturbed, stage):
    from tests.faults.test_kernel_faults import _first_input

    when, options = STAGES[stage]
    folder = disturbed(running=f"A == 5 and {when.replace('FIRST', str(_first_input()))}")
    result = folder.search(*options)
    assert result["config"] == BEST and result["counts"] == {"ok": 2}
    assert (folder.path / "count").stat().st_size > int(when.split("[")[-1].split("]")[0]), "nothing happened"


def test_a_device_process_that_is_killed_again_is_tried_by_the_next_search(disturbed):
    folder = disturbed(running="A == 5 and die_at([1, 2], kill)")
    first = folder.search()
    row = _rows(folder, first)[5]
    assert first["counts"] == {"ok": 1, "crashed": 1} and row.by_machine and "tries again" in row.detail
    assert row.cost_s > 0
    second = folder.search()
    assert second["config"] == BEST and second["resumed"] == 1


def test_a_crash_that_is_the_configurations_own_is_believed(disturbed):
    folder = disturbed(running="A == 5 and os.kill(os.getpid(), signal.SIGSEGV)")
    assert folder.search()["counts"] == {"ok": 1, "crashed": 1}
    again = folder.search()
    assert again["resumed"] == 2 and not _rows(folder, again)[5].by_machine


@pytest.mark.parametrize("event", ["os.kill(os.getpid(), signal.SIGKILL)", "raise MemoryError"])
def test_a_kill_while_the_problem_is_prepared_does_not_end_the_search(disturbed, event):
    folder = disturbed()
    (folder.path / "reference.py").write_text(f"""\
import os, pathlib, signal
def reference(inputs, sizes):
    first = pathlib.Path(__file__).with_name("first")
    if not first.exists():
        first.touch()
        {event}
    return {{"y": 2 * inputs["x"]}}
""")
    result = folder.search()
    assert result["config"] == BEST and result["counts"] == {"ok": 2}


def test_a_kill_while_devices_are_listed_is_made_good(monkeypatch):
    """The first process that is to list them is killed."""
    asked = []

    class KilledOnce(Child):
        def ask(self, *call, **options):
            if not asked:
                os.kill(self.pid, signal.SIGKILL)
            asked.append(self.pid)
            super().ask(*call, **options)

    monkeypatch.setattr(listing, "Child", KilledOnce)
    found = Listing(("fake",)).devices()
    assert FAKE in [address for address, _ in found] and len(asked) == 2


class SleepyCompiler:
    """Sleeps when it compiles for the first time."""

    identity = None

    def __init__(self, mark):
        self.mark = mark

    def compile(self, source, options, names=()):
        sleep_once(None, self.mark)
        return backend("fake").open_compiler(0).compile(source, options)


def sleep_once(_, mark):
    if not mark.exists():
        mark.touch()
        time.sleep(60)
    return 42


@pytest.mark.parametrize(("load", "is_repeated"), [(1e3, True), (0.0, False)])
def test_a_timeout_is_repeated_on_a_loaded_machine_only(tmp_path, monkeypatch, load, is_repeated):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    preload((__name__,))  # else a process would import this module in the time that its call has
    (tmp_path / "reference.py").write_text("")
    worker = Worker(DeviceSetting(FAKE, tmp_path / "reference.py"))
    worker.load()
    found = worker.run(sleep_once, tmp_path / "run", timeout_s=3)
    worker.discard_child()
    setting = CompilerSetting(partial(SleepyCompiler, tmp_path / "compiled"))
    pool = CompilerPool(setting, size=1, timeout_s=3)
    compiled = pool.compile_source("x = 1", ()).result()
    pool.close()
    if is_repeated:
        assert found == 42 and isinstance(compiled, Binary)
    else:
        assert found.status is Status.TIMEOUT and not found.by_machine
        assert compiled.status is Status.COMPILE_TIMEOUT and not compiled.by_machine


def test_a_reference_that_hangs_is_named_at_once_and_again_at_the_limit(folder, monkeypatch):
    (folder.path / "reference.py").write_text("import time\n\ndef reference(i, s):\n    time.sleep(60)\n")
    monkeypatch.setattr(worker_module, "SETUP_TIMEOUT_S", 1.0)
    from tests.unit.test_device_sanitizer import PROBLEM

    said = []
    worker = Worker(DeviceSetting(FAKE, folder.path / "reference.py", (PROBLEM,)), on_stage=said.append)
    with pytest.raises(SetupError, match=r"reference\.py on fake:0.*not ready within 1 s.*--size"):
        worker.load(PROBLEM)
    assert [str(stage) for stage in said] == ["preparing inputs and reference (reference.py) at n=4"]


def test_an_energy_that_cannot_be_measured_leaves_the_times_as_they_are(folder):
    """OpenCL devices count no energy."""
    from tests.unit.test_compiler_pool import CL_KERNEL, CL_SPACE

    (folder.path / "double.cl").write_text(CL_KERNEL)
    folder.space.write_text(CL_SPACE)
    command = ["search", "double.yaml", "--device", "opencl", "--journal", "j.jsonl", "--json"]
    command.append("--no-sanitizer")
    assert folder.run(*command).returncode == 0
    energy = folder.run(*command, "--objective", "energy")
    assert energy.returncode == 1 and "measurement_error: the device has no energy counter" in energy.stderr
    again = folder.run(*command)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["counts"] == {"ok": 2}
