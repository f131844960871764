"""NVIDIA GPUs through cuda.core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from cuda.bindings import driver
from cuda.core import Buffer as Memory
from cuda.core import Device as Gpu
from cuda.core import Event, EventOptions, Kernel, LaunchConfig, ObjectCode, launch
from cuda.core._utils.cuda_utils import CUDAError  # the only name cuda.core gives its errors
from cuda.core.graph import Graph

from autotune.cuda_driver import cuda_device
from autotune.devices.base import Buffer, Bytes, DeviceLost, LaunchError, Program
from autotune.devices.cuda_compiler import CudaCompiler
from autotune.devices.on_gpu import ComparedOnGpu, classified
from autotune.model import DeviceInfo, Launch
from autotune.trials import Binary


class CudaDevice(ComparedOnGpu):
    """One GPU with a stream of its own; runs of several launches are replayed as a graph."""

    def __init__(self, index: int) -> None:
        self._gpu = Gpu(index)
        super().__init__(cuda_device(index), self._gpu.pci_bus_id)
        self._gpu.set_current()
        self._stream = self._gpu.create_stream()
        self._start, self._end = self._event(), self._event()
        self._graph_of: tuple[object, ...] | None = None
        self._graph: Graph | None = None

    def allocate(self, size_bytes: int) -> Buffer:
        """Reserve global memory."""
        return self._gpu.allocate(max(1, size_bytes), stream=self._stream)

    def region(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> Buffer:
        """The same memory from an offset on; the parent is kept alive."""
        return Memory.from_handle(int(buffer.handle) + offset_bytes, size_bytes, owner=buffer)

    def write(self, buffer: Buffer, data: Bytes) -> None:
        """Copy to the GPU and wait."""
        data = np.ascontiguousarray(data)
        if data.size:
            self._stream.sync()
            _check(driver.cuMemcpyHtoD(int(buffer.handle), data.ctypes.data, data.size))

    def read(self, buffer: Buffer, size_bytes: int) -> Bytes:
        """Wait for the stream and copy to the host."""
        data = np.empty(size_bytes, np.uint8)
        if size_bytes:
            self._stream.sync()
            _check(driver.cuMemcpyDtoH(data.ctypes.data, int(buffer.handle), size_bytes))
        return data

    def copy(self, target: Buffer, source: Buffer, size_bytes: int) -> None:
        """Copy within global memory, in the order of the stream."""
        _check(
            driver.cuMemcpyDtoDAsync(
                int(target.handle), int(source.handle), size_bytes, int(self._stream.handle)
            )
        )

    def fill(self, buffer: Buffer, byte: int, size_bytes: int) -> None:
        """Set every byte, in the order of the stream."""
        _check(driver.cuMemsetD8Async(int(buffer.handle), byte, size_bytes, int(self._stream.handle)))

    def load(self, binary: Binary) -> Program:
        """Load a cubin; its kernels are looked up by name when they are launched."""
        return Module(binary)

    def run(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Mapping[str, Buffer | np.generic],
        repeats: int = 1,
    ) -> float:
        """Time between two events around the launches, which the GPU finds queued when it gets to them."""
        try:
            if len(launches) * repeats == 1:
                program.kernel(launches[0].entry, launches[0].shared_bytes)  # before the clock runs
                self._stream.record(self._start)
                self.enqueue(program, launches[0], arguments)
            else:
                graph = self._captured(program, launches, arguments, repeats)
                self._stream.record(self._start)
                graph.launch(self._stream)
            self._stream.record(self._end)
            self._end.sync()
            return float(self._end - self._start)
        except CUDAError as error:
            raise classified(error) from None

    def enqueue(self, program: Program, launch: Launch, arguments: Mapping[str, Buffer | np.generic]) -> None:
        """Queue one launch on the device's stream."""
        self._enqueue(self._stream, program, launch, arguments)

    def _captured(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Mapping[str, Buffer | np.generic],
        repeats: int,
    ) -> Graph:
        key = (program, tuple(launches), tuple(arguments.items()), repeats)
        if self._graph is None or self._graph_of != key:
            builder = self._gpu.create_graph_builder().begin_building()
            for _ in range(repeats):
                for step in launches:
                    self._enqueue(builder, program, step, arguments)
            self._graph = builder.end_building().complete()
            self._graph.upload(self._stream)
            self._graph_of = key
        return self._graph

    def _enqueue(
        self, where: object, program: Program, step: Launch, arguments: Mapping[str, Buffer | np.generic]
    ) -> None:
        kernel = program.kernel(step.entry, step.shared_bytes)
        config = LaunchConfig(grid=step.grid, block=step.block, shmem_size=step.shared_bytes)
        launch(where, config, kernel, *(arguments[name] for name in step.arguments))

    def _event(self) -> Event:
        return self._gpu.create_event(EventOptions(timing_enabled=True))


class Module:
    """A loaded cubin and the kernels that were asked for."""

    def __init__(self, binary: Binary) -> None:
        self._code = ObjectCode.from_cubin(binary.data)
        self._kernels: dict[tuple[str, int], Kernel] = {}

    def kernel(self, entry: str, shared_bytes: int) -> Kernel:
        """A kernel by name, allowed as much dynamic shared memory as the launch wants."""
        key = (entry, shared_bytes)
        if key not in self._kernels:
            try:
                kernel = self._code.get_kernel(entry)
            except CUDAError as error:
                raise LaunchError(
                    f'no kernel {entry!r} in the binary; is it declared extern "C"? ({error})'
                ) from None
            if shared_bytes > 48 * 1024:
                opt_in = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                (result,) = driver.cuKernelSetAttribute(opt_in, shared_bytes, kernel.handle, 0)
                if result != driver.CUresult.CUDA_SUCCESS:
                    raise LaunchError(
                        f"{entry}: {shared_bytes} bytes of dynamic shared memory: {result.name}"
                    )
            self._kernels[key] = kernel
        return self._kernels[key]


def list_devices() -> list[DeviceInfo]:
    """Every GPU that the driver shows; none without a driver."""
    try:
        return [cuda_device(gpu.device_id) for gpu in Gpu.get_all_devices()]
    except (CUDAError, RuntimeError):  # a driver that refuses, or none at all
        return []


def open_device(index: int) -> CudaDevice:
    """Open the GPU of that number."""
    return CudaDevice(index)


def open_compiler(index: int) -> CudaCompiler:
    """NVRTC for that GPU's architecture."""
    return CudaCompiler(cuda_device(index).architecture)


def _check(answer: tuple[object, ...]) -> None:
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise DeviceLost(str(answer[0]))
