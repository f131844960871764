"""`autotune diagnose` on the CPU and on the fake device."""

import json

from tests.conftest import run_in_process


def test_a_device_without_counters_says_what_is_missing(folder):
    done = folder.run("diagnose", "double.yaml", "--device", "fake", "--config", "A=2")
    assert done.returncode == 0, done.stderr
    assert "A=2 B=0" in done.stdout
    assert "missing    instructions were not counted" in done.stdout
    assert "missing    no occupancy ladder" in done.stdout


def test_changes_are_advised_from_the_journal(folder):
    folder.search("--engine", "exhaustive")
    done = folder.run("diagnose", "double.yaml", "--device", "fake", "--default")
    assert "change     A=1: 5 takes" in done.stdout


def test_json_on_the_cpu_has_times_of_empty_launches(tmp_path):
    problem = ("--size", "rows=64", "--size", "columns=64")
    done = run_in_process(tmp_path, "diagnose", "matadd", "-d", "opencl:0", *problem, "--json", "-q")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["launch_ms"] > 0
    assert found["uses"] or found["missing"]


def test_an_invalid_configuration_is_refused(folder):
    done = folder.run("diagnose", "double.yaml", "--device", "fake", "--config", "A=6,B=2")
    assert done.returncode == 2
    assert "not valid" in done.stderr
