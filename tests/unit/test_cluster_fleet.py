"""The devices of a Dask cluster: what of them is claimed, lost, given back and found again."""

import logging
import pickle
import uuid
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from autotune.core.trials import Measurement
from autotune.devices import Address, listing
from autotune.devices.listing import Listing
from autotune.errors import NoMemory, SetupError
from autotune.evaluation.device_process import DeviceSetting
from autotune.evaluation.fleet import DeviceGone
from autotune.evaluation.work_item import MeasurementPolicy, WorkItem
from tests.conftest import wait_until
from tests.unit.test_device_process import BINARY, problem

connection = pytest.importorskip("autotune.cluster.connection", reason="needs the extra cluster")


@pytest.fixture(autouse=True)
def two_fakes(monkeypatch):
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "2")
    monkeypatch.setattr(listing, "Listing", Listing)  # not as listed before


def test_a_device_with_another_driver_is_not_claimed():
    address, info = connection.find_devices(("fake",))[0]
    assert address in connection.alike("fake", info)
    assert connection.alike("fake", replace(info, driver="2")) == []


@contextmanager
def opened_fleet(folder, devices, on_lost=pytest.fail, problems=()):
    """Claim fake devices with Dask workers in this process; yields the client, the setting and the fleet."""
    import distributed

    from autotune.cluster.device_host import HostSetting
    from autotune.cluster.fleet import open_fleet

    reference = folder.path / "reference.py"
    addresses = [Address("fake", number) for number in range(devices)]
    name = uuid.uuid4().hex  # the devices of the machine are locked for it
    files = {str(reference): b"def reference(inputs, sizes):\n    return {'y': 2 * inputs['x']}\n"}
    process = DeviceSetting(addresses[0], reference, problems)
    setting = HostSetting(name, "r", partial(list, addresses), process, files)
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with (
        distributed.LocalCluster(n_workers=devices, **options) as started,
        distributed.Client(started) as client,
        open_fleet(client, setting, on_lost) as fleet,
    ):
        assert len(fleet.devices) == devices
        yield client, setting, fleet


def test_a_search_ends_though_the_scheduler_no_longer_knows_it(folder):
    with opened_fleet(folder, 1) as (client, setting, _):
        client.unregister_worker_plugin(setting.name)  # as if it had been started again


def test_a_task_that_waited_for_a_device_that_was_given_back_does_not_open_it_again(folder):
    from autotune.cluster.device_host import evaluate

    with opened_fleet(folder, 1) as (client, setting, fleet):
        fleet.admit([])
        task = client.submit(evaluate, setting.name, pickle.dumps([None]), 60.0)
        with pytest.raises(DeviceGone, match="it was given back"):
            task.result()


def test_a_task_that_no_worker_was_there_for_is_sent_again_once_one_offers_a_device(folder):
    with opened_fleet(folder, 1) as (client, _, fleet):
        (lost,) = fleet.devices.values()
        client.retire_workers([lost])
        item = WorkItem(BINARY, (), problem(), MeasurementPolicy(), None, None, 0.0)
        waiting, found = fleet.submit([item], 60.0), []
        assert not fleet.without_device() and not fleet.devices
        # a worker that joins before both hold finds its device still held, or is sent the task in time
        (retired,) = client.cluster.workers.values()
        wait_until(lambda: retired.status.name == "closed" and client.cluster.scheduler.tasks)
        client.cluster.scale(2)  # one more than there was
        wait_until(lambda: found.extend(fleet.without_device()) or fleet.devices)
        assert found == [waiting]
        (evaluated,) = fleet.submit([item], 60.0).result()
        assert isinstance(evaluated.outcome, Measurement)


def test_devices_are_there_however_often_dask_looks_at_its_scheduler_itself(folder):
    import dask

    with (
        dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}),
        opened_fleet(folder, 1) as (_, _, fleet),
    ):
        assert all(fleet.present() for _ in range(200))


def test_outcomes_are_kept_though_the_worker_that_found_them_is_lost(folder):
    with opened_fleet(folder, 1) as (client, _, fleet):
        item = WorkItem(BINARY, (), problem(), MeasurementPolicy(), None, None, 0.0)
        task = fleet.submit([item], 60.0)
        wait_until(task.done)
        (worker,) = fleet.devices.values()
        client.sync(client.cluster.scheduler.remove_worker, worker, stimulus_id="as if it were killed")
        (evaluated,) = fleet.result(task)
        assert isinstance(evaluated.outcome, Measurement)


def test_a_device_is_left_out_though_its_worker_is_gone_too_and_the_last_one_is_named(folder):
    lost = []
    with opened_fleet(folder, 2, lambda *found: lost.append(found)) as (client, _, fleet):
        (first, address), (last, _) = fleet.devices.items()
        client.retire_workers([address])
        fleet.leave_out(first, SetupError("fell off"))
        assert lost == [(first, "fell off")] and list(fleet.devices) == [last]
        with pytest.raises(SetupError, match=f"no device is left: {last}: fell off too"):
            fleet.leave_out(last, SetupError("fell off too"))


def test_a_device_whose_memory_is_in_use_is_left_out(folder):
    too_large = problem(scratch=2**33)
    item = WorkItem(BINARY, (), too_large, MeasurementPolicy(), None, None, 0.0)
    with opened_fleet(folder, 1, problems=(too_large,)) as (_, _, fleet):
        task = fleet.submit([item], 60.0)
        wait_until(task.done)
        with pytest.raises(NoMemory, match=r"/fake:0: .* are in use"):  # which gets advice on sizes
            fleet.result(task)


def test_the_caller_s_dask_logs_as_before_after_a_search():
    logger = logging.getLogger("distributed.worker")
    level = logger.level
    with connection._dask_settings():
        assert logger.level == logging.CRITICAL
    assert logger.level == level
