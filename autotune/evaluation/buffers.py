"""Device memory of one problem: its arrays between guard zones, and the expected results.

Arrays stay allocated from one configuration to the next. Each has a pristine image on the device, guard zones
and poison included, so one copy restores it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.c_types import element_bytes
from autotune.core.launch_plan import Settings
from autotune.devices.array_compare import ArrayComparison, Difference, Tolerance, unlike
from autotune.devices.base import Arguments, Buffer, Bytes, Device, Indices, LocalMemory, Program
from autotune.devices.element_types import is_floating, numpy_dtype, plain_dtype, scalar_of
from autotune.errors import ImpossibleTime
from autotune.evaluation.inputs import ProblemData
from autotune.evaluation.poison import GUARD_BYTES, as_bytes, guard_zone, poison
from autotune.evaluation.sampling import sample_indices
from autotune.evaluation.work_item import Array, ProblemInstance

SMALL_SHARE = 2**-10  # of device memory; smaller arrays stay allocated beside others of the same name
MAX_SMALL = 4  # small arrays of the same name that stay allocated
PAGE_BYTES = 4096  # regions of device memory start at multiples of this
_READ_BYTES = 2**22  # per transfer to the host when an image is compared there
WRONG_BYTES = 2**18  # of an output made wrong before a timed run: little beside what a run moves


class GuardedBuffer:
    """One array in device memory, with its pristine image and its expected result.

    All three include the guard zones on either side, so that one comparison checks everything. Where only a
    sample of the elements is expected, the host compares it, and the device the guard zones.
    """

    def __init__(
        self,
        device: Device,
        array: Array,
        content: NDArray[Any] | None,
        expected: NDArray[Any] | None,
        seed: int,
        magnitude: NDArray[Any] | None = None,
        *,
        may_be_nan: bool = False,
    ) -> None:
        self.array = array
        self.count = math.prod(array.shape)
        self.dtype = numpy_dtype(array.dtype)
        self.item_bytes = self.dtype.itemsize
        self.size_bytes = self.count * self.item_bytes
        self.is_pristine = False  # known to hold its initial content, guard zones included
        self._device = device
        self._image_bytes = self.size_bytes + 2 * GUARD_BYTES
        self.guard = guard_zone(array, seed)
        self._initial = poison(array, seed, may_be_nan=may_be_nan) if content is None else as_bytes(content)
        self._pristine = self._image(self._initial)
        self._memory = device.allocate(self._image_bytes)
        self.sample: Indices | None = None  # the elements that are compared; None for all
        self._sampled = expected
        self._magnitude = magnitude
        self._device_magnitude: Buffer = None
        if magnitude is not None and magnitude.size == self.count:
            self._device_magnitude = device.allocate(magnitude.nbytes)
            device.write(self._device_magnitude, as_bytes(magnitude))
        if expected is not None and expected.size < self.count:
            self.sample, expected = sample_indices(array, seed), None
        elif expected is not None and may_be_nan:  # the host compares, because NaN is wrong to a device
            self.sample, expected = np.arange(self.count), None
        self._expected_bytes = None if expected is None else as_bytes(expected)
        self._expected = None if expected is None else self._image(as_bytes(expected))
        self._wrong = self._wrong_content() if array.role == "out" else None
        self.region: Buffer = device.region(self._memory, GUARD_BYTES, self.size_bytes)
        self.restore()

    def from_offset(self, offset_bytes: int) -> Buffer:
        """The array from an offset on."""
        return self._device.region(self._memory, GUARD_BYTES + offset_bytes, self.size_bytes - offset_bytes)

    def restore(self) -> None:
        """Put back the initial content and the guard zones."""
        if not self.is_pristine:
            self._device.copy(self._memory, self._pristine, self._image_bytes)
            self.is_pristine = True

    def alter(self) -> None:
        """Restore the initial content, then copy its first half over its second: another legal input."""
        self.restore()
        half = self.count // 2
        self._put(self._pristine, self.count - half, half, source_offset=GUARD_BYTES)

    def write_expected_part(self) -> None:
        """Write the expected result except for a quarter in its second half, which stays as a run left it.

        Where only a sample is expected, everything stays so.
        """
        if self.sample is not None:
            return
        first = self.count - self.count // 2
        end = first + self.count // 4 + 1
        for start, stop in ((0, first), (end, self.count)):
            self._put(self._expected, start, max(0, stop - start), GUARD_BYTES + start * self.item_bytes)

    def spoil(self, turn: int) -> None:
        """Write plausible wrong values into a part of an output, another part in every turn."""
        if self._wrong is not None and self.count:
            length = wrong_bytes(self.array) // self.item_bytes
            start = turn * length % self.count
            self._put(self._wrong, start, min(length, self.count - start))

    def against_initial(self) -> ArrayComparison:
        """The comparison with the initial content, guard zones included."""
        count = self._image_bytes // element_bytes(self._word)
        return ArrayComparison(self._memory, self._pristine, self._word, count)

    def against_expected(self, tolerance: Tolerance) -> ArrayComparison:
        """The comparison with the expected result, if there is one, and with whole guard zones."""
        is_compared = self._expected is not None
        expected = self._expected if is_compared else self._pristine
        plain, struct = plain_dtype(self.array.dtype), self.array.dtype if self.dtype.names else ""
        count, ends = (size_bytes // element_bytes(plain) for size_bytes in (self._image_bytes, GUARD_BYTES))
        return ArrayComparison(
            self._memory,
            expected,
            plain,
            count,
            tolerance,
            ends,
            inside=is_compared,
            struct=struct,
            magnitude=self._device_magnitude,
        )

    def sample_difference(self, tolerance: Tolerance) -> Difference | None:
        """Index of the first element of the sample that is not as expected, and how many are not."""
        if self.sample is None:
            return None
        places, found, expected = self.compared(0, self.count)
        wrong = places[unlike(found, expected, tolerance, self.magnitude_at(places))]
        return (int(wrong[0]), len(wrong)) if len(wrong) else None

    def magnitude_at(self, places: Indices) -> NDArray[Any] | None:
        """The magnitudes of elements that are compared; None where none were computed."""
        if self._magnitude is None:
            return None
        return self._magnitude[places if self.sample is None else np.searchsorted(self.sample, places)]

    def guards(self) -> tuple[Bytes, Bytes]:
        """Read the guard zones below and above the array."""
        return self._guards(self._memory)

    def is_trustworthy(self) -> bool:
        """Whether the pristine and expected images are intact; a stray write may have hit them."""
        return self._holds(self._pristine, self._initial) and (
            self._expected_bytes is None or self._holds(self._expected, self._expected_bytes)
        )

    def index_of(self, change: Difference, comparison: ArrayComparison) -> int:
        """Index in the array of the first element that a comparison found different."""
        return (change[0] * element_bytes(comparison.dtype) - GUARD_BYTES) // self.item_bytes

    def values(self, first: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Read elements from `first` on: those in memory, and the expected or else the initial ones."""
        offset_bytes, size_bytes = GUARD_BYTES + first * self.item_bytes, count * self.item_bytes
        wanted = self._pristine if self._expected is None else self._expected
        pages = [self._page(buffer, offset_bytes, size_bytes) for buffer in (self._memory, wanted)]
        found, expected = (page[skip:].view(self.dtype) for skip, page in pages)
        return found, expected

    def compared(self, first: int, count: int) -> tuple[Indices, NDArray[Any], NDArray[Any]]:
        """Of `count` elements from `first` on, those that are compared: their indices, found and expected."""
        if self.sample is None:
            return np.arange(first, first + count), *self.values(first, count)
        assert self._sampled is not None
        inside = (self.sample >= first) & (self.sample < first + count)
        found = self._device.gather(self.region, self.sample, self.item_bytes)
        return self.sample[inside], found.view(self.dtype)[inside], self._sampled[inside]

    def are_unwritten(self, found: NDArray[Any]) -> bool:
        """Whether elements of an output still hold what it was poisoned with."""
        return self.array.role == "out" and bool(np.all(as_bytes(found) == self._initial[0]))

    def content(self) -> NDArray[Any]:
        """The array as it is now."""
        return self._device.read(self.region, self.size_bytes).view(self.dtype).reshape(self.array.shape)

    @property
    def _word(self) -> str:
        return "uint32" if self.size_bytes % 4 == 0 else "uint8"

    def _guards(self, buffer: Buffer) -> tuple[Bytes, Bytes]:
        below = self._device.read(buffer, GUARD_BYTES)
        content, tail = self._page(buffer, GUARD_BYTES + self.size_bytes, GUARD_BYTES)
        return below, tail[content:]

    def _holds(self, image: Buffer, content: Bytes) -> bool:
        """Whether an image equals this content of the host between whole guard zones."""
        for start in range(0, content.size, _READ_BYTES):
            part = content[start : start + _READ_BYTES]
            region = self._device.region(image, GUARD_BYTES + start, part.size)
            if not np.array_equal(self._device.read(region, part.size), part):
                return False
        return all(np.array_equal(zone, self.guard) for zone in self._guards(image))

    def _page(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> tuple[int, Bytes]:
        """Read from the start of the page that holds an offset; also return how many bytes precede it."""
        skip = offset_bytes % PAGE_BYTES
        page = self._device.region(buffer, offset_bytes - skip, skip + size_bytes)
        return skip, self._device.read(page, skip + size_bytes)

    def _put(self, source: Buffer, start: int, count: int, source_offset: int = 0) -> None:
        """Copy `count` elements into the array, beginning with element `start`."""
        if count:
            self.is_pristine = False
            at = GUARD_BYTES + start * self.item_bytes
            self._device.copy(self._memory, source, count * self.item_bytes, (at, source_offset))

    def _image(self, content: Bytes) -> Buffer:
        """Allocate device memory that holds the content between two guard zones."""
        image = self._device.allocate(self._image_bytes)
        skip = self.size_bytes % PAGE_BYTES  # regions start at whole pages
        for start, zone in (
            (0, self.guard),
            (GUARD_BYTES + self.size_bytes - skip, np.concatenate([np.zeros(skip, np.uint8), self.guard])),
        ):
            self._device.write(self._device.region(image, start, zone.size), zone)
        self._device.write(self._device.region(image, GUARD_BYTES, self.size_bytes), content)
        return image

    def _wrong_content(self) -> Buffer | None:
        """Plausible values, each of them wrong in its place; None without an expected result."""
        if self._sampled is None:
            return None
        plain = numpy_dtype(plain_dtype(self.array.dtype))
        values = np.resize(self._sampled, wrong_bytes(self.array) // self.item_bytes).view(plain)
        if is_floating(plain):
            with np.errstate(over="ignore", invalid="ignore"):
                values = values + np.maximum(np.abs(values), 1).astype(values.dtype)
        else:
            values = values ^ 1
        buffer = self._device.allocate(values.nbytes)
        self._device.write(buffer, as_bytes(values))
        return buffer


def wrong_bytes(array: Array) -> int:
    """Size in bytes of the wrong values that `GuardedBuffer.spoil` writes into an output."""
    item_bytes = numpy_dtype(array.dtype).itemsize
    return item_bytes * min(math.prod(array.shape), WRONG_BYTES // item_bytes)


def device_bytes(problem: ProblemInstance) -> int:
    """Lower bound of the device memory that a problem's arrays take, guard zones included.

    Each array has one image for runs and a pristine one; an output also has its expected result and a few
    wrong values.
    """
    total = 0
    for array in problem.arrays:
        if array.name in problem.used or array.role == "out":
            image_bytes = math.prod(array.shape) * numpy_dtype(array.dtype).itemsize + 2 * GUARD_BYTES
            total += 3 * image_bytes + wrong_bytes(array) if array.role == "out" else 2 * image_bytes
    return total


class ProblemBuffers:
    """The arrays of one problem in device memory."""

    def __init__(self, device: Device, data: ProblemData) -> None:
        self._device = device
        self._seed = data.problem.seed
        self._inputs = data.inputs
        self._expected = data.expected
        self._magnitudes = data.magnitudes
        self._may_be_nan = data.may_be_nan
        self._guarded: dict[Array, GuardedBuffer] = {}  # in the order of their latest use
        # energy of restoring these arrays at these clocks
        self.restore_j: dict[tuple[tuple[Array, ...], Settings], float | None] = {}

    def guarded_buffers(self, problem: ProblemInstance) -> tuple[GuardedBuffer, ...]:
        """The arrays that the launches use, and every output that the reference returns."""
        used = problem.used | set(self._expected)
        return tuple(self._guarded_buffer(array) for array in problem.arrays if array.name in used)

    def run(
        self,
        program: Program,
        problem: ProblemInstance,
        repeats: int = 1,
        *,
        graph: bool | None = None,
        is_second: bool = False,
    ) -> float:
        """Run the launch plan on the arrays as they are; return its time in ms. Raises as `Device.run`."""
        arguments = self.arguments(program, problem)
        time_ms = self._device.run(program, problem.launches, arguments, repeats, graph, is_second)
        if not math.isfinite(time_ms):
            raise ImpossibleTime(f"the device reports a run time of {time_ms} ms")
        return time_ms

    def arguments(self, program: Program, problem: ProblemInstance) -> Arguments:
        """The arguments of a run that is about to change the arrays; variables of the program are set."""
        guarded_buffers = self.guarded_buffers(problem)
        for guarded in guarded_buffers:
            guarded.is_pristine = False
        arguments: dict[str, Buffer | np.generic | LocalMemory] = {
            guarded.array.name: guarded.region for guarded in guarded_buffers
        }
        by_name = {guarded.array.name: guarded for guarded in guarded_buffers}
        for view in problem.views:
            if view.of in by_name:
                arguments[view.name] = by_name[view.of].from_offset(view.offset_bytes)
        for scalar in problem.scalars:
            arguments[scalar.name] = scalar_of(scalar.dtype, scalar.value)
        for local in problem.local:
            arguments[local.name] = LocalMemory(local.size_bytes)
        for guarded in guarded_buffers:
            if guarded.array.symbol:
                self._device.set_variable(program, guarded.array.symbol, guarded.region, guarded.size_bytes)
        return arguments

    def check(self, problem: ProblemInstance, guarded_buffers: Sequence[GuardedBuffer]) -> bool:
        """Whether inputs are unchanged, outputs right and guard zones whole."""
        comparisons = [
            guarded.against_initial()
            if guarded.array.role == "in"
            else guarded.against_expected(problem.tolerance_of(guarded.array.name))
            for guarded in guarded_buffers
        ]
        differences = self._device.compare(comparisons)
        for guarded, difference in zip(guarded_buffers, differences, strict=True):
            guarded.is_pristine = guarded.array.role == "in" and difference is None
        return not any(differences) and not any(
            guarded.sample_difference(problem.tolerance_of(guarded.array.name)) for guarded in guarded_buffers
        )

    def wrong(self, guarded: GuardedBuffer, problem: ProblemInstance) -> Difference | None:
        """Index of the first element that is not as a correct run leaves it, and how many are not."""
        is_input = guarded.array.role == "in"
        tolerance = problem.tolerance_of(guarded.array.name)
        comparison = guarded.against_initial() if is_input else guarded.against_expected(tolerance)
        whole = self.difference(comparison)
        if whole is not None:
            return guarded.index_of(whole, comparison), whole[1]
        return guarded.sample_difference(tolerance)

    def difference(self, comparison: ArrayComparison) -> Difference | None:
        """Carry out one comparison; None if the arrays agree."""
        return self._device.compare([comparison])[0]

    def _guarded_buffer(self, array: Array) -> GuardedBuffer:
        guarded = self._guarded.pop(array, None)
        if guarded is None:
            self._make_room(array)
            content, expected = self._inputs.get(array.name), self._expected.get(array.name)
            magnitude = self._magnitudes.get(array.name)
            guarded = GuardedBuffer(
                self._device,
                array,
                content,
                expected,
                self._seed,
                magnitude,
                may_be_nan=self._may_be_nan,
            )
        self._guarded[array] = guarded
        return guarded

    def _make_room(self, array: Array) -> None:
        """Free arrays of the same name: large ones, because two may not fit, and all but a few small ones."""
        others = [other for other in self._guarded if other.name == array.name]
        limit_bytes = SMALL_SHARE * self._device.info.memory_bytes
        large = [other for other in others if self._guarded[other].size_bytes > limit_bytes]
        for other in large or others[: 1 - MAX_SMALL]:
            del self._guarded[other]
            self._device.forget()
