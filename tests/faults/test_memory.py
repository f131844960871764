"""Problems that do not fit in the memory of device or host: one line with the bytes and sizes that fit."""

import re
from dataclasses import replace

import pytest

from autotune.cli.progress import SearchProgress
from autotune.compilers.source_text import read_source
from autotune.errors import NoMemory
from autotune.evaluation.buffers import device_bytes
from autotune.evaluation.instance import InstanceMaker, environment
from autotune.evaluation.memory_check import MemoryCheck
from autotune.processes.host_limits import host_memory
from autotune.space import bind, problem_of
from autotune.tuning.options import Options
from autotune.tuning.single_runs import ladder
from autotune.tuning.task import Target, read_task
from tests.kernel_space import bound, spec_of
from tests.space_example import GPU

TOO_MANY = "n=1000000000"  # 20 bytes each, of the 8 GiB that the fake device has


@pytest.mark.parametrize("command", [("search",), ("run", "--landmarks"), ("search", "--engine", "adopt")])
def test_too_large_a_problem_is_refused_with_a_size_that_fits(folder, command):
    if "adopt" in command:
        folder.search("--budget", "2")
    before = folder.files()
    done = folder.run(*command, "double.yaml", "--device", "fake", "--size", TOO_MANY)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "double.yaml: the arrays for n=1000000000 take 18.6 GiB" in done.stderr
    assert "Fake GPU has 8.0 GiB" in done.stderr and "--size n=250000000" in done.stderr
    assert folder.files() == before


def test_what_the_device_refuses_is_told_in_the_same_way(folder, monkeypatch):
    scratch = "  - {name: t, dtype: int32, shape: [n * 10_000_000], role: scratch}\n"
    folder.edit("  - {name: n,", scratch + "  - {name: n,")
    folder.edit("arguments: [x, y, n]", "arguments: [x, y, n, t]")
    monkeypatch.chdir(folder.path)
    found = read_task(Target(folder.space, "fake"))
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
    maker = InstanceMaker(space, read_source(spec.source), "cuda", environment(space.device, "NVRTC 13"))
    with (
        pytest.raises(NoMemory) as refused,
        MemoryCheck(maker, maker.workload(spec.default, space.problem), is_sampled=True).enough_memory(),
    ):
        pass
    offered = {name: int(size) for name, size in re.findall(r"--size (\w+)=(\d+)", str(refused.value))}
    assert offered.keys() == space.problem.sizes.keys()
    problem = maker.workload(spec.default, replace(space.problem, sizes=offered))
    assert 2**30 < device_bytes(problem) < 2**32


def sized(kernel: str, device, elements: int):
    """The check of the arrays of a shipped kernel for about so many elements; its reference gives all."""
    spec = spec_of(kernel)
    side = int(elements**0.5) // 1024 * 1024
    problem = problem_of(spec, device, {"rows": side, "columns": side})
    maker = InstanceMaker(
        bind(spec, device, problem), read_source(spec.source), "cuda", environment(device, "NVRTC 13")
    )
    return MemoryCheck(maker, maker.workload(spec.default, problem), is_sampled=False)


def test_arrays_that_the_host_cannot_hold_are_refused_before_they_are_drawn():
    total_bytes = host_memory().total_bytes
    gpu, cpu = replace(GPU, backend="cuda", memory_bytes=2**60), replace(GPU, kind="cpu", memory_bytes=2**60)
    check = sized("matadd", gpu, total_bytes // 10)  # x, y and the sum, 4 bytes each
    with pytest.raises(NoMemory) as refused, check.enough_memory():
        pass
    said = re.fullmatch(
        r".*matadd.yaml: the arrays for rows=(\d+), columns=\d+ take ([\d.]+) GiB of the host's memory "
        r"\(inputs, expected results\), and the host has ([\d.]+) GiB; choose a smaller problem with --size, "
        r"such as --size rows=(\d+) --size columns=\d+",
        str(refused.value),
    )
    assert float(said[2]) > float(said[3]) == pytest.approx(total_bytes / 2**30, abs=0.1)
    assert int(said[4]) < int(said[1])
    check = sized("matadd", cpu, total_bytes // 30)  # and seven images of these on the device
    with pytest.raises(NoMemory, match="two copies of each for this device, which is the CPU"):
        check.enough_memory().__enter__()
    check = sized("matadd", gpu, total_bytes // 30)
    with check.enough_memory():
        pass


def test_arrays_that_a_reference_in_float64_may_not_hold_are_warned_of():
    total_bytes, gpu = host_memory().total_bytes, replace(GPU, backend="cuda", memory_bytes=2**60)
    said = sized("matadd", gpu, total_bytes // 20).warning()  # 24 bytes more for each element
    assert "GiB if the reference computes in float64" in said and "--size rows=" in said
    assert not sized("matadd", gpu, 2**20).warning()
