"""`load_kernel` and `best_config` with the arrays and devices of the GPU packages that are installed."""

import importlib
import shutil
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from autotune import best_config, load_kernel
from autotune.core.records import DeviceInfo
from autotune.errors import InputError
from autotune.hardware.identify import identify
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

N = 1_000_003
NUMBERS = np.random.default_rng(1).integers(-100, 101, N).astype(np.float32)
TOTAL = float(NUMBERS.sum(dtype=np.float64))


@pytest.fixture(scope="module", autouse=True)
def gpu() -> DeviceInfo:
    """The first GPU as a search describes it."""
    found = devices_here("cuda")
    return found[0]


def package(name: str):
    """A GPU package, without which a test is skipped."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed")


def arrays_of_torch():
    torch = package("torch")
    x = torch.from_numpy(NUMBERS).cuda()
    return x, x.clone(), x.new_empty(1), torch.zeros(1, dtype=torch.int32, device="cuda")


def arrays_of_cupy():
    cupy = package("cupy")
    x = cupy.asarray(NUMBERS)
    return x, x.copy(), cupy.empty(1, cupy.float32), cupy.zeros(1, cupy.uint32)


def arrays_of_pycuda():
    package("pycuda.autoprimaryctx")
    gpuarray = package("pycuda.gpuarray")
    x = gpuarray.to_gpu(NUMBERS)
    return x, x.copy(), gpuarray.empty(1, np.float32), gpuarray.zeros(1, np.uint32)


def value(array) -> float:
    """The first number of an array of any package."""
    if hasattr(array, "cpu"):
        return float(array.cpu()[0])
    return float(array.get()[0])


@pytest.mark.parametrize("arrays", [arrays_of_torch, arrays_of_cupy, arrays_of_pycuda])
@pytest.mark.filterwarnings("ignore::autotune.StaleWarning")
def test_arrays_of_every_package_give_a_right_sum(arrays):
    x, work, total, ticket = arrays()
    load_kernel("reduce")(x, work, total, ticket)
    assert value(total) == TOTAL


@pytest.mark.filterwarnings("ignore::autotune.StaleWarning")
def test_the_current_stream_of_torch_is_used_and_another_may_be_given():
    torch = package("torch")
    x, work, total, ticket = arrays_of_torch()
    reduce = load_kernel("reduce")
    for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            filled = x * 2
            reduce(filled, filled.clone(), total, ticket)
            doubled = total.clone()
        stream.synchronize()
        assert value(doubled) == 2 * TOTAL
    reduce(x, work, total, ticket, stream=stream)
    stream.synchronize()
    assert value(total) == TOTAL


@pytest.mark.filterwarnings("ignore::autotune.StaleWarning")
def test_buffers_of_cuda_core_need_sizes():
    core = package("cuda.core")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    x, work, total, ticket = (device.allocate(size, stream=stream) for size in (4 * N, 4 * N, 4, 4))
    host = core.Buffer.from_handle(NUMBERS.ctypes.data, NUMBERS.nbytes, owner=NUMBERS)
    x.copy_from(host, stream=stream)
    ticket.fill(0, stream=stream)
    reduce = load_kernel("reduce", dtype="float32")
    with pytest.raises(InputError, match="no array's shape gives n"):
        reduce(x, work, total, ticket, stream=stream)
    reduce(x, work, total, ticket, n=N, stream=stream)
    answer = np.empty(1, np.float32)
    total.copy_to(core.Buffer.from_handle(answer.ctypes.data, 4, owner=answer), stream=stream)
    stream.sync()
    assert answer[0] == TOTAL


def test_a_part_with_gaps_is_refused():
    torch = package("torch")
    x, work, total, ticket = arrays_of_torch()
    with pytest.raises(InputError, match="reduce: x: is not contiguous"):
        load_kernel("reduce")(x[::2], work, total, ticket)
    assert torch.cuda.is_available()


def test_the_driver_s_library_describes_a_gpu_as_a_search_does(gpu):
    known = identify(0)
    for item in (item for item in fields(DeviceInfo) if item.compare):
        assert getattr(known, item.name) == getattr(gpu, item.name), item.name
    assert identify(None) == known


def devices():
    """A device object of each package, made when its test runs."""
    yield "torch", lambda: package("torch").device("cuda", 0)
    yield "torch, current", lambda: package("torch").device("cuda")
    yield "cupy", lambda: package("cupy").cuda.Device(0)
    yield "cuda.core", lambda: package("cuda.core").Device(0)
    yield "pycuda", lambda: (package("pycuda.autoprimaryctx"), package("pycuda.driver").Device(0))[1]


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in devices()])
def test_every_device_object_is_the_gpu(make, gpu):
    assert identify(make()) == gpu
    assert best_config("reduce", make(), n=N).device == gpu


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("production_cupy_or_torch.py", "torch"),
        ("production_cupy_or_torch.py", "cupy"),
        ("production_pycuda.py", "pycuda"),
    ],
)
def test_the_examples_get_a_right_sum_and_say_only_what_is_known(root, tmp_path, name, needed):
    package(needed)
    if needed == "pycuda" and shutil.which("nvcc") is None:
        pytest.skip("pycuda's SourceModule needs nvcc")
    command = [sys.executable, root / "examples" / name, needed]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "right" and "None" not in done.stdout
