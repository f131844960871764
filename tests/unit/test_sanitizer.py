"""The sanitizer's verdict on a winner, from a stand-in for the program that needs a GPU."""

from dataclasses import replace

import pytest

from autotune.core.records import Launch
from autotune.core.trials import Failure, Problem, Status
from autotune.devices import Address, backend
from autotune.errors import ChildTimeout
from autotune.evaluation.deadline import Deadline
from autotune.evaluation.device_process import DeviceSetting, DeviceState, verify_once
from autotune.evaluation.sanitizer import RUNS_OF_PROCESS, TOOLS, Sanitizer, find_sanitizer
from autotune.problem.problem_instance import Array, ProblemInstance, Scalar
from autotune.processes.child import Child
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.stored_checks import MANY_RUNS, StoredChecks
from autotune.tuning.task import Target, bind_target
from tests.conftest import LIMIT_S, opened, wait_until

FAKE = Address("fake", 0)
KERNEL = 'def double(grid, block, x, n):\n    x.view("float32")[:n] *= 2\n'
PROBLEM = ProblemInstance(
    Problem({"n": 4}, "float32"),
    (Array("x", "float32", (4,), "inout", ("constant", 1)),),
    (Scalar("n", "int32", 4),),
    (Launch("double", (1, 1, 1), (1, 1, 1), 0, ("x", "n")),),
)

ENDS = ('raise RuntimeError("launch failed")', "os.kill(os.getpid(), signal.SIGSEGV)")
SKIP_OPTIONS = 'while [ "${1#--}" != "$1" ]; do shift 2; done'  # each has a value


@pytest.fixture
def binary():
    return backend("fake").open_compiler(0).compile(KERNEL, ())


@pytest.fixture
def reference(tmp_path):
    path = tmp_path / "reference.py"
    path.write_text("def reference(inputs, sizes):\n    return {'x': inputs['x'] * 2}\n")
    return path


@pytest.fixture
def stand_in(tmp_path, reference):
    """A program that runs what follows its options, and then says and does what it is told to."""

    def make(words, code):
        program = tmp_path / "compute-sanitizer"
        program.write_text(f'#!/bin/sh\n{SKIP_OPTIONS}\n"$@"\necho "{words}"\nexit {code}\n')
        program.chmod(0o755)
        return Sanitizer(str(program), FAKE, reference, {})

    return make


@pytest.mark.parametrize(
    ("tool", "words", "status"),
    [
        ("memcheck", "Invalid __shared__ read of size 4 bytes", Status.OUT_OF_BOUNDS),
        ("racecheck", "Error: Potential RAW hazard detected at __shared__ 0x0", Status.WRONG_RESULT),
        ("initcheck", "Uninitialized __global__ memory read of size 4 bytes", Status.WRONG_RESULT),
        ("synccheck", "Barrier error detected. Divergent thread(s) in block", Status.WRONG_RESULT),
    ],
)
def test_what_a_tool_finds_is_a_failure_with_its_first_words(stand_in, binary, tool, words, status):
    (failure,) = stand_in(f"========= {words}", 86).check([(binary, (PROBLEM,))], Deadline(), [tool]).values()
    assert failure.status is status
    assert failure.detail == f"compute-sanitizer found: {words.removeprefix('Error: ')}"


@pytest.fixture
def finds_broken(tmp_path, reference):
    """A stand-in that finds something in every process that runs a kernel that prints BROKEN."""
    program = tmp_path / "compute-sanitizer"
    program.write_text(
        f'#!/bin/sh\n{SKIP_OPTIONS}\n"$@" > "$0.$$" 2>&1\n'
        'grep -q BROKEN "$0.$$" && echo "========= Invalid read" && exit 86\nexit 0\n'
    )
    program.chmod(0o755)
    return Sanitizer(str(program), FAKE, reference, {})


def kernel_that(does):
    text = f"import os, signal\n\ndef double(grid, block, x, n):\n    {does}\n"
    return backend("fake").open_compiler(0).compile(text, ())


BROKEN = 'print("BROKEN", flush=True)'


@pytest.mark.parametrize(("place", "count"), [(1, 3), (RUNS_OF_PROCESS + 1, RUNS_OF_PROCESS + 2)])
def test_a_finding_is_of_the_configuration_that_shows_it(finds_broken, binary, place, count):
    runs = [(kernel_that(BROKEN) if number == place else binary, (PROBLEM,)) for number in range(count)]
    failures = finds_broken.check(runs, Deadline(), ["memcheck"])
    assert {number: failure.status for number, failure in failures.items()} == {place: Status.OUT_OF_BOUNDS}


@pytest.mark.parametrize("end", ENDS)
def test_configurations_after_one_that_breaks_the_process_are_checked_in_another(finds_broken, binary, end):
    ends, broken = kernel_that(end), kernel_that(BROKEN)
    runs = [(one, (PROBLEM, PROBLEM)) for one in (binary, ends, ends, broken, ends, binary)]
    assert finds_broken.check(runs, Deadline(), ["racecheck"]).keys() == {3}


def test_no_more_run_at_once_than_there_are_tools_or_cores(tmp_path, reference, binary, monkeypatch):
    """Each has a context on the GPU, and what does not fit there is not checked."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})
    program, running, counts = (tmp_path / name for name in ("compute-sanitizer", "running", "counts"))
    running.mkdir()
    program.write_text(
        f'#!/bin/sh\n{SKIP_OPTIONS}\nmkdir "{running}/$$"\nls "{running}" | wc -l >> "{counts}"\n'
        f'"$@"\nrmdir "{running}/$$"\n'
    )
    program.chmod(0o755)
    runs = [(binary, (PROBLEM,))] * (RUNS_OF_PROCESS + 1)
    assert Sanitizer(str(program), FAKE, reference, {}).check(runs, Deadline()) == {}
    found = [int(count) for count in counts.read_text().split()]
    assert len(found) == 2 * len(TOOLS) and max(found) <= len(TOOLS)


@pytest.mark.parametrize("end", ENDS)
def test_what_it_finds_counts_when_the_error_breaks_the_child(stand_in, end):
    broken = kernel_that(end)
    words = "========= Invalid __global__ read of size 4 bytes"
    (failure,) = stand_in(words, 86).check([(broken, (PROBLEM, PROBLEM))], Deadline(), ["memcheck"]).values()
    assert failure.status is Status.OUT_OF_BOUNDS
    assert failure.detail == "compute-sanitizer found: Invalid __global__ read of size 4 bytes"
    assert (
        stand_in("========= ERROR SUMMARY: 0 errors", 0).check(
            [(broken, (PROBLEM,))], Deadline(), ["memcheck"]
        )
        == {}
    )


def test_no_reference_runs(stand_in, binary, reference):
    reference.write_text("def reference(inputs, sizes):\n    raise RuntimeError\n")
    deadline = Deadline()
    found = stand_in("", 0).check([(binary, (PROBLEM,))], deadline, ["memcheck"])
    assert found == {} and not deadline.broken


def test_a_clean_run_is_no_failure(stand_in, binary):
    assert (
        stand_in("========= ERROR SUMMARY: 0 errors", 0).check(
            [(binary, (PROBLEM,))], Deadline(), ["memcheck"]
        )
        == {}
    )


def test_a_sanitizer_that_does_not_work_finds_nothing(stand_in, binary, tmp_path, reference):
    for code in (1, 86):
        unsupported = stand_in("========= Error: the device is not supported", code)
        assert unsupported.check([(binary, (PROBLEM,))], Deadline(), ["memcheck"]) == {}
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert (
        Sanitizer(str(broken), FAKE, reference, {}).check([(binary, (PROBLEM,))], Deadline(), ["memcheck"])
        == {}
    )


def test_a_tool_that_does_not_work_is_named(stand_in, binary, tmp_path, reference):
    broken, deadlines = tmp_path / "broken", [Deadline() for _ in range(3)]
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    Sanitizer(str(broken), FAKE, reference, {}).check([(binary, (PROBLEM,))], deadlines[0], ["memcheck"])
    outputs = (("Error: the device is not supported", 86), ("ERROR SUMMARY: 0 errors", 0))
    for (words, code), deadline in zip(outputs, deadlines[1:], strict=True):
        stand_in(f"========= {words}", code).check([(binary, (PROBLEM,))], deadline, ["memcheck"])
    assert [list(one.broken) for one in deadlines] == [["memcheck"], ["memcheck"], []]


def test_only_nvidia_gpus_have_one():
    assert find_sanitizer(FAKE) is None and find_sanitizer(Address("opencl", 0)) is None


def test_a_child_that_does_not_end_is_killed(binary, reference):
    child = Child(
        DeviceState, DeviceSetting(FAKE, reference, (PROBLEM,)), wrapper=("sh", "-c", '"$@"; sleep 60', "sh")
    )
    assert not isinstance(child.call(verify_once, binary, PROBLEM, timeout_s=LIMIT_S), Failure)
    with pytest.raises(ChildTimeout):
        child.finish(0.5)


class Interrupts(Observer):
    """Raises an interrupt at the first check, once a sanitizer is under way."""

    def __init__(self, begun):
        self.begun = begun

    def stage(self, stage):
        if stage.name == f"last round: {MANY_RUNS}":
            wait_until(self.begun.exists)
            raise KeyboardInterrupt


def test_an_interrupt_ends_the_sanitizers_too(folder, tmp_path):
    program, begun, ended = (tmp_path / name for name in ("compute-sanitizer", "begun", "ended"))
    program.write_text(f'#!/bin/sh\ntouch "{begun}"\nsleep 5\ntouch "{ended}"\n')
    program.chmod(0o755)
    task = bind_target(Target(folder.space, "fake"))
    with opened(task, Options(journal=tmp_path / "j.jsonl"), Interrupts(begun)) as context:
        sanitizer = Sanitizer(str(program), FAKE, folder.path / "reference.py", {})
        with pytest.raises(KeyboardInterrupt):
            StoredChecks().check(replace(context, sanitizer=sanitizer), [task.spec.default])
    assert not ended.exists()
