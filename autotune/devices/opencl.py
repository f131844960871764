"""OpenCL devices through pyopencl, among them the CPU."""

from __future__ import annotations

import hashlib
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl

from autotune.compilers.elf import read_sections, read_symbols
from autotune.compilers.hidden_reads import variables_text
from autotune.compilers.host_code import without_host_code
from autotune.core.launch_plan import needs_cuda
from autotune.core.records import DeviceInfo, Launch
from autotune.core.trials import Binary
from autotune.devices.array_compare import ArrayComparison, Difference
from autotune.devices.base import (
    Arguments,
    Buffer,
    Bytes,
    Device,
    LocalMemory,
    Offsets,
    Program,
    host_difference,
)
from autotune.devices.opencl_arrays import BlockMemoryFiller, CacheFlusher, ContentComparer, copy, flush_bytes
from autotune.devices.opencl_platforms import opencl_devices
from autotune.errors import CompileError, DeviceLost, LaunchError, OutOfMemory
from autotune.hardware.identify import opencl_device
from autotune.processes.host_limits import cpu_limits
from autotune.sources.dialects import OPENCL

STANDARD = "-cl-std=CL1.2"
POCL = "Portable Computing Language"  # PoCL's platform name
_MACHINE_CODE, _KERNELS = ".ocl.obj", ".ocl.meta"  # sections of Intel's binaries
_NOISE = re.compile(  # in Intel's logs
    r'(Compilation|Linking|Device build) (started|done)|Options used|Reload Program|remark: |Kernel "|Done\.'
)


class OpenCLCompiler:
    """Builds programs for one device with the driver's compiler.

    PoCL's binaries are compiled objects. Binaries of built programs would also hold machine code for any
    block, which takes most of the time, although PoCL makes machine code for a launch's own block at its
    first run.
    """

    def __init__(self, index: int) -> None:
        self._device = device = opencl_devices()[index]
        self._context = cl.Context([device])
        self._makes_objects = device.platform.name == POCL
        versions = (device.version, device.platform.version, device.driver_version)
        self.identity = " ".join((device.name, *versions, variables_text("opencl"))).rstrip()

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Build one program, without host code; raises CompileError with the log."""
        build = self._object if self._makes_objects else self._program
        flags = [STANDARD, *options]
        began = time.perf_counter()
        data, log = without_host_code(lambda text: build(text, flags), source, names, OPENCL)
        elapsed_ms = (time.perf_counter() - began) * 1e3
        return Binary(data, _content_sha256(data), log, elapsed_ms)

    def _program(self, source: str, options: list[str]) -> tuple[bytes, str]:
        return self._content(build_source(self._context, source, options))

    def _object(self, source: str, options: list[str]) -> tuple[bytes, str]:
        """A compiled object that can be linked."""
        program = cl.Program(self._context, source)
        try:
            with warnings.catch_warnings():  # pyopencl's own cache of binaries does not serve PoCL
                warnings.filterwarnings("ignore", "Pre-build attribute access")
                program.compile(options)
        except cl.RuntimeError:
            raise CompileError(_build_log(self._log(program))) from None
        try:
            cl.link_program(self._context, [program])
        except cl.RuntimeError:
            raise CompileError("linking fails: the source declares a function that nothing defines") from None
        return self._content(program)

    def _content(self, program: cl.Program) -> tuple[bytes, str]:
        return program.get_info(cl.program_info.BINARIES)[0], self._log(program)

    def _log(self, program: cl.Program) -> str:
        log: str = program.get_build_info(self._device, cl.program_build_info.LOG)
        return "\n".join(line for line in log.splitlines() if not _NOISE.match(line)).strip()


class OpenCLDevice(Device):
    """One OpenCL device with an in-order queue and profiling."""

    def __init__(self, index: int) -> None:
        self._device = opencl_devices()[index]
        self.info = opencl_device(self._device)
        self._context = cl.Context([self._device])
        self._queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self._flusher: CacheFlusher | None = None
        self._filler: BlockMemoryFiller | None = None
        self._comparer = ContentComparer(self._queue)

    def allocate(self, size_bytes: int) -> Buffer:
        """Reserve a buffer; most drivers allocate it at its first use."""
        with _memory(size_bytes):
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(1, size_bytes))

    def region(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> Buffer:
        """A sub-buffer; raises LaunchError if it is not aligned as the device requires."""
        try:
            return buffer.get_sub_region(offset_bytes, max(1, size_bytes))
        except cl.Error:
            unit = self._device.mem_base_addr_align // 8
            raise LaunchError(
                f"a view {offset_bytes} bytes into an array: this OpenCL device needs a multiple of {unit}"
            ) from None

    def write(self, buffer: Buffer, data: Bytes) -> None:
        """Copy to the device and wait. A broadcast byte, which takes no host memory, is filled in there."""
        with _memory(buffer.size):
            if data.size and data.strides == (0,):
                cl.enqueue_fill_buffer(self._queue, buffer, data[0], 0, data.size).wait()
                return
            copy(self._queue, buffer, np.ascontiguousarray(data), data.size)

    def read(self, buffer: Buffer, size_bytes: int, into: Bytes | None = None) -> Bytes:
        """Copy to the host and wait."""
        data = np.empty(size_bytes, np.uint8) if into is None else into
        copy(self._queue, data, buffer, size_bytes)
        return data

    def copy(self, target: Buffer, source: Buffer, size_bytes: int, offsets: Offsets = (0, 0)) -> None:
        """Copy on the device."""
        with _memory(target.size):
            copy(self._queue, target, source, size_bytes, offsets)

    def compare(self, comparisons: Sequence[ArrayComparison]) -> list[Difference | None]:
        """Compare large arrays bit by bit on the device, and arrays that differ on the host."""
        return [
            None if self._comparer.agree(comparison) else host_difference(self.read, comparison)
            for comparison in comparisons
        ]

    def load(self, binary: Binary) -> Program:
        """Load a binary; the program is its kernels by name."""
        try:
            program = cl.Program(self._context, [self._device], [binary.data])
            kind = program.get_build_info(self._device, cl.program_build_info.BINARY_TYPE)
            if kind == cl.program_binary_type.COMPILED_OBJECT:
                program = cl.link_program(self._context, [program])
            else:
                built(program)
            return kernels_by_name(program)
        except cl.Error as error:
            raise LaunchError(f"the driver refuses the binary: {error}") from None

    def run(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Arguments,
        repeats: int = 1,
        graph: bool | None = None,
        warm_first: bool = False,
    ) -> float:
        """Enqueue everything and wait; the time is from the first start to the last end."""
        rounds = [launch for _ in range(repeats) for launch in launches]
        for launch in rounds if warm_first else ():
            self._enqueue(program, launch, arguments)
        events = [self._enqueue(program, launch, arguments) for launch in rounds]
        try:
            self._queue.finish()
            return float(events[-1].profile.end - events[0].profile.start) * 1e-6
        except cl.Error as error:
            raise DeviceLost(str(error)) from None

    def dirty_block_memory(self) -> None:
        """Run groups that fill their local and private memory, which on a CPU belongs to its threads."""
        if self._filler is None:
            self._filler = BlockMemoryFiller(self._queue)
        self._filler.run()

    def flush_cache(self) -> None:
        """Read a buffer of `flush_bytes` that nothing else uses."""
        if self._flusher is None:
            size_bytes = flush_bytes(self.info)
            with _memory(size_bytes):
                self._flusher = CacheFlusher(self._queue, size_bytes)
        self._flusher.run()

    def _enqueue(self, program: Program, launch: Launch, arguments: Arguments) -> cl.Event:
        kernel = program.get(launch.entry)
        if kernel is None:
            raise LaunchError(
                f"the source has no kernel {launch.entry!r}; it has {', '.join(sorted(program)) or 'none'}"
            )
        if reason := needs_cuda(launch):
            raise LaunchError(reason)
        if kernel.num_args != len(launch.arguments):
            listed = f"the plan lists {len(launch.arguments)}"
            raise LaunchError(f"{launch.entry} takes {kernel.num_args} arguments, {listed}")
        try:
            kernel.set_args(*(_passed(arguments[name]) for name in launch.arguments))
            return cl.enqueue_nd_range_kernel(self._queue, kernel, launch.global_size, launch.block)
        except cl.Error as error:
            taken = kernel.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, self._device)
            most = self._device.local_mem_size
            lacks = f"; it takes {taken:,} bytes of local memory, and the device has {most:,}"
            raise LaunchError(f"{launch.entry}: {error}{lacks if taken > most else ''}") from None


def _passed(argument: Buffer | np.generic | LocalMemory) -> Buffer | np.generic:
    return cl.LocalMemory(argument.size_bytes) if isinstance(argument, LocalMemory) else argument


def list_devices() -> list[DeviceInfo]:
    """Every device of every OpenCL platform."""
    infos = [opencl_device(device) for device in opencl_devices()]
    return [replace(info, limits=cpu_limits()) if info.kind == "cpu" else info for info in infos]


open_device, open_compiler = OpenCLDevice, OpenCLCompiler  # by the place in `list_devices`


@contextmanager
def _memory(size_bytes: int) -> Iterator[None]:
    """Raise OutOfMemory if a driver has no memory for a buffer, when it is made or first used."""
    try:
        yield
    except cl.Error as error:
        if isinstance(error, cl.MemoryError) or error.code == cl.status_code.INVALID_BUFFER_SIZE:
            raise OutOfMemory(f"a buffer of {size_bytes} bytes: {error}") from None
        raise


def _content_sha256(data: bytes) -> str:
    """A hash that identifies a binary: of all bytes, or for Intel's runtime of the machine code.

    Intel's binaries also hold the program's number in its process, and so always differ.
    """
    content = data
    with suppress(ValueError, KeyError):
        outer = {section.name: section.content for section in read_sections(data)}
        inner = read_sections(outer[_MACHINE_CODE])
        symbols = [symbol for symbol in read_symbols(inner) if not symbol.is_file]
        code = [(part.name, part.content) for part in inner if part.name not in (".symtab", ".strtab")]
        content = repr((outer[_KERNELS], symbols, code)).encode()
    return hashlib.sha256(content).hexdigest()


def kernels_by_name(program: cl.Program) -> dict[str, cl.Kernel]:
    """The kernels of a built program by their names in the source.

    PoCL puts `_cl_` before a kernel's name if OpenCL has a function of that name, such as `step`.
    """
    return {kernel.function_name.removeprefix("_cl_"): kernel for kernel in program.all_kernels()}


def built(
    program: cl.Program, options: Sequence[str] = (), devices: Sequence[cl.Device] | None = None
) -> cl.Program:
    """Build a program, without pyopencl's warning that there is a log: Intel's runtime always writes one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        return program.build(list(options), devices)


class _Program(cl.Program):  # type: ignore[misc]
    """A program whose source pyopencl does not save to the temporary folder if it is refused."""

    def _build_and_catch_errors(
        self, build_func: Callable[[], Any], options_bytes: bytes, source: str | None = None
    ) -> Any:
        return super()._build_and_catch_errors(build_func, options_bytes)


def build_source(
    context: cl.Context, source: str, options: Sequence[str], devices: Sequence[cl.Device] | None = None
) -> cl.Program:
    """Build a program from its source; raises CompileError with the compiler's own lines."""
    try:
        return built(_Program(context, source), options, devices)
    except cl.RuntimeError as error:  # a lack of memory, another error, says nothing about the source
        raise CompileError(_build_log(str(error))) from None


def _build_log(text: str) -> str:
    """Extract the compiler's own lines from pyopencl's message."""
    lines = [line for line in text.splitlines() if "error" in line.lower() or "warning" in line.lower()]
    return "\n".join(lines or text.splitlines())
