"""What a call costs the host: tuned kernels beside a hand-written launch and other packages' calls.

    python benchmarks/call_overhead.py [--calls 200] [--rounds 40] [--starts 11] [--json]

Adds two matrices of 64 by 64 through every array package that is installed: torch, cupy, pycuda and cuda.core
on a GPU, pyopencl on the CPU; and sums a vector of torch. `RawKernel, cupy` and `kernel, pyopencl` are
hand-written launches. All contenders take turns in one process. A sample is the host time of many
asynchronous calls, divided by their number; the device is waited for outside it. The table has medians, in
microseconds.

New processes show the time of the first call beyond the import of the array package, once its binary is in
the cache, and that of the first answer of `best_config` beside three modules of the standard library.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from installed import installed_environment

from autotune import StaleWarning, load_kernel, opencl_devices

ROWS = 64
ELEMENTS = 2**20
DRIVER = Path("/dev/nvidiactl")
ADD = """
extern "C" __global__ void add(const float *a, const float *b, float *c, unsigned long count)
{
    const unsigned long i = (unsigned long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) c[i] = a[i] + b[i];
}
"""
FIRST_CALL = {
    "torch": (
        "x = torch.zeros(64, 64, device='cuda'); torch.cuda.synchronize()",
        "load_kernel('matadd')(x, x, torch.empty_like(x)); torch.cuda.synchronize()",
    ),
    "cupy": (
        "x = cupy.zeros((64, 64), 'f4'); cupy.cuda.Device().synchronize()",
        "load_kernel('matadd')(x, x, cupy.empty_like(x)); cupy.cuda.Device().synchronize()",
    ),
    "pyopencl": (
        "import pyopencl.array as ca; from autotune import opencl_devices\n"
        "c = pyopencl.Context(opencl_devices()[:1]); q = pyopencl.CommandQueue(c)\n"
        "x = ca.zeros(q, (64, 64), 'f4'); q.finish()",
        "load_kernel('matadd')(x, x, ca.empty_like(x)); q.finish()",
    ),
}
LOADER = {
    "standard library": "import json, dataclasses, pathlib",
    "best_config": "from autotune import best_config\nbest_config('reduce', 'NVIDIA H200', n=134_217_728)",
}


class Contender(NamedTuple):
    """A call to time, and how to wait for the device afterwards."""

    name: str
    call: Callable[[], object]
    wait: Callable[[], object]


def contenders() -> Iterator[Contender]:
    """Everything that can be timed here."""
    if DRIVER.exists():
        for package, make in (
            ("torch", torch_calls),
            ("cupy", cupy_calls),
            ("pycuda", pycuda_calls),
            ("cuda.core", cuda_core_calls),
        ):
            if is_installed(package):
                yield from make()
    yield from pyopencl_calls()


def is_installed(package: str) -> bool:
    """Whether a package can be imported; `cuda` may be there without `cuda.core`."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def torch_calls() -> Iterator[Contender]:
    """PyTorch's own calls, Triton's, and tuned ones on tensors."""
    torch = importlib.import_module("torch")
    wait = torch.cuda.synchronize
    x, y = (torch.ones(ROWS, ROWS, device="cuda") for _ in range(2))
    z = torch.empty_like(x)
    yield Contender("torch.add(out=)", lambda: torch.add(x, y, out=z), wait)
    if find_spec("triton") is not None:
        triton_add = importlib.import_module("peers.triton_add").add
        yield Contender("triton, torch", lambda: triton_add(x, y, z), wait)
    kernel = load_kernel("matadd")
    yield Contender("call, torch", lambda: kernel(x, y, z), wait)
    others = itertools.cycle([torch.empty_like(x) for _ in range(2)])
    yield Contender("call, torch, other addresses", lambda: kernel(x, y, next(others)), wait)
    yield Contender("call with a result, torch", lambda: kernel(x, y), wait)
    yield Contender("bound, torch", kernel.bind(x, y, z), wait)
    vector, reduce = torch.ones(ELEMENTS, device="cuda"), load_kernel("reduce")
    yield Contender("torch.sum, 2^20", lambda: torch.sum(vector), wait)
    yield Contender("total = reduce(x), torch, 2^20", lambda: reduce(vector), wait)


def cupy_calls() -> Iterator[Contender]:
    """A hand-written launch of CuPy, and tuned ones on its arrays."""
    cupy = importlib.import_module("cupy")
    wait = cupy.cuda.Device().synchronize
    x, y = (cupy.ones((ROWS, ROWS), cupy.float32) for _ in range(2))
    z = cupy.empty_like(x)
    raw, kernel = cupy.RawKernel(ADD, "add"), load_kernel("matadd")
    grid, block, count = (ROWS * ROWS // 256,), (256,), cupy.uint64(ROWS * ROWS)
    yield Contender("RawKernel, cupy", lambda: raw(grid, block, (x, y, z, count)), wait)
    yield Contender("call, cupy", lambda: kernel(x, y, z), wait)
    yield Contender("bound, cupy", kernel.bind(x, y, z), wait)


def pycuda_calls() -> Iterator[Contender]:
    """Tuned launches on PyCUDA's arrays."""
    importlib.import_module("pycuda.autoprimaryctx")
    gpuarray, driver = importlib.import_module("pycuda.gpuarray"), importlib.import_module("pycuda.driver")
    x, y, z = (gpuarray.zeros((ROWS, ROWS), "f4") for _ in range(3))
    kernel = load_kernel("matadd")
    yield Contender("call, pycuda", lambda: kernel(x, y, z), driver.Context.synchronize)
    yield Contender("bound, pycuda", kernel.bind(x, y, z), driver.Context.synchronize)


def cuda_core_calls() -> Iterator[Contender]:
    """Tuned launches on buffers of cuda.core, which need sizes."""
    device = importlib.import_module("cuda.core").Device(0)
    device.set_current()
    stream = device.create_stream()
    x, y, z = (device.allocate(4 * ROWS * ROWS, stream=stream) for _ in range(3))
    kernel = load_kernel("matadd", dtype="float32")
    sizes = {"rows": ROWS, "columns": ROWS, "stream": stream}
    yield Contender("call, cuda.core", lambda: kernel(x, y, z, **sizes), stream.sync)
    yield Contender("bound, cuda.core", kernel.bind(x, y, z, **sizes), stream.sync)


def pyopencl_calls() -> Iterator[Contender]:
    """A hand-written launch of pyopencl, and tuned ones on its arrays."""
    cl, arrays = importlib.import_module("pyopencl"), importlib.import_module("pyopencl.array")
    context = cl.Context(opencl_devices()[:1])
    queue = cl.CommandQueue(context)
    x, y, z = (arrays.zeros(queue, (ROWS, ROWS), "f4") for _ in range(3))
    text = "kernel void add(global const float *a, global const float *b, global float *c)"
    body = "{ const size_t i = get_global_id(0); c[i] = a[i] + b[i]; }"
    raw = cl.Kernel(cl.Program(context, text + body).build(), "add")
    kernel = load_kernel("matadd")
    data = x.data, y.data, z.data
    yield Contender("kernel, pyopencl", lambda: raw(queue, (ROWS * ROWS,), (64,), *data), queue.finish)
    yield Contender("call, pyopencl", lambda: kernel(x, y, z), queue.finish)
    yield Contender("bound, pyopencl", kernel.bind(x, y, z), queue.finish)


def host_times_us(found: list[Contender], calls: int, rounds: int) -> dict[str, float]:
    """Median host time of a call of each contender; they take turns."""
    samples: dict[str, list[float]] = {contender.name: [] for contender in found}
    for contender in found:
        contender.call()  # looks up, compiles and loads
    for _ in range(rounds):
        for name, call, wait in found:
            wait()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            samples[name].append(1e6 * (time.perf_counter() - start) / calls)
            wait()
    return {name: statistics.median(times) for name, times in samples.items()}


def first_calls_ms(starts: int) -> dict[str, float]:
    """Median time from the end of the package's import and set-up to the end of the first call."""
    result = {}
    for package, (before, call) in FIRST_CALL.items():
        if find_spec(package) is None or (package != "pyopencl" and not DRIVER.exists()):
            continue
        program = (
            f"import time, warnings, {package}; warnings.simplefilter('ignore')\n{before}\n"
            "start = time.perf_counter()\nfrom autotune import load_kernel\n"
            f"{call}\nprint(time.perf_counter() - start)"
        )
        times = [float(run(program)) for _ in range(starts + 1)]
        result[package] = 1e3 * statistics.median(times[1:] or times)  # the first one compiles
    return result


def loader_ms(starts: int) -> dict[str, float]:
    """Median time in a new process of imports and the first answer, taking turns.

    Starts of the same program differ by a half on some machines, so this takes the median of many.
    """
    samples: dict[str, list[float]] = {name: [] for name in LOADER}
    for _ in range(starts + 1):
        for name, program in LOADER.items():
            timed = f"import time; start = time.perf_counter()\n{program}\nprint(time.perf_counter() - start)"
            samples[name].append(1e3 * float(run(timed, "-S")))  # what site imports would count for neither
    return {name: statistics.median(times[1:] or times) for name, times in samples.items()}


def run(program: str, *flags: str) -> str:
    """Run a program in a new process and return what it prints."""
    environment = installed_environment() | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, *flags, "-c", program]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def report(figures: dict[str, Any]) -> None:
    """Print the tables."""
    for title, unit in (("host time of a call", "us"), ("first call", "ms"), ("loader", "ms")):
        print(f"{title}, {unit}")
        for name, value in figures[title].items():
            print(f"  {name:32}{value:9.2f}")
    loader = figures["loader"]
    print(f"  {'ratio':32}{loader['best_config'] / loader['standard library']:9.2f}")


def main() -> None:
    """Time everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=200, help="per sample; the driver queues about 1,000")
    parser.add_argument("--rounds", type=int, default=40, help="samples of each contender")
    parser.add_argument(
        "--starts",
        type=int,
        default=11,
        help="new processes for a first call; four times as many for the loader",
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", StaleWarning)
    figures = {
        "host time of a call": host_times_us(list(contenders()), arguments.calls, arguments.rounds),
        "first call": first_calls_ms(arguments.starts),
        "loader": loader_ms(4 * arguments.starts),
    }
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        report(figures)


if __name__ == "__main__":
    main()
