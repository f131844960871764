"""One search with several devices: who measures what, and what the journal says of it."""

import json
import logging
import math
import pickle
import uuid
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from autotune.cluster import local_devices as chosen_here
from autotune.cluster.connection import _dask_settings
from autotune.cluster.local_devices import local_devices, why_one
from autotune.core.trials import Budget, Measurement
from autotune.devices import Address, listing
from autotune.devices.listing import Listing
from autotune.errors import NoMemory, SetupError
from autotune.evaluation.device_process import DeviceSetting
from autotune.evaluation.journal import read_trials
from autotune.evaluation.work_item import MeasurementPolicy, WorkItem
from tests.conftest import wait_until
from tests.unit.test_device_process import BINARY, problem

pytest.importorskip("distributed", reason="needs the extra cluster")
several_devices = pytest.importorskip("autotune.tuning.several_devices")
cluster = pytest.importorskip("autotune.cluster.connection")

WAITING = """\
import time

def double(grid, block, x, y, n):
    time.sleep(0.002)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""


@pytest.fixture(autouse=True)
def two_fakes(monkeypatch):
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "2")
    monkeypatch.setattr(listing, "Listing", Listing)  # not as listed before


def search(folder, *options):
    done = folder.run("search", "double.yaml", "--devices", "fake:0,fake:1", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_configuration_is_measured_once_by_either_device(folder):
    folder.write(WAITING)
    found = search(folder, "--journal", "j.jsonl")
    trials = read_trials(folder.path / "j.jsonl")
    rows = (folder.path / "j.jsonl").read_text().count('{"trial"')
    assert rows == len(trials) == found["trials"] == 17
    assert {trial.device.partition("/")[2] for trial in trials} == {"fake:0", "fake:1"}
    assert found["config"] == {"A": 5, "B": 0}
    again = folder.search("--journal", "j.jsonl")
    assert again["resumed"] == 17 and again["config"] == found["config"]


def test_devices_that_are_unknown_or_that_one_process_must_see_are_refused(folder):
    done = folder.run("search", "double.yaml", "--devices", "fake:0,fake:7")
    assert done.returncode == 2 and "fake:7: this machine has no such device" in done.stderr
    folder.edit("verify: {rtol: 0, atol: 0}", "verify: {rtol: 0, atol: 0, full: trusted}")
    done = folder.run("search", "double.yaml", "--devices", "fake:0,fake:1")
    assert done.returncode == 2 and "needs one device" in done.stderr


@pytest.mark.parametrize(
    ("count", "budget", "one"),
    [
        (1, Budget(trials=10_000), True),
        (2, Budget(seconds=20), True),
        (2, Budget(seconds=21), False),
        (8, Budget(seconds=12), False),  # the more there are, the sooner they win their start back
        (2, Budget(trials=400), True),
        (2, Budget(trials=1000), False),
        (2, Budget(trials=1000, seconds=18), True),
        (2, Budget(), False),
    ],
)
def test_all_devices_are_one_where_the_budget_does_not_win_back_their_start(count, budget, one):
    assert bool(why_one(count, budget)) is one


def test_a_search_with_one_of_all_devices_says_so(folder, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "2")
    found = local_devices("fake:0,fake:1")
    monkeypatch.setattr(chosen_here, "local_devices", lambda text: found)  # here `all` are those of the CPU
    done = folder.run("search", "double.yaml", "--devices", "all", "--budget", "4", "--json")
    assert done.returncode == 0 and len(json.loads(done.stdout)["config"]) == 2
    told = "--devices all: searching with fake:0 only: 2 devices take 10 s longer to start and to end"
    assert told in done.stderr.replace("\n", " ")


def test_a_device_with_another_driver_is_not_claimed():
    address, info = cluster.find_devices(("fake",))[0]
    assert address in cluster.alike("fake", info)
    assert cluster.alike("fake", replace(info, driver="2")) == []


def test_a_device_that_is_off_or_noisy_is_named_and_left_out(folder):
    folder.write(WAITING.replace("+ B + 1.0", "+ B + 1.0 + 0.5 * DEVICE"))
    done = folder.run("search", "double.yaml", "--devices", "fake:0,fake:1", "--journal", "j.jsonl")
    assert done.returncode == 0, done.stderr
    assert "fake:1 is left out: it takes" in done.stderr
    rows = [json.loads(line) for line in (folder.path / "j.jsonl").read_text().splitlines()]
    (scales,) = [row["devices"] for row in rows if "devices" in row]
    assert sorted(name.partition("/")[2] for name in scales) == ["fake:0", "fake:1"]
    measured = [row["trial"]["device"].partition("/")[2] for row in rows if "trial" in row]
    assert set(measured[1:]) == {"fake:0"} and len(measured) == 17


def test_scales_are_relative_to_the_middle_device_and_a_wide_interval_is_noise():
    steady, slow, noisy = [1.0] * 8, [1.05] * 8, [0.9, 1.1] * 4
    scales = several_devices.scales_of(
        {"a": [steady, []], "b": [slow, slow], "c": [steady, steady], "d": [noisy, steady]}
    )
    assert {name for name, scale in scales.items() if several_devices.is_alike(scale)} == {"a", "c"}
    assert scales["b"].scale == pytest.approx(1.05) and scales["d"].scale == pytest.approx(1.0)
    with pytest.raises(SetupError, match="no configuration runs on all devices"):
        several_devices.scales_of({"a": [steady, []], "b": [[], steady]})
    with pytest.raises(SetupError, match="no device is left"):
        several_devices.scales_of({})


def test_a_second_device_on_which_another_configuration_wins_is_named(folder):
    # all times are near each other: whichever device measures the best, the others are finalists, too
    folder.write(WAITING.replace("B + 1.0", "B + 10.0 + 2 * (DEVICE == 1 and A == 5)"))
    options = ("--devices", "fake:0,fake:1", "--json")
    # in a process of its own, whose pipes are read to their end: no worker may keep them open
    done = folder.run("search", "double.yaml", *options, AUTOTUNE_FAKE_DEVICES="2")
    assert json.loads(done.stdout)["config"] == {"A": 5, "B": 0}
    assert "fake:1 disagrees with" in done.stderr and "there the best takes 12 ms" in done.stderr


def search_with_a_fall(folder, device, when):
    """Search with two devices, one of which falls off the bus once a condition on the journal holds."""
    fall = f"""\
    with open("j.jsonl") as file:
        journal = file.read()
    if DEVICE == {device} and {when}:
        open("lost/{device}", "w").close()
        os._exit(1)
"""
    folder.write(WAITING.replace("import time", "import os, time").replace("    time.", fall + "    time."))
    options = ("--engine", "exhaustive", "--journal", "j.jsonl")
    done = folder.run("search", "double.yaml", "--devices", "fake:0,fake:1", *options)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("is_lost_before", [True, False])
def test_a_device_that_is_lost_is_named_and_the_search_goes_on(folder, monkeypatch, is_lost_before):
    (folder.path / "lost").mkdir()
    monkeypatch.setenv("AUTOTUNE_FAKE_LOST", str(folder.path / "lost"))
    if is_lost_before:
        (folder.path / "lost" / "1").touch()
    done = search_with_a_fall(folder, 1, "'\"devices\":' in journal")  # after the comparison
    assert done.stderr.count("fake:1 is left out") == 1 and "has fallen off the bus" in done.stderr
    trials = read_trials(folder.path / "j.jsonl")
    assert len(trials) == 17 and {trial.status.value for trial in trials} == {"ok"}
    rows = [json.loads(line) for line in (folder.path / "j.jsonl").read_text().splitlines()]
    ((device, reason),) = [found for row in rows if "lost" in row for found in row["lost"].items()]
    assert device.endswith("/fake:1") and "has fallen off the bus" in reason


def test_a_device_that_is_lost_in_the_last_round_is_replaced_by_the_next_one(folder, monkeypatch):
    (folder.path / "lost").mkdir()
    monkeypatch.setenv("AUTOTUNE_FAKE_LOST", str(folder.path / "lost"))
    done = search_with_a_fall(folder, 0, "journal.count('{\"trial\"') == 17")
    assert done.stderr.count("fake:0 is left out") == 1 and "A=5; the rest as in the default" in done.stdout
    assert len(read_trials(folder.path / "j.jsonl")) == 17


def test_workers_that_do_not_start_end_the_search_at_once_with_their_reason(folder, monkeypatch):
    monkeypatch.setattr(cluster, "_be_worker", int)  # which takes no address of a scheduler
    monkeypatch.setattr(cluster, "START_TIMEOUT_S", math.inf)
    done = folder.run("search", "double.yaml", "--devices", "fake:0,fake:1")
    assert done.returncode != 0
    assert "a Dask worker of this machine has ended: TypeError: 'Security' object" in done.stderr


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
    from autotune.cluster.device_host import DeviceGone, evaluate

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
    with _dask_settings():
        assert logger.level == logging.CRITICAL
    assert logger.level == level
