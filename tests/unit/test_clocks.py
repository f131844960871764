"""Clock and power limit of a device as parameters: what is set, when it is restored, whose trial it is."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.compilers.source_text import read_source
from autotune.core.records import Config
from autotune.core.trials import Status
from autotune.devices import Address, backend, list_devices
from autotune.devices.clocks import Clocks
from autotune.errors import CannotSet
from autotune.evaluation.device_process import DeviceSetting, run_and_reset_clocks
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.journal import read_trials
from autotune.evaluation.worker import Worker
from autotune.processes.files import lock
from autotune.space import bind, load_space, problem_of
from tests.conftest import wait_until
from tests.space_example import FAKE

IDLE = {"sm_clock_mhz": 0, "power_limit_w": 300}
KERNEL = """\
import json, os, time

def found():
    with open(os.environ["AUTOTUNE_FAKE_CLOCKS"]) as file:
        return json.load(file)

def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    EVENT
    return (1 + SLOW) * 1e3 / (found()["sm_clock_mhz"] or 1000)
"""


@pytest.fixture
def state(tmp_path, monkeypatch):
    """The file with the fake device's settings."""
    path = tmp_path / "clocks.json"
    path.write_text(json.dumps(IDLE))
    monkeypatch.setenv("AUTOTUNE_FAKE_CLOCKS", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return path


@pytest.fixture
def clocked_by(folder, state):
    """A folder with a kernel whose time depends on the clock, and to which something happens."""

    def write(event="pass"):
        folder.write(KERNEL.replace("EVENT", event))
        folder.edit("A: [1, 2, 3, 4, 5, 6]", "CLOCK: [0, 600, 1500]")
        folder.edit("B: [0, 1, 2]", "SLOW: [0, 2]")
        folder.edit(
            "constraints:\n  - A + B <= 7\n", "device: {sm_clock_mhz: CLOCK, power_limit_w: 100 * SLOW}\n"
        )
        folder.edit("default: {A: 1, B: 0}", "default: {CLOCK: 0, SLOW: 0}")
        folder.edit("landmarks:\n  first: {A: 1, note: where it starts}\n  second: {A: 2}\n", "")
        return folder

    return write


@pytest.fixture
def clocked(clocked_by):
    """The folder, where nothing happens."""
    return clocked_by()


def settings(state):
    return json.loads(state.read_text())


def rows(folder):
    return read_trials(folder.path / "j.jsonl")


def records(state):
    """What the records say that has to be restored."""
    return [path.read_text() for path in (state.parent / "home/autotune/clocks").iterdir()]


def test_a_search_sets_the_clock_of_each_trial_and_restores_it(clocked, state):
    result = clocked.search("--engine", "exhaustive", "--journal", "j.jsonl")
    assert result["config"]["CLOCK"] == 1500
    measured = {tuple(trial.config.values()): trial.measurement for trial in rows(clocked)}
    assert {values: one.median_ms for values, one in measured.items()} == {
        (clock, slow): pytest.approx((1 + slow) * 1e3 / (clock or 1000), abs=0.05)  # a first launch
        for clock in (0, 600, 1500)
        for slow in (0, 2)
    }
    assert {one.control_ratio for one in measured.values()} == {
        None,
        1.0,
    }  # the best so far had its own clock
    assert settings(state) == IDLE and records(state) == [""]


def instance(folder, **config):
    spec = load_space(folder.space)
    space = bind(spec, FAKE, problem_of(spec, FAKE))
    return InstanceMaker(space, read_source(spec.source), "python", {}).make(
        Config({**spec.default, **config})
    )


def test_another_clock_is_another_trial_of_the_same_binary(clocked):
    one, other = instance(clocked), instance(clocked, CLOCK=600)
    assert one.key != other.key and one.workloads_key != other.workloads_key
    assert other.workload.settings == (("power_limit_w", 0), ("sm_clock_mhz", 600))
    clocked.edit("device: {sm_clock_mhz: CLOCK, power_limit_w: 100 * SLOW}\n", "")
    bare = instance(clocked, CLOCK=600)
    assert bare.workloads_key != other.workloads_key and "device" not in bare.workload.identity


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (
            "601",
            "sm_clock_mhz 601: the device takes 300 to 1500, and 600 is the nearest",
        ),
        ("-5", "double.yaml:13: device.sm_clock_mhz: 'CLOCK' gives -5, expected at least 0"),
    ],
)
def test_a_clock_that_the_device_does_not_take_fails_with_the_range(clocked, state, value, says):
    clocked.edit("[0, 600, 1500]", f"[0, {value}]")
    clocked.search("--journal", "j.jsonl")
    failed = [trial for trial in rows(clocked) if trial.config["CLOCK"]]
    assert len(failed) == 2 and says in failed[0].detail
    assert settings(state) == IDLE


@pytest.mark.parametrize("refuses", [True, False])
def test_a_device_that_refuses_ends_the_search_before_any_trial(clocked, state, monkeypatch, refuses):
    if refuses:
        state.write_text(json.dumps(IDLE | {"refuses": True}))
    else:
        monkeypatch.delenv("AUTOTUNE_FAKE_CLOCKS")
    done = clocked.run("search", "double.yaml", "--device", "fake", "--journal", "j.jsonl")
    says = "the fake device refuses it" if refuses else "its clock and power limit cannot be set"
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 3  # after what is searched, and where to
    assert done.stderr.splitlines()[-1].startswith("autotune: fake:0: ") and says in done.stderr
    assert not (clocked.path / "j.jsonl").exists() or not rows(clocked)


def test_a_call_that_raises_restores_what_it_changed(state):
    def fail(opened):
        opened.device.clocks.apply((("sm_clock_mhz", 600), ("power_limit_w", 100)))
        assert settings(state) == {"sm_clock_mhz": 600, "power_limit_w": 100}
        opened.device.clocks.apply((("sm_clock_mhz", 0), ("power_limit_w", 99)))

    opened = SimpleNamespace(device=backend("fake").open_device(0))
    failure = run_and_reset_clocks(opened, fail)
    assert failure.detail.startswith("power_limit_w 99: the device takes 100 to 300")
    assert settings(state) == IDLE and records(state) == [""]


def test_a_backend_without_clocks_says_so():
    with pytest.raises(CannotSet, match="remove `device` from the space"):
        Clocks().check(["sm_clock_mhz"])
    Clocks().apply((("sm_clock_mhz", 0),))


def change_and_wait(opened, seconds):
    opened.device.clocks.apply((("sm_clock_mhz", 600),))
    time.sleep(seconds)


def test_what_a_device_process_left_at_its_time_limit_is_restored_at_once(tmp_path, state):
    (tmp_path / "reference.py").write_text("")
    worker = Worker(DeviceSetting(Address("fake", 0), tmp_path / "reference.py"))
    assert worker.run(change_and_wait, 0, timeout_s=120) is None  # imports this module
    assert settings(state) == IDLE  # though the process goes on
    assert worker.run(change_and_wait, 60, timeout_s=1).status is Status.TIMEOUT
    assert settings(state) == IDLE and records(state) == [""]


def test_what_a_killed_search_left_is_restored_by_the_next_command(clocked_by, state):
    hangs = "found()['sm_clock_mhz'] == 1500 and open('pid', 'w').write(str(os.getpid())) and time.sleep(60)"
    folder = clocked_by(hangs)
    process = folder.start("search", "double.yaml", "--device", "fake", "--engine", "exhaustive")
    pid = folder.path / "pid"
    wait_until(lambda: pid.exists() and pid.read_text())  # written in the launch that hangs, and only there
    process.kill()
    process.communicate()
    with suppress(ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIGKILL)
    with next(state.parent.glob("home/autotune/clocks/*")).open() as file:
        wait_until(lambda: lock(file.fileno(), wait=False))  # it has ended
    assert settings(state)["sm_clock_mhz"] == 1500
    (text,) = records(state)
    assert json.loads(text)["settings"] == {"sm_clock_mhz": 0}
    list_devices(names=["fake"])  # as every command begins
    assert settings(state) == IDLE and records(state) == [""]


WITH_NVML = """\
import os, signal
from autotune.devices.clocks import Clocks, restore_abandoned
from autotune.devices.nvml import NvmlMonitor
from autotune.errors import CannotSet, LaunchError

clocks = Clocks(NvmlMonitor("0000:01:00.0").control())
"""


@pytest.fixture
def with_nvml(tmp_path):
    """Runs a script with a library in the place of NVIDIA's; returns what it prints and what it sets."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    source = Path(__file__).with_name("fake_nvml.c")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", tmp_path / "libnvidia-ml.so.1"], check=True)
    log = tmp_path / "log"
    variables = {"LD_LIBRARY_PATH": str(tmp_path), "NVML_LOG": str(log), "XDG_CACHE_HOME": str(tmp_path)}

    def run(script, **more):
        log.write_text("")
        command = [sys.executable, "-c", WITH_NVML + script]
        done = subprocess.run(command, env=os.environ | variables | more, text=True, stdout=subprocess.PIPE)
        return done.stdout, log.read_text().splitlines()

    return run


def test_nvml_sets_clock_and_power_limit_and_restores_them_by_the_next_process(with_nvml):
    script = 'clocks.apply((("power_limit_w", 400), ("sm_clock_mhz", CLOCK)))\n'
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    changed, restored = ["power 400000", "clock 1200"], ["power 700000", "reset 1980"]
    assert with_nvml(script.replace("CLOCK", "1200") + "clocks.restore()") == ("", changed + restored)
    assert with_nvml(script.replace("CLOCK", "1200") + kill) == ("", changed)
    assert with_nvml("restore_abandoned()\nrestore_abandoned()") == ("", restored)


def test_nvml_names_the_range_and_the_call_that_is_refused(with_nvml):
    script = """
for settings in (("sm_clock_mhz", 1300), ("power_limit_w", 199)):
    try:
        clocks.apply((settings,))
    except LaunchError as error:
        print(error)
try:
    clocks.check(["power_limit_w"])
except CannotSet as error:
    print(error)
"""
    said, done = with_nvml(script, NVML_REFUSES="1")
    clock, power, refused = said.splitlines()
    assert (
        clock
        == "sm_clock_mhz 1300: the device takes 1200 to 1980, and 1200 is the nearest; 0 leaves it as it is"
    )
    assert power.startswith("power_limit_w 199: the device takes 200 to 700, and 200 is the nearest")
    assert refused.startswith(
        "NVML refuses nvmlDeviceSetPowerManagementLimit (Insufficient Permissions): run the search as root"
    )
    assert done == []
