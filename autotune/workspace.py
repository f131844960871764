"""Memory of one problem on one device: inputs, guard zones around every array, and the expected results.

Arrays stay allocated from one configuration to the next. Every array has a pristine image on the device,
guard zones and poison included, so one device copy puts it back whatever a kernel did to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.devices.base import Buffer, Bytes, Device, Program
from autotune.devices.comparison import Comparison, Difference
from autotune.jobs import Array, Case
from autotune.problem import ProblemData

GUARD_BYTES = 16_384  # a whole block of 1024 threads writing 16 bytes each past the end is still caught
GUARD_VALUE = 0xC5
PAGE_BYTES = 4096  # regions of device memory start at multiples of this
_READ_BYTES = 2**22  # what is brought to the host at once to compare an image
# What an output holds before a run, by the problem's seed, as the byte that is repeated. A kernel that leaves
# out the initial value of a maximum, a minimum or a sum is right by luck under some of them, not under all.
POISON_FLOAT = (0xFF, 0x7B, 0xFB)  # NaN, huge and huge negative: finite in every precision, half included
POISON_INTEGER = (0xA5, 0x5A, 0x00)  # negative where there is a sign, positive, and no more than any unsigned


class Slot:
    """One array in device memory between two guard zones, with its pristine image and its expected result.

    All three are images: the array with its guard zones, so that one comparison sees everything.
    """

    def __init__(
        self,
        device: Device,
        array: Array,
        content: NDArray[Any] | None,
        expected: NDArray[Any] | None,
        seed: int,
    ) -> None:
        self.array = array
        self.count = math.prod(array.shape)
        self.item_bytes = np.dtype(array.dtype).itemsize
        self.size_bytes = self.count * self.item_bytes
        self.guard_items = GUARD_BYTES // self.item_bytes
        self.is_pristine = False  # known to hold its initial content, guard zones included
        self._device = device
        self._image_bytes = self.size_bytes + 2 * GUARD_BYTES
        self._initial = self._poison(seed) if content is None else _as_bytes(content)
        self._pristine = self._image(self._initial)
        self._memory = device.allocate(self._image_bytes)
        self._right = None if expected is None else _as_bytes(expected)
        self._expected = None if self._right is None else self._image(self._right)
        self.region: Buffer = device.region(self._memory, GUARD_BYTES, self.size_bytes)
        self.restore()

    def restore(self) -> None:
        """Put back the initial content and the guard zones."""
        if not self.is_pristine:
            self._device.copy(self._memory, self._pristine, self._image_bytes)
            self.is_pristine = True

    def against_initial(self) -> Comparison:
        """What tells whether anything, guard zones included, differs from the initial content."""
        count = self._image_bytes // np.dtype(self._word).itemsize
        return Comparison(self._memory, self._pristine, self._word, count)

    def against_expected(self, rtol: float, atol: float) -> Comparison:
        """What tells whether the content is right, where a right one is known, and the guard zones whole."""
        known = self._expected is not None
        expected = self._expected if known else self._pristine
        count, ends = self.count + 2 * self.guard_items, self.guard_items
        return Comparison(self._memory, expected, self.array.dtype, count, rtol, atol, ends, inside=known)

    def guards(self) -> tuple[Bytes, Bytes]:
        """The guard zones below and above the array, as they are now."""
        return self._guards(self._memory)

    def is_trustworthy(self) -> bool:
        """Whether the images are what they were made as: a write far from any array may have hit them."""
        return self._holds(self._pristine, self._initial) and (
            self._right is None or self._holds(self._expected, self._right)
        )

    def index_of(self, change: Difference) -> int:
        """Index in the array of the first element that `against_initial` found changed."""
        return change[0] * np.dtype(self._word).itemsize // self.item_bytes - self.guard_items

    def values_at(self, index: int) -> tuple[Any, Any]:
        """What an element is, and what it is expected to be."""
        offset_bytes = GUARD_BYTES + index * self.item_bytes
        pages = [
            self._page(buffer, offset_bytes, self.item_bytes) for buffer in (self._memory, self._expected)
        ]
        found, wanted = (page[skip:].view(self.array.dtype)[0] for skip, page in pages)
        return found, wanted

    @property
    def _word(self) -> str:
        return "uint32" if self.size_bytes % 4 == 0 else "uint8"

    def _guards(self, buffer: Buffer) -> tuple[Bytes, Bytes]:
        below = self._device.read(buffer, GUARD_BYTES)
        content, tail = self._page(buffer, GUARD_BYTES + self.size_bytes, GUARD_BYTES)
        return below, tail[content:]

    def _holds(self, image: Buffer, content: Bytes) -> bool:
        """Whether an image has this content between whole guard zones, by the host's own copy."""
        for start in range(0, content.size, _READ_BYTES):
            part = content[start : start + _READ_BYTES]
            region = self._device.region(image, GUARD_BYTES + start, part.size)
            if not np.array_equal(self._device.read(region, part.size), part):
                return False
        return all((zone == GUARD_VALUE).all() for zone in self._guards(image))

    def _page(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> tuple[int, Bytes]:
        """Read from the page that an offset lies in; the first number is how many bytes precede it."""
        skip = offset_bytes % PAGE_BYTES
        page = self._device.region(buffer, offset_bytes - skip, skip + size_bytes)
        return skip, self._device.read(page, skip + size_bytes)

    def _image(self, content: Bytes) -> Buffer:
        """Device memory with the content between two guard zones."""
        image = self._device.allocate(self._image_bytes)
        tail = self._image_bytes - GUARD_BYTES - self.size_bytes % PAGE_BYTES  # regions start at whole pages
        for start in (0, tail):
            size_bytes = min(self._image_bytes - start, 2 * GUARD_BYTES)
            guard = np.full(size_bytes, GUARD_VALUE, np.uint8)
            self._device.write(self._device.region(image, start, size_bytes), guard)
        self._device.write(self._device.region(image, GUARD_BYTES, self.size_bytes), content)
        return image

    def _poison(self, seed: int) -> Bytes:
        poisons = POISON_FLOAT if np.dtype(self.array.dtype).kind == "f" else POISON_INTEGER
        return np.broadcast_to(np.uint8(poisons[seed % len(poisons)]), self.size_bytes)  # takes no memory


def _as_bytes(content: NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(content).reshape(-1).view(np.uint8)


def device_bytes(case: Case) -> int:
    """What the arrays of a case take of a device's memory at least, guard zones included.

    Each has an image for the runs and a pristine one, an output one of what is expected besides.
    """
    used = {name for launch in case.launches for name in launch.arguments}
    total = 0
    for array in case.arrays:
        if array.name in used or array.role == "out":
            image_bytes = math.prod(array.shape) * np.dtype(array.dtype).itemsize + 2 * GUARD_BYTES
            total += image_bytes * (3 if array.role == "out" else 2)
    return total


class Workspace:
    """The arrays of one problem in device memory."""

    def __init__(self, device: Device, data: ProblemData) -> None:
        self._device = device
        self._seed = data.problem.seed
        self._inputs = data.inputs
        self._expected = data.expected
        self._slots: dict[str, Slot] = {}

    def slots(self, case: Case) -> tuple[Slot, ...]:
        """The arrays a case's launches touch, and every output that the reference knows."""
        used = {name for launch in case.launches for name in launch.arguments} | set(self._expected)
        return tuple(self._slot(array) for array in case.arrays if array.name in used)

    def run(self, program: Program, case: Case, repeats: int = 1) -> float:
        """Run a case's plan over its arrays as they are; device time in ms. Raises what the device raises."""
        slots = self.slots(case)
        for slot in slots:
            slot.is_pristine = False
        arguments: dict[str, Buffer | np.generic] = {slot.array.name: slot.region for slot in slots}
        for scalar in case.scalars:
            arguments[scalar.name] = np.dtype(scalar.dtype).type(scalar.value)
        return self._device.run(program, case.launches, arguments, repeats)

    def check(self, case: Case, slots: Sequence[Slot]) -> bool:
        """Whether memory is what a right run leaves behind: inputs unchanged, outputs right, guards whole."""
        comparisons = [
            slot.against_initial() if slot.array.role == "in" else slot.against_expected(case.rtol, case.atol)
            for slot in slots
        ]
        differences = self._device.compare(comparisons)
        for slot, difference in zip(slots, differences, strict=True):
            slot.is_pristine = slot.array.role == "in" and difference is None
        return not any(differences)

    def difference(self, comparison: Comparison) -> Difference | None:
        """The outcome of one comparison."""
        return self._device.compare([comparison])[0]

    def _slot(self, array: Array) -> Slot:
        if array.name in self._slots and self._slots[array.name].array != array:
            del self._slots[array.name]  # first, for two of them may not fit in the device's memory
            self._device.forget()
        if array.name not in self._slots:
            content, expected = self._inputs.get(array.name), self._expected.get(array.name)
            self._slots[array.name] = Slot(self._device, array, content, expected, self._seed)
        return self._slots[array.name]
