"""Calls of a loaded kernel on GPUs: what does not fit is one clear error, and everything else is right."""

import importlib
import json
import shutil
import subprocess
import sys
from threading import Thread

import numpy as np
import pytest

from autotune import load_kernel
from autotune.compilers.source_text import packaged
from autotune.errors import CacheError, InputError, SetupError
from autotune.hardware.cuda_driver import pointer_device
from autotune.runtime import cuda

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::autotune.StaleWarning")]
LAST_BLOCK = {"FINISH": "last_block", "ALGORITHM": "shuffle", "USE_SHUFFLE": True}  # partials and a counter
IN_PLACE = {"TREE_MEMORY": "global", "WORK_PER_THREAD": 1, "UNROLL": 1}  # a copy of the input


def package(name: str):
    """A GPU package, without which a test is skipped."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed")


@pytest.fixture
def torch():
    found = package("torch")
    if not found.cuda.is_available():
        pytest.skip("no GPU")
    return found


@pytest.fixture
def two_gpus(torch):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return torch


def reduce_with(folder, **default):
    """The reduction, with a default that is served in place of tuned results."""
    shutil.copytree(packaged("cache") / "nvidia-h200", folder / "another-gpu")
    device = folder / "another-gpu/device.json"
    changed = {"name": "Another GPU", "slug": "another-gpu", "vendor": "other", "kind": "cpu"}
    device.write_text(json.dumps(json.loads(device.read_text()) | changed))
    path = folder / "another-gpu/reduce.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"default": record["default"] | default}))
    return load_kernel("reduce", cache=folder)


def numbers(torch, n=100_003, device="cuda"):
    return torch.randint(-100, 101, (n,), device=device, dtype=torch.int32)


@pytest.mark.parametrize("default", [{}, LAST_BLOCK, IN_PLACE], ids=["two launches", "counter", "copy"])
def test_every_stream_and_size_gets_its_own_sum(torch, tmp_path, default):
    reduce = reduce_with(tmp_path, **default)
    streams = [torch.cuda.Stream() for _ in range(3)]
    for n in (1000, 1, 100_003, 1000, 2_000_000, 100_003):
        for stream in streams:
            with torch.cuda.stream(stream):
                x = numbers(torch, n)
                before = x.clone()
                total = reduce(x)
            stream.synchronize()
            assert int(total) == int(x.sum(dtype=torch.int32)) and bool((x == before).all())


@pytest.mark.parametrize("default", [{}, LAST_BLOCK, IN_PLACE], ids=["two launches", "counter", "copy"])
def test_graphs_replay_on_new_content_and_beside_calls(torch, tmp_path, default):
    reduce = reduce_with(tmp_path, **default)
    x, y = numbers(torch), numbers(torch)
    reduce(x)  # compiles
    graphs, totals = [torch.cuda.CUDAGraph() for _ in range(2)], []
    for graph in graphs:
        with torch.cuda.graph(graph):
            totals.append(reduce(x))
    streams = [torch.cuda.Stream() for _ in graphs]
    for _ in range(50):
        x.copy_(numbers(torch))
        torch.cuda.synchronize()
        for graph, stream in zip(graphs, streams, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
        other = reduce(y)
        torch.cuda.synchronize()
        assert [int(total) for total in totals] == 2 * [int(x.sum(dtype=torch.int32))]
        assert int(other) == int(y.sum(dtype=torch.int32))


@pytest.mark.parametrize(
    ("first_on", "message"),
    [
        ("stream", "the graph's memory: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
        ("torch.cuda.Stream()", "an earlier error has invalidated the stream's capture; begin another"),
    ],
)
def test_a_capture_that_has_ended_with_an_error_is_named(torch, tmp_path, first_on, message):
    reduce_with(tmp_path)
    # in a process of its own, as PyTorch's random numbers do not work after a failed capture
    script = f"""if True:
        import sys, torch
        from autotune import load_kernel
        x = torch.ones(1000, device="cuda", dtype=torch.int32)
        stream = torch.cuda.Stream()
        run = load_kernel("reduce", cache=sys.argv[1]).bind(x)
        with torch.cuda.stream({first_on}):
            run()  # compiles
        with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
            try:
                torch.cuda.synchronize()  # is not allowed in a capture
            except torch.AcceleratorError:
                run()
    """
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert message in done.stderr


def test_a_bound_kernel_follows_the_current_stream(torch):
    x, y = torch.ones(64, 64, device="cuda"), torch.ones(64, 64, device="cuda")
    z = torch.empty_like(x)
    run = load_kernel("matadd").bind(x, y, z)
    for factor in (2.0, 3.0):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(10_000_000)
            x.fill_(factor)
            run()
        stream.synchronize()
        assert bool((z == factor + 1).all())


@pytest.mark.parametrize("default", [{}, LAST_BLOCK, IN_PLACE], ids=["two launches", "counter", "copy"])
def test_a_bound_kernel_reads_new_content_alone_beside_calls_and_in_graphs(torch, tmp_path, default):
    reduce = reduce_with(tmp_path, **default)
    x, y = numbers(torch), numbers(torch)
    run = reduce.bind(x)
    stream = torch.cuda.Stream()
    for own in (torch.cuda.current_stream(), stream):
        with torch.cuda.stream(own):
            for _ in range(3):
                x.copy_(numbers(torch))
                other, total = reduce(y), run()
                assert int(total) == int(x.sum(dtype=torch.int32))
                assert int(other) == int(y.sum(dtype=torch.int32))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        total = run()
    for _ in range(2):
        x.copy_(numbers(torch))
        torch.cuda.synchronize()
        graph.replay()
        torch.cuda.synchronize()
        assert int(total) == int(x.sum(dtype=torch.int32))


@pytest.mark.parametrize("own", [False, True], ids=["default stream", "own stream"])
def test_a_bound_kernel_runs_in_threads_without_a_context(torch, tmp_path, own):
    reduce = reduce_with(tmp_path, **LAST_BLOCK)
    x, y = (numbers(torch, 1_000_003) for _ in range(2))
    totals = [torch.zeros_like(x[:1]) for _ in range(2)]
    stream = torch.cuda.Stream() if own else None
    runs = [reduce.bind(one, sum=total, stream=stream) for one, total in zip((x, y), totals, strict=True)]
    torch.cuda.synchronize()
    threads = [Thread(target=lambda run=run: [run() for _ in range(300)]) for run in (*runs, *runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert [int(total) for total in totals] == [int(one.sum(dtype=torch.int32)) for one in (x, y)]


def test_a_bound_kernel_of_a_gpu_that_is_not_current_waits_for_its_own_stream(two_gpus):
    torch = two_gpus
    x, y, z = (torch.ones(64, 64, device="cuda:0") for _ in range(3))
    run = load_kernel("matadd").bind(x, y, z)
    for factor in (2.0, 3.0):
        with torch.cuda.device(0):
            torch.cuda._sleep(10_000_000)
            x.fill_(factor)
        with torch.cuda.device(1):
            torch.ones(1, device="cuda:1")
            run()
        torch.cuda.synchronize(0)
        assert bool((z == factor + 1).all())


@pytest.mark.parametrize("default", [{}, LAST_BLOCK, IN_PLACE], ids=["two launches", "counter", "copy"])
def test_calls_that_repeat_become_a_graph_and_stay_right(torch, tmp_path, monkeypatch, default):
    monkeypatch.setattr(cuda, "_REPEATS", 3)
    made = []

    class Graph(cuda.LaunchGraph):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(cuda, "LaunchGraph", Graph)
    reduce = reduce_with(tmp_path, **default)
    x, y = numbers(torch), numbers(torch)
    total, stream = torch.zeros_like(x[:1]), torch.cuda.Stream()
    for one in (x, x, y, x, x, x, x, x, x, y, x, y, y, y, y, y, y, x):
        one.copy_(numbers(torch))
        reduce(one, sum=total)
        assert int(total) == int(one.sum(dtype=torch.int32))
    assert len(made) == 2
    with torch.cuda.stream(stream):
        for _ in range(6):
            reduce(x, sum=total)
    stream.synchronize()
    assert len(made) == 3
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        reduce(x, sum=total)
    x.copy_(numbers(torch))
    torch.cuda.synchronize()
    graph.replay()
    torch.cuda.synchronize()
    assert int(total) == int(x.sum(dtype=torch.int32))


def test_threads_that_repeat_calls_on_their_own_arrays_get_their_own_sums(torch, tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "_REPEATS", 5)
    reduce = reduce_with(tmp_path, **LAST_BLOCK)
    inputs = [torch.full((100_003,), number, device="cuda", dtype=torch.int32) for number in range(1, 5)]
    totals = [torch.zeros_like(x[:1]) for x in inputs]
    torch.cuda.synchronize()
    wrong = []

    def call(x, total):
        expected = 100_003 * int(x[0])
        for _ in range(100):
            for _ in range(8):
                reduce(x, sum=total)
            if int(total) != expected:
                wrong.append(int(total))

    threads = [Thread(target=call, args=pair) for pair in zip(inputs, totals, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_does_not_fit_is_said(torch):
    add = load_kernel("matadd")
    x, y = torch.ones(64, 64, device="cuda"), torch.ones(64, 64, device="cuda")
    z = torch.empty_like(x)
    for _ in range(3):
        add(x, y, z)  # calls that fit come first: others must not be taken for them
    wrong = {
        r"c has shape \(64, 63\), so columns would be 63, but it is 64": (x, y, z[:, :63].contiguous()),
        r"b: expected float32 of shape \(64, 64\), found float64": (x, y.double(), z),
        "b: is on the device cpu": (x, y.cpu(), z),
        "a: is not contiguous": (x.t(), y, z),
        "b: is not contiguous": (x, torch.ones(64, 128, device="cuda")[:, ::2], z),
        "a: requires gradients": (x.clone().requires_grad_(), y, z),
        "b: is conjugated or negated only when it is read": (x, torch._neg_view(y), z),
    }
    for message, arrays in wrong.items():
        with pytest.raises(InputError, match=f"matadd: {message}"):
            add(*arrays)
    weights = x.clone().requires_grad_()
    with torch.no_grad():
        for _ in range(3):
            add(weights, y, z)
    with pytest.raises(InputError, match="a: requires gradients"):
        add(weights, y, z)
    freed = torch.ones(64, 64, device="cuda")
    freed.untyped_storage().resize_(0)
    with pytest.raises(InputError, match="a: has no memory: it was freed"):
        add(freed, y, z)
    add(x, y, z)
    torch.cuda.synchronize()
    assert bool((z == 2).all())


def test_an_array_that_begins_between_two_vectors_is_refused_or_added(torch):
    add = load_kernel("matadd")
    y, z = torch.ones(64, 64, device="cuda"), torch.empty(64, 64, device="cuda")
    for first in (0, 1, 2, 4, 0, 1):
        x = torch.ones(64 * 64 + first, device="cuda")[first:].view(64, 64)
        z.zero_()
        try:
            add(x, y, z)
        except InputError as error:
            assert first % 4 and "a: begins at an address that is no multiple of " in str(error)
        else:
            assert bool((z == 2).all())


def test_tensors_that_change_in_place_are_seen(torch):
    add = load_kernel("matadd")
    x, y, z = (torch.ones(64, 64, device="cuda") for _ in range(3))
    for arrays in ((x, y, z), (x, y, z), (x, y, z), (x, x, z), (x, x, z), (x, y, z)):
        z.zero_()
        add(*arrays)
        assert bool((z == 2).all())
    y.t_()
    with pytest.raises(InputError, match="b: is not contiguous"):
        add(x, y, z)
    y.t_()
    y.resize_(64, 32)
    with pytest.raises(InputError, match="b has shape"):
        add(x, y, z)
    for tensor in (x, z):
        tensor.resize_(64, 32)
    add(x, y, z)
    assert bool((z == 2).all())


def test_calls_of_inference_mode_and_its_tensors_are_right(torch):
    add = load_kernel("matadd")
    x, y, z = (torch.ones(64, 64, device="cuda") for _ in range(3))
    with torch.inference_mode():
        made = [torch.full((64, 64), 2.0, device="cuda") for _ in range(3)]
    for mode in (torch.enable_grad(), torch.inference_mode(), torch.no_grad()):
        with mode:
            for a, b, c in 3 * [(x, y, z), made]:
                add(a, b, c)
                assert bool((c == a + b).all())


def test_a_new_thread_has_no_context_of_its_own(torch):
    x, y, z = (torch.ones(64, 64, device="cuda") for _ in range(3))
    add = load_kernel("matadd")
    add(x, y, z)
    z.zero_()
    torch.cuda.synchronize()
    thread = Thread(target=add, args=(x, y, z))
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert bool((z == 2).all())


def test_arrays_on_a_gpu_that_is_not_current(two_gpus):
    torch = two_gpus
    add, reduce = load_kernel("matadd"), load_kernel("reduce")
    for device in ("cuda:0", "cuda:1", "cuda:0"):
        x, y, z = (torch.ones(64, 64, device=device) for _ in range(3))
        add(x, y, z)
        total = reduce(numbers(torch, 1000, device).fill_(2))
        assert total.device == x.device and int(total) == 2000
        assert bool((z == 2).all())
    x, y = torch.ones(64, 64, device="cuda:0"), torch.ones(64, 64, device="cuda:1")
    with pytest.raises(InputError, match="matadd: b and a are on different devices"):
        add(x, y, torch.empty_like(x))
    with torch.cuda.device(1):
        stream = torch.cuda.Stream()
    with pytest.raises(InputError, match="the stream and the arrays are of different GPUs or contexts"):
        add(x, x, torch.empty_like(x), stream=stream)


def test_a_cache_that_is_replaced_while_a_program_runs(torch, tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.runtime.call_signature.CHECK_S", 0)
    reduce, x = reduce_with(tmp_path), numbers(torch)
    expected = int(x.sum(dtype=torch.int32))
    assert int(reduce(x)) == expected
    path = tmp_path / "another-gpu/reduce.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"default": record["default"] | LAST_BLOCK}))
    assert int(reduce(x)) == expected
    path.write_text("{")
    with pytest.raises(CacheError, match="damaged"):
        reduce(x)


def test_freed_arrays_of_other_packages_are_refused(torch):
    package("pycuda.autoprimaryctx")
    gpuarray = package("pycuda.gpuarray")
    arrays = [gpuarray.to_gpu(np.ones((64, 64), np.float32)) for _ in range(3)]
    add = load_kernel("matadd")
    add(*arrays)
    assert (arrays[2].get() == 2).all()
    arrays[0].gpudata.free()
    with pytest.raises(InputError, match="a: is not in a GPU's memory, or was freed"):
        add(*arrays)


def test_arrays_of_pycuda_that_change_are_seen(torch):
    package("pycuda.autoprimaryctx")
    gpuarray = package("pycuda.gpuarray")
    add = load_kernel("matadd")
    a, b, c = (gpuarray.to_gpu(np.full((64, 64), value, np.float32)) for value in (1, 2, 0))
    other = gpuarray.to_gpu(np.full((64, 64), 5, np.float32))
    for x in (a, a, other, a[:], other.reshape(64, 64), a):
        c.set(np.zeros((64, 64), np.float32))
        add(x, b, c)
        assert (c.get() == x.get() + b.get()).all()
    a.gpudata, other.gpudata = other.gpudata, a.gpudata
    add(a, b, c)
    assert (c.get() == 7).all()
    for message, wrong in {
        "b: is not contiguous": b.T,
        "b: expected float32 of shape": gpuarray.empty((64, 64), np.float64),
        "b has shape": gpuarray.empty((64, 63), np.float32),
    }.items():
        with pytest.raises(InputError, match=f"matadd: {message}"):
            add(a, wrong, c)
    b.gpudata.free()
    with pytest.raises(InputError, match="b: is not in a GPU's memory, or was freed"):
        add(a, b, c)
    again = gpuarray.to_gpu(np.full((64, 64), 3, np.float32))  # mostly at the same address
    add(a, again, c)
    assert (c.get() == 8).all()


def test_tensors_are_added_in_their_own_context(torch):
    package("pycuda.autoprimaryctx")
    driver = package("pycuda.driver")
    x, y, z = (torch.ones(64, 64, device="cuda") for _ in range(3))
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    another = driver.Device(0).make_context()
    try:
        load_kernel("matadd")(x, y, z, stream=stream)
    finally:
        another.pop()
        another.detach()
    stream.synchronize()
    assert bool((z == 2).all())


def test_a_closed_buffer_of_cuda_core_is_refused(torch):
    device = package("cuda.core").Device(0)
    device.set_current()
    stream = device.create_stream()
    buffers = [device.allocate(4 * 64 * 64, stream=stream) for _ in range(3)]
    add = load_kernel("matadd", dtype="float32")
    add(*buffers, rows=64, columns=64, stream=stream)
    buffers[1].close(stream)
    stream.sync()
    with pytest.raises(InputError, match="b: is closed"):
        add(*buffers, rows=64, columns=64, stream=stream)


def test_outputs_of_a_call_need_the_current_stream(torch):
    stream = torch.cuda.Stream()
    with pytest.raises(InputError, match="outputs are allocated on the current stream"):
        load_kernel("reduce")(numbers(torch), stream=stream)


def test_memory_is_freed_with_the_kernel(torch, tmp_path, monkeypatch):
    addresses = []

    class Held(cuda.Memory):
        def __init__(self, context, size_bytes):
            super().__init__(context, size_bytes)
            addresses.append(self.address)

    monkeypatch.setattr(cuda, "Memory", Held)
    reduce = reduce_with(tmp_path, **IN_PLACE)
    x = numbers(torch, 2**26)
    expected = int(x.sum(dtype=torch.int32))

    def allocated():
        return [pointer_device(address) is not None for address in addresses]

    assert int(reduce(x)) == expected
    assert addresses and all(allocated())
    reduce.close()
    assert not any(allocated())
    addresses.clear()
    assert int(reduce(x)) == expected
    assert addresses and all(allocated())
    del reduce
    assert not any(allocated())


def test_a_kernel_for_nvcc_loads_or_is_refused_in_one_line(torch):
    x = torch.ones(2**20, device="cuda")
    try:
        assert float(load_kernel("nested_reduce")(x)) == 2**20
    except SetupError as error:
        assert "nvcc was not found" in str(error) and "\n" not in str(error)
