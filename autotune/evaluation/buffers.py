"""The arrays of a workload in device memory: programs run on them, and their content is checked then."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from autotune.core.argument_values import pointed
from autotune.core.launch_plan import Settings
from autotune.devices.array_compare import ArrayComparison, Difference
from autotune.devices.base import Arguments, Buffer, Device, LocalMemory, Program
from autotune.devices.element_types import array_bytes, numpy_dtype, scalar_of
from autotune.errors import ImpossibleTime
from autotune.evaluation.guarded_buffer import PLACES, GuardedBuffer
from autotune.evaluation.poison import GUARD_BYTES
from autotune.problem.inputs import WorkloadData, is_drawn_alone
from autotune.problem.workload import Array, Workload

# Share of device memory: per problem in memory, small arrays of the same name stay allocated up to this
# total. An array that alone takes more is large.
KEPT_SHARE = 2**-9


class SharedBuffers:
    """Device memory for all workloads with the same data: they share inputs and results, but not scratch."""

    def __init__(self, device: Device, data: WorkloadData, earlier: Iterable[SharedBuffers] = ()) -> None:
        """Allocate nothing yet; inputs that `earlier` ones have kept are taken over."""
        self.device = device
        self.data = data
        self._guarded: dict[Array, GuardedBuffer] = {}  # in order of their latest use
        for shared in earlier:
            if shared.data.problem.seed == data.problem.seed:
                self._guarded |= shared._guarded
        # energy of restoring these arrays at these clocks
        self.restore_j: dict[tuple[tuple[Array, ...], Settings], float | None] = {}

    def buffer_of(self, array: Array) -> GuardedBuffer:
        """The buffer of an array, allocated at its first use."""
        guarded = self._guarded.pop(array, None)
        if guarded is None:
            self._make_room(array)
            guarded = GuardedBuffer(self.device, array, self.data)
        self._guarded[array] = guarded
        return guarded

    def keep_inputs_of(self, workloads: Iterable[Workload]) -> None:
        """Free all arrays but the inputs that later workloads have as well."""
        seed = self.data.problem.seed
        later = {array for other in workloads if other.problem.seed == seed for array in other.arrays}
        self._guarded = {
            array: guarded
            for array, guarded in self._guarded.items()
            if array in later and array.role == "in" and is_drawn_alone(array)
        }

    def _make_room(self, array: Array) -> None:
        """Free arrays of the same name: other large ones for a large one, old small ones for a small one."""
        limit_bytes = KEPT_SHARE * self.device.info.memory_bytes
        is_large = _kept_bytes(array) > limit_bytes
        others = [
            kept
            for kept in self._guarded
            if kept.name == array.name and (_kept_bytes(kept) > limit_bytes) == is_large
        ]
        left_bytes = limit_bytes - sum(map(_kept_bytes, (array, *others)))
        for kept in others:  # the least recently used first
            if left_bytes < 0:
                left_bytes += _kept_bytes(kept)
                del self._guarded[kept]
                self.device.forget()


class WorkloadBuffers:
    """The arrays of one workload in device memory."""

    def __init__(self, workload: Workload, shared: SharedBuffers) -> None:
        self.workload = workload
        self.device = shared.device
        self.restore_j = shared.restore_j
        self._shared = shared
        used = workload.used_names | set(shared.data.expected)
        self._arrays = [array for array in workload.arrays if array.name in used]

    def arrays(self) -> tuple[GuardedBuffer, ...]:
        """The arrays that the launches use, and every output that the reference returns."""
        return tuple(map(self._shared.buffer_of, self._arrays))

    def run(
        self, program: Program, repeats: int = 1, *, graph: bool | None = None, warm_first: bool = False
    ) -> float:
        """Run the launch plan on the arrays as they are; return its time in ms. Raises as `Device.run`."""
        arguments = self.arguments(program)
        time_ms = self.device.run(program, self.workload.launches, arguments, repeats, graph, warm_first)
        if not math.isfinite(time_ms):
            raise ImpossibleTime(f"the device reports a run time of {time_ms} ms")
        return time_ms

    def run_anew(self, program: Program) -> None:
        """Run the launch plan once on the arrays in their initial state."""
        for guarded in self.arrays():
            guarded.restore()
        self.run(program)

    def arguments(self, program: Program) -> Arguments:
        """The arguments of a run that is about to change the arrays; variables of the program are set."""
        arrays = self.arrays()
        for guarded in arrays:
            guarded.is_pristine = False
        parts = {guarded.array.name: guarded.from_offset for guarded in arrays}
        return launch_arguments(self.device, program, self.workload, parts)

    def are_right(self, arrays: Sequence[GuardedBuffer]) -> bool:
        """True if inputs are unchanged, outputs right and guard zones whole."""
        differences = self.device.compare([self._against_correct(guarded) for guarded in arrays])
        for guarded, difference in zip(arrays, differences, strict=True):
            guarded.is_pristine = guarded.array.role == "in" and difference is None
        return not any(differences) and not any(map(self._sample_difference, arrays))

    def wrong(self, guarded: GuardedBuffer) -> Difference | None:
        """Index of the first wrong element, compared with a correct run, and their number."""
        comparison = self._against_correct(guarded)
        whole = self.difference(comparison)
        if whole is not None:
            return guarded.index_of(whole, comparison), whole[1]
        return self._sample_difference(guarded)

    def difference(self, comparison: ArrayComparison) -> Difference | None:
        """Carry out one comparison; None if the arrays agree."""
        return self.device.compare([comparison])[0]

    def _against_correct(self, guarded: GuardedBuffer) -> ArrayComparison:
        return guarded.against_correct(self.workload.tolerance_of(guarded.array.name))

    def _sample_difference(self, guarded: GuardedBuffer) -> Difference | None:
        return guarded.sample_difference(self.workload.tolerance_of(guarded.array.name))


def launch_arguments(
    device: Device, program: Program, workload: Workload, parts: Mapping[str, Callable[[int], Buffer]]
) -> Arguments:
    """Bind arrays in device memory and numbers to a workload's arguments, and set the program's variables.

    `parts` has a function for each array in memory: it returns the array from an offset in bytes on.
    """
    arguments: dict[str, Buffer | np.generic | LocalMemory] = {
        item.name: LocalMemory(array_bytes(item.dtype, item.shape)) for item in workload.local
    }
    arguments |= {name: part(0) for name, part in parts.items()}
    arguments |= {view.name: parts[view.of](view.offset_bytes) for view in workload.views if view.of in parts}
    for scalar in workload.scalars:
        addresses = {
            name: device.address(arguments[name]) for name in pointed(scalar.value) if name in arguments
        }
        arguments[scalar.name] = scalar_of(scalar.dtype, scalar.value, addresses)
    for array in workload.arrays:
        if array.symbol and array.name in parts:
            device.set_variable(program, array.symbol, arguments[array.name], array.size_bytes)
    return arguments


def device_bytes(workload: Workload) -> int:
    """Lower bound of the device memory that a workload's arrays take, guard zones included.

    Each array has one image for runs and a pristine one; an output also has its expected result and a few
    wrong values.
    """
    total = 0
    for array in workload.arrays:
        if array.name in workload.used_names or array.role == "out":
            image_bytes = _image_bytes(array)
            wrong_bytes = min(array.count, PLACES) * numpy_dtype(array.dtype).itemsize
            total += 3 * image_bytes + wrong_bytes if array.role == "out" else 2 * image_bytes
    return total


def _kept_bytes(array: Array) -> int:
    """The device memory of an array that stays allocated: its image for runs and the pristine one."""
    return 2 * _image_bytes(array)


def _image_bytes(array: Array) -> int:
    """The device memory of an array with its two guard zones."""
    return array.size_bytes + 2 * GUARD_BYTES
