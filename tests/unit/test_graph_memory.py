"""Memory of captured calls is freed once its graph is gone, and not before, also beside other captures."""

import ctypes
import sys
from threading import Thread, local
from types import SimpleNamespace
from weakref import ref

import pytest

from autotune.cuda import graph_memory
from autotune.cuda.graph_memory import hold_for_graph
from autotune.errors import DeviceError
from autotune.hardware import cuda_driver

ILLEGAL_STATE = 401
C_LIBRARY = ctypes.CDLL(None)


def destroy_graph(semaphore):
    """What the driver does once a graph is gone."""
    return C_LIBRARY.sem_post(semaphore)


@pytest.fixture
def driver(monkeypatch):
    """The calls that a capture makes, and the semaphore of each thread's latest one."""
    latest = local()

    def create(user_object, semaphore, *_):
        latest.semaphore = semaphore
        return 0

    made = SimpleNamespace(
        latest=latest,
        cuGetErrorName=lambda *_: 0,
        cuStreamGetCaptureInfo_v2=lambda *_: 0,
        cuUserObjectCreate=create,
        cuGraphRetainUserObject=lambda *_: 0,
        cuUserObjectRelease=lambda *_: destroy_graph(latest.semaphore),
    )
    monkeypatch.setattr(cuda_driver, "available_driver", lambda: made)
    cuda_driver.driver.cache_clear()
    yield made
    cuda_driver.driver.cache_clear()


class Memory:
    """What can be referred to weakly."""


@pytest.fixture(autouse=True)
def nothing_held():
    graph_memory._held.clear()
    yield
    graph_memory._held.clear()


@pytest.fixture
def often_switched():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_no_thread_frees_what_the_graphs_of_others_use(driver, often_switched):
    freed = []

    def capture():
        graphs = []
        for _ in range(300):
            memory = Memory()
            hold_for_graph(None, memory)
            graphs.append((ref(memory), driver.latest.semaphore))
            del memory
            if len(graphs) > 50:
                destroy_graph(graphs.pop(0)[1])
        freed.extend(held for held, _ in graphs if held() is None)

    threads = [Thread(target=capture) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert freed == []


def test_memory_of_a_graph_that_does_not_take_it_is_freed(driver):
    memory = Memory()
    alive = ref(memory)
    driver.cuGraphRetainUserObject = lambda *_: ILLEGAL_STATE
    with pytest.raises(DeviceError, match=f"cuGraphRetainUserObject: CUDA error {ILLEGAL_STATE}"):
        hold_for_graph(None, memory)
    del memory
    driver.cuGraphRetainUserObject = lambda *_: 0
    hold_for_graph(None, None)
    assert alive() is None
