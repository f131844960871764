"""`autotune diagnose` on the CPU and on the fake device."""

import json

import pytest

from autotune.cli.diagnose import diagnosis_json, diagnosis_text
from autotune.compilers.occupancy import Occupancy
from autotune.compilers.sass import MachineCode
from autotune.core.records import Config
from autotune.diagnosis.bound import Bound
from autotune.diagnosis.diagnose import Diagnosis, advice_from
from autotune.diagnosis.littles_law import ArithmeticInFlight, LittlesLaw
from autotune.diagnosis.other_forms import LadderStep
from autotune.diagnosis.resource_use import Use
from tests.conftest import run_in_process
from tests.unit.test_bottleneck import IDLE


def test_a_device_without_counters_says_what_is_missing(folder):
    done = folder.run("diagnose", "double.yaml", "--device", "fake", "--config", "A=2")
    assert done.returncode == 0, done.stderr
    assert "A=2 B=0" in done.stdout
    assert "missing    instructions were not counted" in done.stdout
    assert "missing    no occupancy ladder" in done.stdout


def test_changes_are_advised_from_the_journal(searched_folder):
    done = searched_folder.run("diagnose", "double.yaml", "--device", "fake", "--default")
    assert "change     A=1: 5 takes" in done.stdout


def test_json_on_the_cpu_has_times_of_variants_and_of_empty_launches(tmp_path):
    done = run_in_process(tmp_path, "diagnose", "sine", "-d", "opencl:0", "--size", "n=4096", "--json", "-q")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["launch_ms"] > 0
    assert found["variants_ms"].keys() == {"MEMORY_ONLY", "COMPUTE_ONLY"}
    assert found["overlap"] is None or 0 <= found["overlap"] <= 1  # none if a variant takes too long
    assert found["uses"] or found["missing"]


def test_an_invalid_configuration_is_refused(folder):
    done = folder.run("diagnose", "double.yaml", "--device", "fake", "--config", "A=6,B=2")
    assert done.returncode == 2
    assert "not valid" in done.stderr


def test_all_evidence_is_text_and_json():
    found = Diagnosis(
        kernel="work",
        device="GPU",
        sizes={"n": 8},
        dtype="float32",
        config=Config({"A": 1}),
        origin="as given",
        time_ms=1.0,
        bound=Bound.DRAM,
        reason="because",
        occupancy=Occupancy(2, 16, 0.25, "registers"),
        resident_warps=16,
        launch_ms=0.001,
        transfer_ms=2.0,
        uses=(Use(Bound.DRAM, 3e12, 4e12, "B/s", is_measured=True),),
        counts=IDLE,
        ladder=(LadderStep(2, 16, 0.25, 1.0), LadderStep(1, 8, 0.125, 1.5)),
        variants_ms={"MEMORY_ONLY": 0.9, "COMPUTE_ONLY": 0.4},
        littles_law=LittlesLaw(8e-7, 32_000.0, 8192.0, 16, 63),
        arithmetic_in_flight=ArithmeticInFlight("float32", 2e-9, 512.0, 16),
        machine_code=MachineCode(
            9, {"float32": 4}, {"float32": 2}, {("global load", 128): 3}, is_unrolled=False
        ),
    )
    values = json.loads(json.dumps(diagnosis_json(found)))
    assert values["machine_code"]["access_bits"] == {"global load 128": 3}
    assert values["uses"][0]["share"] == 0.75
    text = diagnosis_text(found)
    assert "63 would be enough" in text
    lines = dict(line.strip().split(maxsplit=1) for line in text.splitlines()[2:])
    assert lines["verdict"] == "memory-bound (DRAM): because"
    assert lines["helps"].startswith("move fewer bytes") and values["helps"] == lines["helps"]
    assert lines["use"] == "DRAM at 75%: 3 of 4 TB/s"
    assert lines["ladder"] == "25% 1 ms, 12% 1.5 ms"
    assert lines["variant"] == "COMPUTE_ONLY: 0.4 ms (40%)"
    assert lines["overlap"] == "75% of the shorter variant's time overlaps the other"
    assert values["overlap"] == pytest.approx(0.75)
    assert lines["in"].endswith("(2.0 ns): 16 warps with one each; of 16 warps, one each is enough")
    assert lines["accesses"] == "global load of 128 bits: 3"
    assert lines["unrolling"].startswith("none: ") and values["machine_code"]["is_unrolled"] is False


def test_advice_is_what_changing_one_parameter_did():
    config = {"A": 1, "B": 2}
    timed = [
        ({"A": 2, "B": 2}, 1.5),
        ({"A": 4, "B": 2}, 0.9),
        ({"A": 4, "B": 4}, 0.1),
        ({"A": 1, "B": 3}, 1.01),
    ]
    assert advice_from(config, timed, 1.0) == (
        "A=1: 4 takes 10.0% less, 2 takes 50.0% more",
        "B=2: 3 takes 1.0% more",
    )
