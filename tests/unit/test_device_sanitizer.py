"""The sanitizer's verdict on a winner, from a stand-in for the program that needs a GPU."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

from autotune.checks.device_sanitizer import BROKEN, RUNS_OF_PROCESS, TOOLS, Sanitizer, find_sanitizer
from autotune.core.outcomes import PASSED, Passed, Unchecked
from autotune.core.records import Launch
from autotune.core.stages import of_last_round
from autotune.core.trials import Budget, Failure, Problem, Status
from autotune.devices import Address, backend
from autotune.errors import ChildTimeout, SetupError
from autotune.evaluation.device_process import DeviceSetting, DeviceState, verify_once
from autotune.problem.workload import Array, Scalar, Workload
from autotune.processes.child import Child
from autotune.processes.deadline import Deadline
from autotune.tuning import shared_processes
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.shared_processes import open_processes
from autotune.tuning.stress_checks import MANY_RUNS
from autotune.tuning.task import Target, read_task
from autotune.tuning.tuner import search
from autotune.tuning.winner_checks import WinnerChecks
from tests.conftest import LIMIT_S, opened, wait_until
from tests.unit.test_child import _alive

FAKE = Address("fake", 0)
KERNEL = 'def double(grid, block, x, n):\n    x.view("float32")[:n] *= 2\n'
PROBLEM = Workload(
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
def only(monkeypatch):
    """Leaves one tool of the sanitizer."""
    return lambda tool: monkeypatch.setattr("autotune.checks.device_sanitizer.TOOLS", (tool,))


@pytest.fixture
def stand_in(tmp_path, reference):
    """A program that runs what follows its options, and then says and does what it is told to."""

    def make(words, code):
        program = tmp_path / "compute-sanitizer"
        program.write_text(f'#!/bin/sh\n{SKIP_OPTIONS}\n"$@"\necho "{words}"\nexit {code}\n')
        program.chmod(0o755)
        return Sanitizer(str(program), FAKE, reference)

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
def test_what_a_tool_finds_is_a_failure_with_its_first_words(stand_in, binary, tool, words, status, only):
    only(tool)
    (found,) = stand_in(f"========= {words}", 86).check([(binary, (PROBLEM,))], Deadline())
    failure = found[tool]
    assert failure.status is status
    assert failure.detail == f"compute-sanitizer found: {words.removeprefix('Error: ')}"


def test_a_process_that_stands_by_runs_the_first_check_alone(tmp_path, stand_in, binary, only):
    only("memcheck")
    sanitizer = stand_in("", 0)
    program, started = tmp_path / "compute-sanitizer", tmp_path / "started"
    program.write_text(program.read_text().replace('"$@"', f'echo $$ >> {started}\n"$@"'))
    with sanitizer.standing_by():
        wait_until(lambda: processes(started))
        for count in (1, 2):  # no process stands by for the second check
            assert sanitizer.check([(binary, (PROBLEM,))], Deadline()) == [{"memcheck": PASSED}]
            assert len(processes(started)) == count
    with sanitizer.standing_by():
        wait_until(lambda: len(processes(started)) == 3)
    assert not any(_alive(int(process)) for process in processes(started))
    assert sanitizer.check([(binary, (PROBLEM,))], Deadline()) == [{"memcheck": PASSED}]


@pytest.fixture
def finds_broken(tmp_path, reference):
    """A stand-in that finds something in every process that runs a kernel that prints BROKEN."""
    program = tmp_path / "compute-sanitizer"
    program.write_text(
        f'#!/bin/sh\n{SKIP_OPTIONS}\n"$@" > "$0.$$" 2>&1\n'
        'grep -q BROKEN "$0.$$" && echo "========= Invalid read" && exit 86\nexit 0\n'
    )
    program.chmod(0o755)
    return Sanitizer(str(program), FAKE, reference)


def kernel_that(does):
    text = f"import os, signal\n\ndef double(grid, block, x, n):\n    {does}\n"
    return backend("fake").open_compiler(0).compile(text, ())


SHOWN = 'print("BROKEN", flush=True)'


@pytest.mark.parametrize(("place", "count"), [(1, 3), (RUNS_OF_PROCESS + 1, RUNS_OF_PROCESS + 2)])
def test_a_finding_is_of_the_configuration_that_shows_it(finds_broken, binary, place, count, only):
    only("memcheck")
    runs = [(kernel_that(SHOWN) if number == place else binary, (PROBLEM,)) for number in range(count)]
    found = [one["memcheck"] for one in finds_broken.check(runs, Deadline())]
    assert found.pop(place).status is Status.OUT_OF_BOUNDS and found == [PASSED] * (count - 1)


@pytest.mark.parametrize("end", ENDS)
def test_configurations_after_one_that_breaks_the_process_are_checked_in_another(
    finds_broken, binary, end, only
):
    only("racecheck")
    ends, broken = kernel_that(end), kernel_that(SHOWN)
    runs = [(one, (PROBLEM, PROBLEM)) for one in (binary, ends, ends, broken, ends, binary)]
    found = [one["racecheck"] for one in finds_broken.check(runs, Deadline())]
    assert isinstance(found.pop(3), Failure) and found == [PASSED, BROKEN, BROKEN, BROKEN, PASSED]


def test_those_with_a_finding_among_them_run_alone_at_the_same_time(
    tmp_path, stand_in, binary, only, monkeypatch
):
    only("memcheck")
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2})
    sanitizer, started = stand_in("========= Invalid read", 86), tmp_path / "started"
    program, left_alone = Path(sanitizer.program), tmp_path / "left_alone"
    # all but the first, which runs them together, wait for each other
    count = f"$(wc -l < {started})"
    waits = f"for one in $(seq 200); do [ {count} -eq 4 ] && exit 86; sleep 0.1; done; touch {left_alone}"
    text = f'echo $$ >> {started}\n"$@"\necho "========= Invalid read"\n[ {count} -eq 1 ] || {{ {waits}; }}'
    program.write_text(program.read_text().replace('"$@"', text))
    found = sanitizer.check([(binary, (PROBLEM,))] * 3, Deadline())
    assert [type(one["memcheck"]) for one in found] == [Failure] * 3
    assert len(processes(started)) == 4 and not left_alone.exists()


@pytest.mark.parametrize(("code", "count"), [(0, RUNS_OF_PROCESS + 1), (86, 2)])
def test_no_more_run_at_once_than_there_are_tools_or_cores(
    tmp_path, reference, binary, monkeypatch, code, count
):
    """Each has a context on the GPU, and what does not fit there is not checked."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})
    tools = TOOLS[:2]  # each starts Python anew, for each part
    monkeypatch.setattr("autotune.checks.device_sanitizer.TOOLS", tools)
    program, running, counts = (tmp_path / name for name in ("compute-sanitizer", "running", "counts"))
    running.mkdir()
    program.write_text(
        f'#!/bin/sh\n{SKIP_OPTIONS}\nmkdir "{running}/$$"\nls "{running}" | wc -l >> "{counts}"\n'
        f'"$@"\nrmdir "{running}/$$"\necho "========= Invalid read"\nexit {code}\n'
    )
    program.chmod(0o755)
    runs = [(binary, (PROBLEM,))] * count
    records = Sanitizer(str(program), FAKE, reference).check(runs, Deadline())
    outcome = Failure if code else Passed
    assert all(isinstance(record[tool], outcome) for record in records for tool in tools)
    found = [int(count) for count in counts.read_text().split()]
    parts = 1 + count if code else 2  # together, and then alone
    assert len(found) == parts * len(tools) and max(found) <= len(tools)


@pytest.mark.parametrize("end", ENDS)
def test_what_it_finds_counts_when_the_error_breaks_the_child(stand_in, end, only):
    only("memcheck")
    broken = kernel_that(end)
    words = "========= Invalid __global__ read of size 4 bytes"
    runs = [(broken, (PROBLEM, PROBLEM))]
    (found,) = stand_in(words, 86).check(runs, Deadline())
    assert found["memcheck"].status is Status.OUT_OF_BOUNDS
    assert found["memcheck"].detail == "compute-sanitizer found: Invalid __global__ read of size 4 bytes"
    quiet = stand_in("========= ERROR SUMMARY: 0 errors", 0)
    assert quiet.check(runs, Deadline()) == [{"memcheck": BROKEN}]


RACES = "Potential RAW hazard detected at __shared__ 0x0"


@pytest.mark.parametrize(
    ("printed", "outcome"),
    [
        ("Error: " + RACES + r"\n", Failure),
        ("Error: " + RACES, Unchecked),  # it has not printed the whole line
        ("Warning: " + RACES + r"\n", Unchecked),  # its exit code would say whether this counts
        ("", Unchecked),
    ],
)
def test_what_a_tool_has_printed_counts_though_it_does_not_end(
    tmp_path, stand_in, binary, only, printed, outcome
):
    """With an error in each of many threads, it takes minutes to end."""
    only("racecheck")
    sanitizer = stand_in("", 0)
    Path(sanitizer.program).write_text(
        f"#!/bin/sh\n{SKIP_OPTIONS}\nprintf '========= {printed}'\nsleep 100\n"
    )
    (found,) = sanitizer.check([(binary, (PROBLEM,))], Deadline(time.perf_counter() + 1))
    assert isinstance(found["racecheck"], outcome)
    if outcome is Failure:
        assert found["racecheck"].detail == f"compute-sanitizer found: {RACES}"


def test_no_reference_runs(stand_in, binary, reference, only):
    only("memcheck")
    reference.write_text("def reference(inputs, sizes):\n    raise RuntimeError\n")
    found = stand_in("", 0).check([(binary, (PROBLEM,))], Deadline())
    assert found == [{"memcheck": PASSED}]


def test_a_tool_that_does_not_work_has_not_passed(stand_in, binary, tmp_path, reference, only):
    only("memcheck")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    found = Sanitizer(str(broken), FAKE, reference).check([(binary, (PROBLEM,))], Deadline())
    assert found == [{"memcheck": BROKEN}]
    unsupported = stand_in("========= Error: the device is not supported", 86)
    assert unsupported.check([(binary, (PROBLEM,))], Deadline()) == [{"memcheck": BROKEN}]
    works = stand_in("========= ERROR SUMMARY: 0 errors", 0)
    assert works.check([(binary, (PROBLEM,))], Deadline()) == [{"memcheck": PASSED}]


def test_only_nvidia_gpus_have_one():
    assert find_sanitizer(FAKE) is None and find_sanitizer(Address("opencl", 0)) is None


def test_a_child_that_does_not_end_is_killed(binary, reference):
    child = Child(
        DeviceState, DeviceSetting(FAKE, reference, (PROBLEM,)), wrapper=("sh", "-c", '"$@"; sleep 60', "sh")
    )
    assert not isinstance(child.call(verify_once, binary, PROBLEM, timeout_s=LIMIT_S), Failure)
    with pytest.raises(ChildTimeout):
        child.finish(0.5)


class BeforeTiming(Observer):
    """Waits in the last round until each tool has a process, and then does what it is told to."""

    def __init__(self, started, then):
        self.log, self.then, self.before = started, then, []

    def stage(self, stage):
        if stage.name == of_last_round("waiting for references"):
            wait_until(lambda: len(processes(self.log)) >= len(TOOLS))
            self.before = processes(self.log)
            self.then()


def processes(started):
    return started.read_text().split() if started.exists() else []


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """The processes of a sanitizer for the fake device, in a file."""
    program, started = tmp_path / "compute-sanitizer", tmp_path / "started"
    program.write_text(f'#!/bin/sh\n{SKIP_OPTIONS}\necho $$ >> {started}\nexec "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr("autotune.tuning.shared_processes.find_sanitizer", lambda address: str(program))
    return started


def options_for(folder, **words):
    return Options(journal=folder.path / "j.jsonl", cache=folder.path / "c", transfer=False, **words)


def test_the_processes_of_the_checks_begin_before_the_best_are_timed(folder, logged):
    task, options = read_task(Target(folder.space, "fake")), options_for(folder, budget=Budget(trials=5))
    observer = BeforeTiming(logged, lambda: None)
    result = search(task, options, observer)
    assert all(result.checks[tool] is PASSED for tool in TOOLS)
    assert processes(logged) == observer.before  # no others were needed
    assert len(observer.before) == len(TOOLS)
    again = search(task, options, Observer())
    assert again.resumed == 5 and processes(logged) == observer.before  # nothing ran, nothing was begun


def test_a_search_without_sanitizers_begins_none(folder, logged):
    options = options_for(folder, budget=Budget(trials=5), sanitizer=False)
    search(read_task(Target(folder.space, "fake")), options, Observer())
    assert not processes(logged)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SetupError])
def test_the_processes_end_with_a_search_that_is_interrupted_or_fails(folder, logged, error):
    def fail():
        raise error

    observer = BeforeTiming(logged, fail)
    options = options_for(folder, budget=Budget(trials=5))
    with pytest.raises(error):
        search(read_task(Target(folder.space, "fake")), options, observer)
    assert observer.before and not any(_alive(int(process)) for process in observer.before)


class Interrupts(Observer):
    """Raises an interrupt at the first check, once a sanitizer is under way."""

    def __init__(self, begun):
        self.begun = begun

    def stage(self, stage):
        if stage.name == f"last round: {MANY_RUNS}":
            wait_until(self.begun.exists)
            raise KeyboardInterrupt


def test_an_interrupt_ends_the_sanitizers_too(folder, tmp_path, monkeypatch):
    program, begun, ended = (tmp_path / name for name in ("compute-sanitizer", "begun", "ended"))
    program.write_text(f'#!/bin/sh\ntouch "{begun}"\nsleep 5\ntouch "{ended}"\n')
    program.chmod(0o755)
    task = read_task(Target(folder.space, "fake"))
    with opened(task, Options(journal=tmp_path / "j.jsonl"), Interrupts(begun)) as context:
        sanitizer = Sanitizer(str(program), FAKE, folder.path / "reference.py")
        monkeypatch.setattr(type(context.processes), "sanitizer", sanitizer)
        with pytest.raises(KeyboardInterrupt):
            WinnerChecks().check(context, [task.spec.default], Deadline())
    assert not ended.exists()


def test_threads_that_ask_for_the_sanitizer_at_the_same_time_get_the_same(folder, monkeypatch):
    both = Barrier(2)

    def find(address):
        with suppress(BrokenBarrierError):
            both.wait(0.2)
        return "compute-sanitizer"

    monkeypatch.setattr(shared_processes, "find_sanitizer", find)
    task = read_task(Target(folder.space, "fake"))
    with open_processes(task, Options(), Observer()) as processes, ThreadPoolExecutor(2) as threads:
        one, other = (threads.submit(lambda: processes.sanitizer) for _ in range(2))
        assert one.result() is other.result() is not None
