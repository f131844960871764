"""Runs of several launches as graphs, on a double of the CUDA driver; tests/gpu has them on GPUs."""

import gc
from dataclasses import replace

import numpy as np
import pytest

from autotune.core.records import Launch
from autotune.core.trials import Binary
from autotune.devices import backend, cuda_arrays
from autotune.devices.cuda import CudaDevice
from autotune.errors import DeviceLost, LaunchError
from tests.driver_double import driver_double

FIRST, SECOND = (
    Launch("first", (4, 1, 1), (32, 1, 1), 0, ("x", "n")),
    Launch("second", (1, 1, 1), (32, 1, 1), 0, ("y",)),
)


@pytest.fixture
def driver(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda_arrays, "_compiled", lambda architecture, source: None)
    with driver_double(tmp_path, monkeypatch) as double:
        yield double


def opened():
    """A device; no fixture, which would outlive the driver."""
    return CudaDevice(backend("fake").list_devices()[0], 0)


def test_programs_that_take_turns_keep_their_graphs(driver):
    gpu = opened()
    programs = [gpu.load(Binary(b"", "", "", 0.0)) for _ in range(3)]
    for _ in range(4):
        for number, program in enumerate(programs):
            gpu.run(program, (FIRST, SECOND), {"x": number, "y": 10 + number, "n": np.int32(5)}, 2)
    assert driver.ran == [0, 10, 0, 10, 1, 11, 1, 11, 2, 12, 2, 12] * 4
    assert driver.graphs_made == driver.graphs_alive == 3 and driver.graph_launches == 12
    gpu.forget()
    assert driver.graphs_alive == 0


def test_a_graph_serves_the_same_runs_only_and_ends_before_its_program(driver):
    gpu = opened()
    program = gpu.load(Binary(b"", "", "", 0.0))
    given = {"x": 1, "y": 2, "n": np.int32(5)}
    runs = [
        ((FIRST,), given, 2),
        ((FIRST,), given, 3),
        ((FIRST,), given | {"x": 2}, 2),
        ((FIRST,), given | {"n": np.int32(6)}, 2),
        ((FIRST,), given | {"n": np.int64(5)}, 2),
        ((FIRST,), {"y": 1, "x": 2, "n": np.int32(5)}, 2),
        ((FIRST, FIRST), given, 2),
        ((SECOND,), given, 2),
        ((replace(FIRST, grid=(5, 1, 1)),), given, 2),
        ((replace(FIRST, shared_bytes=64),), given, 2),
    ]
    for graphs, (steps, arguments, repeats) in enumerate(runs, 1):
        before = len(driver.ran)
        for _ in range(2):
            gpu.run(program, steps, arguments, repeats)
        assert driver.ran[before:] == [arguments[step.arguments[0]] for step in steps] * repeats * 2
        assert driver.graphs_made == graphs
    del program
    assert driver.graphs_alive == driver.unloads_beside_graphs == 0 and driver.unloads == 1


@pytest.mark.filterwarnings("error")
def test_a_binary_that_is_refused_leaves_nothing_to_end(driver):
    gpu = opened()
    driver.set(load_status=200)
    with pytest.raises(LaunchError, match="cuModuleLoadData: CUDA error 200"):
        gpu.load(Binary(b"", "", "", 0.0))
    gc.collect()


@pytest.mark.parametrize(("status", "kind"), [(700, DeviceLost), (701, LaunchError)])
def test_an_error_that_comes_with_the_end_of_a_run_says_whether_the_device_is_lost(driver, status, kind):
    gpu = opened()
    program = gpu.load(Binary(b"", "", "", 0.0))
    assert gpu.run(program, (SECOND,), {"y": 1}) == 1.0
    driver.set(wait_status=status)
    with pytest.raises(kind, match=f"cuEventSynchronize: CUDA error {status}"):
        gpu.run(program, (SECOND,), {"y": 1})
