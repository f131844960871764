"""Problems that do not fit in the device's memory: one line with the bytes and sizes that fit."""

import re
from dataclasses import replace

import pytest

from autotune.cli.progress import SearchProgress
from autotune.compilers.kernel_source import read_source
from autotune.errors import NoMemory
from autotune.evaluation.buffers import device_bytes
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.memory_check import enough_memory
from autotune.space import bind
from autotune.tuning.options import Options
from autotune.tuning.single_runs import ladder
from autotune.tuning.task import Target, bind_target
from tests.kernel_space import bound, spec_of
from tests.space_example import GPU

TOO_MANY = "n=1000000000"  # 20 bytes each, of the 8 GiB that the fake device has


@pytest.mark.parametrize("command", ["search", "ladder", "adopt"])
def test_too_large_a_problem_is_refused_with_a_size_that_fits(folder, command):
    if command == "adopt":
        folder.search("--budget", "2")
    before = folder.files()
    done = folder.run(command, "double.yaml", "--device", "fake", "--size", TOO_MANY)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "double.yaml: the arrays for n=1000000000 take 18.6 GiB" in done.stderr
    assert "Fake GPU has 8.0 GiB" in done.stderr and "--size n=250000000" in done.stderr
    assert folder.files() == before


def test_what_the_device_refuses_is_told_in_the_same_way(folder, monkeypatch):
    scratch = "  - {name: t, dtype: int32, shape: [n * 10_000_000], role: scratch}\n"
    folder.edit("  - {name: n,", scratch + "  - {name: n,")
    folder.edit("arguments: [x, y, n]", "arguments: [x, y, n, t]")
    monkeypatch.chdir(folder.path)
    found = bind_target(Target(folder.space, "fake"))
    device = replace(found.device, memory_bytes=2**37)  # as if others had the rest of it
    space = bind(found.spec, device, found.space.problem)
    with pytest.raises(NoMemory, match=r"has no room for them in its 128.0 GiB .*; choose .* --size n=500$"):
        ladder(replace(found, device=device, space=space), Options(), SearchProgress())


def test_a_scratch_array_too_large_is_one_trial_of_its_configuration(folder):
    folder.edit(
        "  - {name: n,",
        "  - {name: t, dtype: int32, shape: [1 if A < 6 else 10_000_000_000], role: scratch}\n  - {name: n,",
    )
    folder.edit("arguments: [x, y, n]", "arguments: [x, y, n, t]")
    folder.write("""\
def double(grid, block, x, y, n, t):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return 7.0 - A + B
""")
    result = folder.search()
    assert result["config"] == {"A": 5, "B": 0} and result["counts"] == {"ok": 15, "launch_error": 2}


@pytest.mark.parametrize("kernel", ["matadd", "transpose"])
def test_a_small_gpu_is_offered_sizes_of_the_shipped_spaces_that_fit(kernel):
    spec = spec_of(kernel)
    space = bound(spec, replace(GPU, memory_bytes=2**32))
    maker = InstanceMaker(space, read_source(spec.source), "cuda", "NVRTC 13")
    with (
        pytest.raises(NoMemory) as refused,
        enough_memory(maker, maker.problem_instance(spec.default, space.problem)),
    ):
        pass
    offered = {name: int(size) for name, size in re.findall(r"--size (\w+)=(\d+)", str(refused.value))}
    assert offered.keys() == space.problem.sizes.keys()
    problem = maker.problem_instance(spec.default, replace(space.problem, sizes=offered))
    assert 2**30 < device_bytes(problem) < 2**32
