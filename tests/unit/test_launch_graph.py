"""Bound and repeated launches as graphs, on a double of the CUDA driver; tests/gpu has them on GPUs."""

import ctypes
import struct
from dataclasses import replace
from types import SimpleNamespace

import pytest

from autotune.core.records import Launch
from autotune.devices.element_types import scalar_of
from autotune.runtime import cuda
from autotune.runtime.prepared import LEGACY, PER_THREAD, CallPlan, Hidden, Workspace
from tests.driver_double import CONTEXT, driver_double

OUT_OF_MEMORY = 2
OTHER_CONTEXT, STREAM = 8, 4096
STEP = Launch("add", (4, 1, 1), (32, 1, 1), 0, ("x",))


@pytest.fixture
def driver(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "_REPEATS", 3)
    with driver_double(tmp_path, monkeypatch) as double:
        yield double


def prepare(stream, launches=(STEP,), make=cuda._Prepared, **plan):
    """The launches of a kernel with one array, on a program that is not read."""
    program = SimpleNamespace(
        cubins=SimpleNamespace(completed=lambda step: step), function=lambda step: ctypes.c_void_p(5)
    )
    whole = CallPlan(("x",), {}, (), (), launches)._replace(**plan)
    more = () if make is cuda._Prepared else (Workspace(),)
    return make(program, whole, ctypes.c_void_p(CONTEXT), stream, *more)


def call(bound):
    if status := bound.enqueue():
        bound.finish(status)


@pytest.mark.parametrize("make", [cuda._Prepared, cuda._PreparedWithMemory])
@pytest.mark.parametrize("stream", [LEGACY, STREAM])
def test_a_bound_kernel_is_one_graph(driver, stream, make):
    bound = prepare(stream, (STEP, STEP), make).bind([11])
    assert driver.ran == [] and driver.graphs_alive == 1
    call(bound)
    call(bound)
    assert driver.ran == [11] * 4 and driver.graph_launches == 2


def test_a_bound_kernel_is_queued_one_by_one_in_a_capture(driver):
    bound = prepare(STREAM).bind([11])
    driver.set(is_captured=1)
    call(bound)
    driver.set(is_captured=0)
    assert driver.ran == [11] and driver.graph_launches == 0


def test_on_the_default_stream_of_another_context_it_runs_in_its_own(driver):
    bound = prepare(LEGACY).bind([11])
    driver.enter(OTHER_CONTEXT)
    call(bound)
    assert driver.ran == [11] and driver.graph_launches == 0
    driver.enter(CONTEXT)
    call(bound)
    assert driver.ran == [11, 11] and driver.graph_launches == 1


@pytest.mark.parametrize(
    ("stream", "changed"),
    [(STREAM, {"is_refused": 1}), (STREAM, {"launch_status": OUT_OF_MEMORY}), (PER_THREAD, {})],
)
def test_without_a_graph_launches_go_on(driver, stream, changed):
    driver.set(**changed)
    prepared = prepare(stream)
    call(prepared.bind([11]))
    for _ in range(8):
        prepared.run([12])
    assert driver.ran == [11, *[12] * 8] and driver.graph_launches == 0


@pytest.mark.parametrize("make", [cuda._Prepared, cuda._PreparedWithMemory])
def test_calls_that_repeat_become_a_graph_until_other_arrays_do(driver, make):
    prepared = prepare(STREAM, make=make)
    passed = [1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 2, 2, 2, 2, 2, 2, 1]
    as_graph = []
    for value in passed:
        before = driver.graph_launches
        prepared.run([value])
        as_graph.append(driver.graph_launches > before)
    assert driver.ran == passed
    assert [place for place, one in enumerate(as_graph) if one] == [7, 8, 10, 14, 15, 16]
    assert driver.graphs_alive == 1


def test_repeated_calls_make_a_limited_number_of_graphs(driver, monkeypatch):
    monkeypatch.setattr(cuda, "_MAX_GRAPHS", 2)
    kept = [prepare(STREAM) for _ in range(4)]
    for prepared in kept:
        for _ in range(6):
            prepared.run([5])
    assert driver.graphs_alive == 2 and driver.ran == [5] * 24


def test_a_graph_is_freed_with_the_bound_function_or_the_kernel(driver):
    prepared = prepare(STREAM)
    bound = prepared.bind([1])
    for _ in range(6):
        prepared.run([2])
    assert driver.graphs_alive == 2
    del bound
    assert driver.graphs_alive == 1
    del prepared
    assert driver.graphs_alive == 0


def test_a_thread_without_a_context_calls_on_its_own_stream(driver):
    scratch = Hidden("x", 0)
    run = prepare(PER_THREAD, make=cuda._PreparedWithMemory, given=(), hidden=(scratch,)).run
    driver.enter(0)
    run([])
    assert driver.runs == 1


def test_the_pointers_of_a_structure_follow_the_arrays_of_each_call(driver, monkeypatch):
    """The bytes of a structure of two pointers and a number, one of which leads to a view of the array."""
    passed = []

    def launch_call(step, function, arguments, stream):
        return lambda: passed.append(bytes(arguments[0])) or 0

    monkeypatch.setattr(cuda, "launch_call", launch_call)
    all_of_it = scalar_of("struct(x:pointer,n:int32,right:pointer)", ("x", 7, "right"))
    plan = {
        "scalars": {"all": all_of_it},
        "views": (("right", "x", 4),),
        "pointers": (("all", 0, "x"), ("all", 16, "right")),
    }
    prepared = prepare(STREAM, (replace(STEP, arguments=("all",)),), **plan)
    prepared.run([11])
    prepared.run([96])
    assert passed == [struct.pack("Qi4xQ", array, 7, array + 4) for array in (11, 96)]
