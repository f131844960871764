"""The worker: when its process is replaced, and what that prepares."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autotune.devices import Address
from autotune.errors import SetupError
from autotune.evaluation.device_process import DeviceSetting, verify_and_time
from autotune.evaluation.worker import Worker
from autotune.problem.reference_file import ReferenceFile
from autotune.tuning.task import Target, read_task
from tests.conftest import LIMIT_S, opened, wait_until
from tests.unit.test_child import _alive


@pytest.fixture
def worker(tmp_path):
    (tmp_path / "reference.py").write_text("")
    worker = Worker(DeviceSetting(Address("fake", 0), tmp_path / "reference.py"))
    worker.load()  # waits until its process is ready
    yield worker
    worker.end()


def pid(_state):
    return os.getpid()


def has_expected(_state, _binary, _workload):
    return Path("computed-1000").exists()


def free_all(state):
    state.load(())


def in_memory(state):
    return state.loaded


def hang_once(_state, began):
    if not began.exists():
        began.touch()
        time.sleep(600)


def test_the_last_round_starts_in_a_fresh_process_once_a_search_has_run(worker):
    first = worker.run(pid, timeout_s=LIMIT_S)
    worker.replace_if_used()
    assert worker.run(pid, timeout_s=LIMIT_S) == first  # nothing was tried in it
    worker.run(verify_and_time, None, timeout_s=LIMIT_S)  # fails, but counts as a search
    worker.replace_if_used()
    assert worker.run(pid, timeout_s=LIMIT_S) != first and not _alive(first)


def test_the_fresh_process_is_begun_once_beside_the_one_that_a_search_uses(worker):
    worker.begin_spare()
    assert worker._spare is None  # nothing was tried
    worker.run(verify_and_time, None, timeout_s=LIMIT_S)
    worker.begin_spare()
    begun = worker._spare.pid
    worker.begin_spare()
    worker.replace_if_used()
    assert worker.run(pid, timeout_s=LIMIT_S) == begun


def test_a_device_with_room_for_one_process_is_opened_again_by_the_next(worker, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_FAKE_LOST", str(tmp_path))
    (tmp_path / "0").touch()
    worker.run(verify_and_time, None, timeout_s=LIMIT_S)
    worker.begin_spare()
    refused = worker._spare
    wait_until(refused._pipe.poll)  # it has answered
    (tmp_path / "0").unlink()
    worker.replace_if_used()
    assert worker.run(pid, timeout_s=LIMIT_S) != refused.pid and not _alive(refused.pid)


def test_a_process_that_was_begun_ends_with_the_worker(worker):
    worker.run(verify_and_time, None, timeout_s=LIMIT_S)
    worker.begin_spare()
    begun = worker._spare.pid
    worker.end()
    assert not _alive(begun)


def test_the_process_has_ended_when_the_worker_has(worker):
    found = worker.run(pid, timeout_s=LIMIT_S)
    worker.end()
    assert not _alive(found)


def test_a_run_that_the_end_interrupts_is_not_repeated_in_another_process(worker, tmp_path):
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(worker.run, hang_once, tmp_path / "began", timeout_s=LIMIT_S)
        wait_until((tmp_path / "began").exists)
        worker.end()
        with pytest.raises(SetupError, match="fake:0 is no longer used"):
            running.result()
    with pytest.raises(SetupError, match="fake:0 is no longer used"):
        worker.run(pid, timeout_s=LIMIT_S)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import os.path\nfrom numpy.typing import NDArray\n", False),
        ("def baseline_torch(inputs, sizes):\n    import torch\n", False),
        ("def reference(inputs, sizes):\n    from torch import nn\n", True),
        ("def", False),
    ],
)
def test_a_reference_may_use_a_device_if_it_imports_what_does(tmp_path, text, found):
    (tmp_path / "reference.py").write_text(text)
    assert ReferenceFile(tmp_path / "reference.py").may_use_device is found


def test_the_time_limit_of_the_default_begins_once_the_reference_at_the_full_size_has_ended(
    folder, monkeypatch
):
    monkeypatch.chdir(folder.path)
    reference = """\
import pathlib, time

def reference(inputs, sizes):
    while sizes["n"] == 1000 and not pathlib.Path("compiled").exists():
        time.sleep(0.01)
    time.sleep(0.5 * (sizes["n"] == 1000))
    pathlib.Path(f"computed-{sizes['n']}").touch()
    return {"y": 2 * inputs["x"]}
"""
    (folder.path / "reference.py").write_text(reference)
    with opened(read_task(Target(folder.space, "fake"))) as context:
        context.build([context.task.spec.default])
        context.worker.run(pid, timeout_s=LIMIT_S)  # imports this module there, which takes longer
        (folder.path / "compiled").touch()
        assert context.run_default(has_expected, "the default", timeout_s=LIMIT_S)


def test_workloads_that_a_run_frees_are_loaded_again(folder):
    with opened(read_task(Target(folder.space, "fake"))) as context:
        usual = context.default.workload
        for _ in range(2):
            assert context.worker.load(usual) is None
            assert usual.data_key in context.worker.run(in_memory, timeout_s=LIMIT_S)
            context.worker.run(free_all, timeout_s=LIMIT_S)
