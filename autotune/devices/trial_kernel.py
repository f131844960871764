"""Compiles and runs a small kernel on a device: a driver may list a device that it cannot use."""

from __future__ import annotations

from autotune.core.records import Launch
from autotune.devices import Address, backend
from autotune.errors import AutotuneError, ChildFailed
from autotune.processes.child import Child

_TIMEOUT_S = 60.0
_THREADS = 64
_SOURCES = {
    "cuda": 'extern "C" __global__ void trial(int *x) { x[threadIdx.x] += 1; }',
    "opencl": "__kernel void trial(__global int *x) { x[get_local_id(0)] += 1; }",
    "python": "def trial(grid, block, x): x.view('int32')[:] += 1",
}


def device_fault(address: Address) -> str:
    """Say why a device cannot compile and run a kernel; empty if it can. A child process tries it."""
    child = Child(int)
    try:
        fault: str = child.call(_try, address, timeout_s=_TIMEOUT_S)
    except ChildFailed as error:
        fault = str(error)
    finally:
        child.kill(waits=False)
    return fault


def _try(_state: object, address: Address) -> str:
    """Run in the child, which has no state."""
    import numpy as np  # the parent may not need it

    try:
        adapter = backend(address.backend)
        source = _SOURCES[address.dialect]
        binary = adapter.open_compiler(address.index).compile(source, (), ("trial",))
        device = adapter.open_device(address.index)
        numbers = np.arange(_THREADS, dtype=np.int32)
        buffer = device.allocate(numbers.nbytes)
        device.write(buffer, numbers.view(np.uint8))
        device.run(
            device.load(binary), [Launch("trial", (1, 1, 1), (_THREADS, 1, 1), 0, ("x",))], {"x": buffer}
        )
        result = device.read(buffer, numbers.nbytes).view(np.int32)
    except AutotuneError as error:
        return str(error)
    return "" if np.array_equal(result, numbers + 1) else "a small kernel gives a wrong result"
