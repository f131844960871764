"""Twelve kernels that are bound by one thing each: the diagnosis names it, without a profiler."""

from pathlib import Path

import pytest

from autotune.compilers.source_text import packaged
from autotune.core.records import Config
from autotune.diagnosis.bound import Bound
from autotune.diagnosis.ceilings import keep_ceilings, measure_ceilings
from autotune.diagnosis.diagnose import diagnose, open_diagnosis
from autotune.hardware.peak_rates import tensor_operations_per_s
from autotune.serving.ceilings import TENSOR
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import Target, read_task
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

SPACE = Path(__file__).parent / "bounds" / "bounds.yaml"
BOUNDS = {
    "dram": Bound.DRAM,
    "l2": Bound.L2,
    "shared": Bound.SHARED,
    "float32": Bound.FLOAT32,
    "float64": Bound.FLOAT64,
    "special": Bound.SPECIAL,
    "integer": Bound.INTEGER,
    "latency": Bound.LATENCY,
    "atomics": Bound.ATOMICS,
    "divergence": Bound.DIVERGENCE,
    "launch": Bound.LAUNCH,
    "transfer": Bound.TRANSFER,
}


def test_the_diagnosis_names_what_each_kernel_is_bound_by(tmp_path):
    devices_here("cuda")
    task = read_task(Target(SPACE, "cuda:0"))
    # without nominal figures: the others follow from the data sheet
    needed = ("read of", "atomics", "latency of memory")
    ceilings = list(
        measure_ceilings(
            task.address, task.device, lambda _: None, lambda probe: probe.name.startswith(needed)
        )
    )
    keep_ceilings(tmp_path, task.device, ceilings)
    options = Options(cache=tmp_path, journal=tmp_path / "diagnose.jsonl")
    found = {}
    with open_diagnosis(task, options, Observer()) as context:
        for kind in BOUNDS:
            config = Config({"KIND": kind, "BLOCK_SIZE": 256})
            one = diagnose(context, config, cache=tmp_path, with_transfers=kind == "transfer")
            assert one.counts is not None, one.missing
            found[kind] = one.bound
    assert found == BOUNDS


def test_the_fastest_product_of_tensor_cores_is_bound_by_them(tmp_path):
    devices_here("cuda")
    task = read_task(Target(packaged("kernels") / "ceilings" / "tensor.yaml", "cuda:0"))
    if not tensor_operations_per_s(task.device):
        pytest.skip("no tensor cores that are known")
    (ceiling,) = measure_ceilings(
        task.address, task.device, lambda _: None, lambda probe: probe.name == TENSOR
    )
    keep_ceilings(tmp_path, task.device, [ceiling])
    options = Options(cache=tmp_path, journal=tmp_path / "diagnose.jsonl")
    with open_diagnosis(task, options, Observer()) as context:
        found = diagnose(context, Config(ceiling.config), cache=tmp_path)
    assert found.bound is Bound.TENSOR, found.missing
