"""A device without hardware: kernels are Python functions that work on bytes.

    def add(grid, block, x, y, n):          # one function per entry; arrays arrive as uint8 views
        y.view("float32")[:n] += x.view("float32")[:n]
        return 0.01 * BLOCK_SIZE            # the device time in ms; None: the wall time is taken

Every macro is a global of the source, and so is DEVICE, the index of the device. A function `compiling()`
runs in the compiler's process. So a kernel can really hang, crash the process (`os.kill(os.getpid(),
SIGSEGV)`), write out of bounds (`x.base` is the allocation around the view) or write nothing. Tests of faults
use this device.
"""

from __future__ import annotations

import ast
import hashlib
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.core.records import DeviceInfo, Launch, Value
from autotune.core.syntax import parse_module
from autotune.core.trials import Binary
from autotune.devices.base import Arguments, Buffer, Offsets, Program
from autotune.devices.clocks import Clocks
from autotune.devices.fake_clocks import FakeControl
from autotune.devices.host_memory import HostBuffers
from autotune.errors import CompileError, DeviceLost, LaunchError, OutOfMemory

COPY_J_PER_BYTE = 1e-9
THROTTLED = 1.5  # factor on the time of a run

_INFO = DeviceInfo(
    backend="fake",
    name="Fake GPU",
    slug="fake-gpu",
    kind="gpu",
    vendor="autotune",
    architecture="fake",
    compute_units=16,
    warp_size=32,
    max_threads_per_block=1024,
    shared_bytes_per_block=49_152,
    registers_per_block=65_536,
    memory_bytes=2**33,
    memory_bandwidth_bytes_per_s=None,
    cache_bytes=2**22,
    has_shuffle=True,
    driver="1",
    runtime="1",
)


class FakeCompiler:
    """Checks the syntax, runs `compiling()`, and removes unused macros."""

    identity = None  # `compiling()` has to run every time

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Return the source text as the binary; the options become the global OPTIONS."""
        began = time.perf_counter()
        try:
            tree = parse_module(source)
        except SyntaxError as error:
            raise CompileError(f"line {error.lineno}: {error.msg}") from None
        text = ast.unparse(_without_unused_macros(tree)) + f"\nOPTIONS = {tuple(options)!r}\n"
        hook = _execute(text).get("compiling")
        if hook is not None:
            hook()
        data = text.encode()
        elapsed_ms = (time.perf_counter() - began) * 1e3
        return Binary(data, hashlib.sha256(data).hexdigest(), "", elapsed_ms)


class FakeDevice(HostBuffers):
    """Memory is numpy arrays, a launch is a function call."""

    def __init__(self, index: int = 0) -> None:
        self.info = dict(enumerate(list_devices())).get(index, _INFO)
        self._index = index
        self._energy_j = 0.0
        self._throttled_runs = 0
        self._used_bytes = 0
        state = os.environ.get("AUTOTUNE_FAKE_CLOCKS")
        self.clocks = Clocks(FakeControl(Path(state)) if state else None)

    def allocate(self, size_bytes: int) -> Buffer:
        """A fresh array of bytes; raises OutOfMemory when all arrays in use exceed the device's memory."""
        if self._used_bytes + size_bytes > self.info.memory_bytes:
            raise OutOfMemory(f"{size_bytes} bytes, while {self._used_bytes} are in use")
        buffer = super().allocate(size_bytes)
        self._used_bytes += size_bytes
        weakref.finalize(buffer, self._release, size_bytes)
        return buffer

    def _release(self, size_bytes: int) -> None:
        self._used_bytes -= size_bytes

    def copy(self, target: Buffer, source: Buffer, size_bytes: int, offsets: Offsets = (0, 0)) -> None:
        """Copy between arrays; uses COPY_J_PER_BYTE."""
        self._energy_j += size_bytes * COPY_J_PER_BYTE
        super().copy(target, source, size_bytes, offsets)

    def load(self, binary: Binary) -> Program:
        """Execute the source; the program is its globals."""
        return _execute(binary.data.decode(), DEVICE=self._index)

    def run(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Arguments,
        repeats: int = 1,
        graph: bool | None = None,
        warm_first: bool = False,
    ) -> float:
        """Call each entry in order; return the sum of the times that they return, in ms.

        A kernel's `throttled_runs()` gives the number of runs, this one included, with a throttled device.
        """
        for launch in launches if warm_first else ():
            _launch(program, launch, arguments)
        total_ms = sum(_launch(program, launch, arguments) for _ in range(repeats) for launch in launches)
        self._throttled_runs = max(self._throttled_runs - 1, program.get("throttled_runs", int)())
        total_ms *= THROTTLED if self._throttled_runs else 1.0
        self._energy_j += total_ms * 1e-3 * program.get("power_w", lambda: 1.0)()
        return total_ms

    def conditions(self) -> Mapping[str, Value]:
        """The reason for throttling, if it is throttled."""
        return {"throttled": "power cap"} if self._throttled_runs else {}

    def energy_j(self) -> float:
        """The energy of all copies and runs; a kernel's `power_w()` gives the power of its runs, else 1 W."""
        return self._energy_j


def _launch(program: Program, launch: Launch, arguments: Arguments) -> float:
    entry = program.get(launch.entry)
    if entry is None:
        raise LaunchError(f"the source has no entry {launch.entry!r}")
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if threads > _INFO.max_threads_per_block:
        raise LaunchError(f"a block of {threads} threads exceeds {_INFO.max_threads_per_block}")
    began = time.perf_counter()
    claimed_ms = entry(launch.grid, launch.block, *(arguments[name] for name in launch.arguments))
    return float(claimed_ms) if claimed_ms is not None else (time.perf_counter() - began) * 1e3


def _execute(text: str, **names: Any) -> dict[str, Any]:
    names["__name__"] = "kernel"
    exec(compile(text, "kernel", "exec"), names)  # the user's own kernel
    return names


def _without_unused_macros(tree: ast.Module) -> ast.Module:
    used = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    kept = [
        node
        for node in tree.body
        if not (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id not in used
        )
    ]
    return ast.Module(kept, [])


def list_devices() -> list[DeviceInfo]:
    """One fake device, or as many as the environment variable AUTOTUNE_FAKE_DEVICES says.

    `3` stands for three equal devices, `2,1` for two of a model and one of another model.
    """
    counts = map(int, os.environ.get("AUTOTUNE_FAKE_DEVICES", "1").split(","))
    return [_model(number) for number, count in enumerate(counts, 1) for _ in range(count)]


def _model(number: int) -> DeviceInfo:
    named = replace(_INFO, name=f"{_INFO.name} {number}", slug=f"{_INFO.slug}-{number}")
    return _INFO if number == 1 else named


def open_device(index: int) -> FakeDevice:
    """Open a fake device with any index; it is lost if its number is a file in AUTOTUNE_FAKE_LOST."""
    lost = os.environ.get("AUTOTUNE_FAKE_LOST")
    if lost and Path(lost, str(index)).exists():
        raise DeviceLost(f"fake:{index} has fallen off the bus")
    return FakeDevice(index)


def open_compiler(index: int) -> FakeCompiler:
    """Open the compiler of a fake device."""
    return FakeCompiler()
