"""A device whose kernels are Python functions on arrays of bytes: `autotune search SPACE --device plain`.

The source has a function for each entry, which gets the grid, the block, and the arguments.
"""

import hashlib
import platform
import time

import numpy as np

from autotune.core.records import DeviceInfo
from autotune.core.trials import Binary
from autotune.devices.base import Device
from autotune.errors import CompileError, LaunchError, OutOfMemory

DIALECTS = ("python",)  # that of the compiler, then others that it accepts

INFO = DeviceInfo(
    backend="plain",
    name="Plain Python",
    slug="plain-python",
    kind="cpu",
    vendor="example",
    architecture=platform.machine(),
    compute_units=1,
    warp_size=1,
    max_threads_per_block=1024,
    shared_bytes_per_block=0,
    registers_per_block=None,
    memory_bytes=2**32,
    memory_bandwidth_bytes_per_s=None,
    cache_bytes=0,
    has_shuffle=False,
    driver=platform.python_version(),
    runtime="Python",
)


class PlainCompiler:
    identity = f"plain, Python {platform.python_version()}"

    def compile(self, source, options, names=()):
        began = time.perf_counter()
        try:
            compile(source, "kernel", "exec")
        except SyntaxError as error:
            raise CompileError(f"line {error.lineno}: {error.msg}") from None
        data = source.encode()
        return Binary(data, hashlib.sha256(data).hexdigest(), "", (time.perf_counter() - began) * 1e3)


class PlainDevice(Device):
    info = INFO

    def allocate(self, size_bytes):
        if size_bytes > INFO.memory_bytes:
            raise OutOfMemory(f"{size_bytes} bytes; there are {INFO.memory_bytes}")
        return np.zeros(size_bytes, np.uint8)

    def region(self, buffer, offset_bytes, size_bytes):
        return buffer[offset_bytes : offset_bytes + size_bytes]

    def write(self, buffer, data):
        buffer[: data.size] = data

    def read(self, buffer, size_bytes, into=None):
        data = np.empty(size_bytes, np.uint8) if into is None else into
        data[:] = buffer[:size_bytes]
        return data

    def copy(self, target, source, size_bytes, offsets=(0, 0)):
        target[offsets[0] : offsets[0] + size_bytes] = source[offsets[1] : offsets[1] + size_bytes]

    def load(self, binary):
        program = {}
        exec(compile(binary.data, "kernel", "exec"), program)
        return program

    def run(self, program, launches, arguments, repeats=1, graph=None, warm_first=False):
        for one in launches:
            if one.entry not in program:
                raise LaunchError(f"the source has no function {one.entry}")
            if (threads := np.prod(one.block)) > INFO.max_threads_per_block:
                raise LaunchError(f"a block of {threads} threads; at most {INFO.max_threads_per_block}")
        for _ in range(warm_first):
            self.run(program, launches, arguments)
        began = time.perf_counter()
        for _ in range(repeats):
            for one in launches:
                program[one.entry](one.grid, one.block, *(arguments[name] for name in one.arguments))
        return (time.perf_counter() - began) * 1e3

    def flush_cache(self):
        """Python's own work replaces what is in caches."""


def list_devices():
    return [INFO]


def open_device(index):
    return PlainDevice()


def open_compiler(index):
    return PlainCompiler()
