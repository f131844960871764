"""What else keeps the machine busy: told before and after a search."""

import subprocess
import sys
from dataclasses import replace

from autotune.core.records import Config
from autotune.core.trials import Measurement, Rule, Trial
from autotune.processes.machine_load import CpuTimes, cores, cpu_times
from autotune.tuning.timing_warnings import busy_text, cpu_load_warnings, is_busy

BURN = "import time\nwhile time.process_time() < 0.4: pass"


def test_what_others_used_is_all_but_our_own():
    earlier, later = CpuTimes(10.0, 100.0, 7.0), CpuTimes(20.0, 109.0, 12.0)
    assert earlier.cores_of_others(later) == min(cores(), 0.4)
    assert earlier.cores_of_others(earlier) == 0


def test_the_time_of_children_is_our_own_while_they_live_and_after():
    before = cpu_times()
    child = subprocess.Popen(
        [sys.executable, "-c", f"{BURN}\nprint(flush=True)\ninput()"], stdin=-1, stdout=-1
    )
    child.stdout.readline()
    living = cpu_times()
    child.communicate(b"\n")
    ended = cpu_times()
    assert living.own_s - before.own_s >= 0.35 and ended.own_s >= living.own_s
    assert ended.machine_s - before.machine_s >= 0.35


def test_a_busy_machine_and_a_shared_device_are_told_before_the_search():
    conditions = {"other_processes": "1 (pid 7)"}
    trial = Trial(Config({}), "key", measurement=Measurement((1.0,), Rule.STEADY, conditions=conditions))
    now = cpu_times()
    long_ago = replace(now, at_s=now.at_s - 10, machine_s=now.machine_s - 1e6)
    load, *_, device = cpu_load_warnings(trial, "gpu", long_ago)
    assert load.startswith(f"other programs use {cores()}.0 of {cores()} cores") and "tune later" in load
    assert device == "other processes use the device: 1 (pid 7)"


def test_a_cpu_that_is_tuned_for_is_busy_sooner_than_one_that_feeds_a_gpu():
    used = 0.5 * cores()
    assert is_busy(used, "cpu") and not is_busy(used, "gpu")
    assert busy_text(used) == f"{used:.1f} of {cores()} cores"
