"""The process that stands by for the device process."""

import os
import signal

import pytest

from autotune.devices import Address
from autotune.evaluation.device_process import run_work_item
from autotune.evaluation.worker import Worker
from tests.conftest import wait_until
from tests.unit.test_child import _alive


@pytest.fixture
def worker(tmp_path):
    (tmp_path / "reference.py").write_text("")
    worker = Worker(Address("fake", 0), tmp_path / "reference.py", (), has_standby=True)
    worker.prepare()  # waits until its process is ready
    yield worker
    worker.end()


def pid(_state):
    return os.getpid()


def test_the_process_that_stands_by_takes_over_and_is_replaced(worker):
    waiting = worker._standby.pid
    assert worker.run(pid, timeout_s=60) != waiting
    worker.close()
    assert worker.run(pid, timeout_s=60) == waiting
    assert worker._standby.pid != waiting


def test_the_last_round_starts_in_it_and_nothing_stands_by_after_that(worker):
    waiting = worker._standby.pid
    worker.run(run_work_item, None, timeout_s=60)  # fails, but counts as a search
    worker.renew()
    assert worker.run(pid, timeout_s=60) == waiting
    assert worker._standby is None


def test_a_process_that_died_while_it_stood_by_is_made_good(worker):
    os.kill(worker._standby.pid, signal.SIGKILL)
    worker.close()
    assert worker.run(pid, timeout_s=60) > 0


def test_both_processes_end(worker):
    found = [worker.run(pid, timeout_s=60), worker._standby.pid]
    worker.end()
    wait_until(lambda: not any(_alive(number) for number in found))
