"""What a device can reach: every figure can be measured on GPUs and CPUs, and is kept beside results."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from autotune.cli import main
from autotune.compilers.source_text import packaged
from autotune.devices.listing import find_device
from autotune.diagnosis.ceilings import Probe, keep_ceilings, probes
from autotune.diagnosis.device_rates import nominal
from autotune.hardware.architectures import ARCHITECTURES
from autotune.hardware.names import known_gpu
from autotune.serving.ceilings import BYTES, FILE, Ceiling, read_ceilings
from autotune.space import bind, load_space, problem_of
from tests.conftest import run_in_process

H200 = known_gpu("NVIDIA H200")
T4, A100 = (ARCHITECTURES[name].device for name in ("sm_75", "sm_80"))
CPU = replace(
    H200,
    name="CPU",
    kind="cpu",
    backend="opencl",
    architecture="",
    compute_units=2,
    max_threads_per_block=4096,
    cache_bytes=2**25,
)


@pytest.mark.parametrize("device", [H200, A100, T4, CPU], ids=lambda device: device.name)
def test_every_figure_has_configurations_to_choose_from(device):
    measured = [probe for probe in probes(device) if isinstance(probe, Probe)]
    for probe in measured:
        spec = load_space(packaged("kernels") / "ceilings" / f"{probe.space}.yaml")
        space = bind(spec, device, problem_of(spec, device, probe.sizes, probe.dtype))
        assert len(space) > 1 or probe.space == "chain", probe.name
        assert probe.unit == BYTES or probe.unit.endswith("s")


def test_figures_are_measured_and_kept_beside_those_that_were_there(tmp_path, capsys):
    path = keep_ceilings(tmp_path, find_device("opencl:0")[1], [Ceiling("memory read", BYTES, 1e9, {}, {})])
    arguments = [
        "devices",
        "--measure",
        "-d",
        "opencl:0",
        "--only",
        "one counter",
        "--cache",
        str(tmp_path),
        "--json",
    ]
    assert main(arguments) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["name"] == "atomics to one counter" and found["value"] > 0
    assert set(read_ceilings(path.parent)) == {"memory read", "atomics to one counter"}


@pytest.mark.parametrize("kind", ["read", "write", "copy"])
def test_several_passes_over_memory_are_right_in_any_order_of_blocks(kind, tmp_path):
    space = packaged("kernels") / "ceilings" / f"{kind}.yaml"
    sizes = ("--size", "n=98304", "--size", "passes=3")
    done = run_in_process(tmp_path, "run", space, "-d", "opencl:0", "--default", *sizes, "-q", "--json")
    (trial,) = json.loads(done.stdout)
    assert trial["status"] == "ok", trial


def test_what_the_host_sees_is_measured_beside_the_data_sheet(tmp_path, capsys):
    arguments = [
        "devices",
        "--measure",
        "-d",
        "opencl:0",
        "--only",
        "host",
        "--cache",
        str(tmp_path),
        "--json",
    ]
    assert main(arguments) == 0
    (wait,) = json.loads(capsys.readouterr().out)
    assert wait["unit"] == "s" and 0 < wait["value"] < 1
    names = [probe.name for probe in probes(H200)]
    assert sum(nominal(H200, name) == 63e9 for name in names) == 4  # to and from the host, not within caches
    assert sum(name.startswith(("write of", "copy of")) for name in names) == 4
    assert nominal(H200, "float32 multiply-add") == pytest.approx(66.9e12, rel=1e-3)
    assert nominal(H200, "float16 multiply-add") == pytest.approx(133.8e12, rel=1e-3)
    assert nominal(H200, "bfloat16 tensor multiply-add") == pytest.approx(989e12, rel=1e-3)
    assert nominal(A100, "bfloat16 tensor multiply-add") == pytest.approx(312e12, rel=1e-3)
    assert nominal(H200, "shared memory") == pytest.approx(33.5e12, rel=1e-2)
    assert nominal(H200, "copy to the device, pinned memory") == 63e9
    assert nominal(CPU, "float32 multiply-add") is None


def test_figures_that_are_stored_at_once_are_all_kept(tmp_path):
    names = [f"figure {number}" for number in range(16)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: keep_ceilings(tmp_path, H200, [Ceiling(name, BYTES, 1.0, {}, {})]), names))
    assert set(read_ceilings(tmp_path / H200.slug)) == set(names)


FIGURE = {"name": "memory read", "unit": "bytes_per_s", "value": 1e9, "sizes": {}, "config": {}}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"schema": 1, "ceilings": [{"name": 1}]}),
        json.dumps({"schema": 1, "ceilings": [FIGURE | {"value": "fast"}]}),
        json.dumps({"schema": 1, "ceilings": [FIGURE | {"name": []}]}),
        json.dumps({"schema": 1, "ceilings": [FIGURE | {"sizes": [1]}]}),
        json.dumps([FIGURE]),
        "[" * 100_000,
        "",
    ],
    ids=["missing", "value", "name", "sizes", "list", "nested", "empty"],
)
def test_a_damaged_file_counts_as_none(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    assert read_ceilings(tmp_path) == {}
