"""One search with several devices: who measures what, and what the journal says of it."""

import json
from contextlib import ExitStack, closing, contextmanager

import pytest

from autotune.core.trials import Budget, Measurement
from autotune.devices import Address, listing
from autotune.devices.listing import Listing
from autotune.errors import NoMemory, SetupError
from autotune.evaluation.device_process import DeviceSetting
from autotune.evaluation.fleet import LocalFleet
from autotune.evaluation.journal import read_trials
from autotune.evaluation.work_item import MeasurementPolicy, WorkItem
from autotune.evaluation.worker import Worker
from autotune.tuning import several_devices, task
from autotune.tuning.local_devices import why_one
from tests.unit.test_device_process import BINARY, problem

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
    assert done.returncode == 2 and "search with one device" in done.stderr


@pytest.mark.parametrize(
    ("count", "budget", "one"),
    [
        (1, Budget(trials=10_000), True),
        (2, Budget(seconds=2), True),
        (2, Budget(seconds=3), False),
        (8, Budget(seconds=2), False),  # the more there are, the sooner they win their start back
        (2, Budget(trials=200), True),
        (2, Budget(trials=300), False),
        (2, Budget(trials=300, seconds=2), True),
        (2, Budget(), False),
    ],
)
def test_all_devices_are_one_where_the_budget_does_not_win_back_their_start(count, budget, one):
    assert bool(why_one(count, budget)) is one


def test_a_search_with_one_of_all_devices_says_so(folder, monkeypatch):
    local = task.local_devices  # `all` leaves out fake devices
    monkeypatch.setattr(task, "local_devices", lambda _, listed: local("fake:0,fake:1", listed))
    done = folder.run("search", "double.yaml", "--devices", "all", "--journal", "j.jsonl", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["trials"] == 17
    told = "--devices all: searching with fake:0 only: 2 devices take 1.2 s longer than one to start and end"
    assert f"{told}, which 17 trials do not win back" in done.stderr.replace("\n", " ")
    assert not any(trial.device for trial in read_trials(folder.path / "j.jsonl"))


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
    assert "fake:1 disagrees with" in done.stderr and "whose best takes 12 ms on " in done.stderr


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


@contextmanager
def opened_fleet(*references, of=None, on_lost=pytest.fail):
    """A fleet of fake devices, each with a reference of its own."""
    with ExitStack() as opened:
        settings = [
            DeviceSetting(Address("fake", number), reference, (of or problem(),))
            for number, reference in enumerate(references)
        ]
        workers = {setting.address: Worker(setting) for setting in settings}
        for worker in workers.values():
            opened.callback(worker.end)
            worker.start()
        yield opened.enter_context(closing(LocalFleet(workers, on_lost)))


def job(fleet, of=None):
    """Run a configuration on whichever device is free; returns its outcome."""
    item = WorkItem(BINARY, (), of or problem(), MeasurementPolicy(), None, None, 0.0)
    (result,) = fleet.result(fleet.submit([item], 60.0))
    return result


def test_the_first_job_runs_though_another_device_is_not_ready(folder):
    ready = folder.path / "reference.py"
    late = folder.path / "late.py"
    late.write_text(
        f"import pathlib, time\nwhile not pathlib.Path({str(folder.path / 'go')!r}).exists():\n"
        f"    time.sleep(0.01)\n{ready.read_text()}"
    )
    with opened_fleet(late, ready) as fleet:
        found = [job(fleet) for _ in range(3)]
        (folder.path / "go").touch()
    assert all(one.device.endswith("/fake:1") and isinstance(one.outcome, Measurement) for one in found)


def test_a_device_that_was_left_out_gets_no_job_and_the_last_one_is_named(folder):
    lost = []
    reference = folder.path / "reference.py"
    with opened_fleet(reference, reference, on_lost=lambda *found: lost.append(found)) as fleet:
        first, last = fleet.present()
        fleet.leave_out(first, SetupError("fell off"))
        fleet.leave_out(first, SetupError("is gone"))  # another job says so later
        assert lost == [(first, "fell off")] and fleet.present() == [last] and fleet.count == 1
        assert {job(fleet).device for _ in range(4)} == {last}
        with pytest.raises(SetupError, match=f"no device is left: {last}: fell off too"):
            fleet.leave_out(last, SetupError("fell off too"))


def test_a_device_whose_memory_is_in_use_is_named(folder):
    too_large = problem(scratch=2**33)
    with (
        opened_fleet(folder.path / "reference.py", of=too_large) as fleet,
        pytest.raises(NoMemory, match=r"/fake:0: .* are in use"),  # which gets advice on sizes
    ):
        job(fleet, too_large)
