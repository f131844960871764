"""One array in device memory between guard zones, with images of its pristine content and expected result.

It stays allocated from one configuration to the next. Its pristine image includes guard zones and poison, so
one copy restores it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.c_types import element_bytes
from autotune.devices.array_compare import ArrayComparison, Difference, Tolerance, unlike
from autotune.devices.base import Buffer, Bytes, Device, Indices
from autotune.devices.element_types import is_floating, numpy_dtype, plain_dtype
from autotune.errors import DeviceError
from autotune.evaluation.poison import GUARD_BYTES, as_bytes, guard_zone, poison
from autotune.problem.inputs import WorkloadData
from autotune.problem.sampling import sample_indices
from autotune.problem.workload import Array

PAGE_BYTES = 4096  # regions of device memory start at multiples of this
_READ_BYTES = 2**22  # read at once when the host compares an image
PINNED_BYTES = 2**26  # larger host memory is pinned while it is copied: three times as fast
PLACES = 32  # elements of an array that are made wrong or replaced, a few at a time
AT_ONCE = 4


class GuardedMemory:
    """Device memory for the bytes of an array, between two guard zones."""

    def __init__(self, device: Device, size_bytes: int) -> None:
        self._device = device
        self._size_bytes = size_bytes
        self.whole_bytes = size_bytes + 2 * GUARD_BYTES
        self.whole: Buffer = device.allocate(self.whole_bytes)

    def write(self, content: Bytes, guard: Bytes) -> None:
        """Write the guard zones and the content between them."""
        skip = self._size_bytes % PAGE_BYTES  # regions start at whole pages
        above = np.concatenate([np.zeros(skip, np.uint8), guard])
        for start, part in (
            (0, guard),
            (GUARD_BYTES + self._size_bytes - skip, above),
            (GUARD_BYTES, content),
        ):
            with _pinned(self._device, part):
                self._device.write(self._device.region(self.whole, start, part.size), part)

    def from_offset(self, offset_bytes: int) -> Buffer:
        """The array, from an offset on."""
        return self._device.region(self.whole, GUARD_BYTES + offset_bytes, self._size_bytes - offset_bytes)

    def read(self, offset_bytes: int, size_bytes: int) -> Bytes:
        """Read a part of the array; beyond its end is the guard zone above it."""
        skip = offset_bytes % PAGE_BYTES
        page = self._device.region(self.whole, GUARD_BYTES + offset_bytes - skip, skip + size_bytes)
        return self._device.read(page, skip + size_bytes)[skip:]

    def guards(self) -> tuple[Bytes, Bytes]:
        """Read the guard zones below and above the array."""
        return self._device.read(self.whole, GUARD_BYTES), self.read(self._size_bytes, GUARD_BYTES)


class GuardedImage(GuardedMemory):
    """The content that an array should have, on the device for comparisons there, and on the host."""

    def __init__(self, device: Device, content: Bytes, guard: Bytes) -> None:
        super().__init__(device, content.size)
        self._guard = guard
        self.hold(content)

    def hold(self, content: Bytes) -> None:
        """Take this content, between whole guard zones."""
        self.content = content
        self.write(content, self._guard)

    def is_intact(self) -> bool:
        """True if the device's image equals the host's; a stray write may have hit it."""
        for start in range(0, self.content.size, _READ_BYTES):
            part = self.content[start : start + _READ_BYTES]
            if not np.array_equal(self.read(start, part.size), part):
                return False
        return all(np.array_equal(zone, self._guard) for zone in self.guards())


class GuardedBuffer:
    """One array of a workload in device memory, with images of its pristine content and expected result.

    All three include the guard zones on either side: one comparison checks everything. If only a sample of
    the elements is expected, the host compares the sample, and the device the guard zones.
    """

    def __init__(self, device: Device, array: Array, data: WorkloadData) -> None:
        self.array = array
        self.count, self.size_bytes = array.count, array.size_bytes
        self.dtype = numpy_dtype(array.dtype)
        self.item_bytes = self.dtype.itemsize
        self.is_pristine = False  # True if it is known to hold its initial content, guard zones included
        self._device = device
        draw = np.random.default_rng([data.problem.seed, self.count])
        self._places = draw.choice(self.count, min(self.count, PLACES), replace=False)  # in no order
        seed, content = data.problem.seed, data.inputs.get(array.name)
        expected = data.expected.get(array.name)
        self.guard = guard_zone(array, seed)
        initial = poison(array, seed, may_be_nan=data.may_be_nan) if content is None else as_bytes(content)
        self._pristine = GuardedImage(device, initial, self.guard)
        self._memory = GuardedMemory(device, self.size_bytes)
        self.from_offset = self._memory.from_offset
        self._region = self.from_offset(0)
        self._expected_values = expected  # one per element, or per element of the sample
        self._magnitudes = data.magnitudes.get(array.name)  # as many
        self._device_magnitudes: Buffer = None
        if self._magnitudes is not None and self._magnitudes.size == self.count:
            self._device_magnitudes = device.allocate(self._magnitudes.nbytes)
            device.write(self._device_magnitudes, as_bytes(self._magnitudes))
        self.sample: Indices | None = None  # indices that the host compares; None: the device compares all
        self._expected: GuardedImage | None = None
        if expected is not None:
            if expected.size < self.count:
                self.sample = sample_indices(array, seed)
            elif data.may_be_nan:  # a device would call it wrong
                self.sample = np.arange(self.count)
            else:
                self._expected = GuardedImage(device, as_bytes(expected), self.guard)
        self._wrong = self._wrong_content() if array.role == "out" else None
        self.restore()

    def restore(self) -> None:
        """Put back the initial content and the guard zones."""
        if not self.is_pristine:
            self._device.copy(self._memory.whole, self._pristine.whole, self._memory.whole_bytes)
            self.is_pristine = True

    @property
    def begins_with_zeros(self) -> bool:
        """True for a compared output whose poison is 0: elements that nothing writes may look right."""
        is_compared = self._expected_values is not None
        return self.array.role == "out" and is_compared and not self._pristine.content[:1].any()

    def invert_poison(self) -> None:
        """Make runs begin with other bytes in an output; a second call restores the first ones."""
        poison = ~self._pristine.content[:1]
        self._pristine.hold(np.broadcast_to(poison, self.size_bytes))
        self.is_pristine = False

    def alter(self, *, few: bool) -> None:
        """Restore the initial content and change it to other legal input: its second half, or few elements.

        The first half is copied over the second, or a few elements over a few others.
        """
        self.restore()
        if few:
            self.alter_few()
        else:
            half = self.count // 2
            self._put(self._pristine.whole, self.count - half, half, source_offset=GUARD_BYTES)

    def alter_few(self, *, back: bool = False) -> None:
        """Copy a few elements over a few others, or bring these back.

        Arrays of one length are altered in the same places.
        """
        for target, other in zip(self._places[:AT_ONCE], self._places[::-1], strict=False):
            source = int(target if back else other)
            self._put(self._pristine.whole, int(target), 1, GUARD_BYTES + source * self.item_bytes)

    def write_nearly_expected(self) -> None:
        """Write the expected result, except for a few elements; nothing if only a sample is expected."""
        if self._expected is not None:
            self._put(self._expected.whole, 0, self.count, GUARD_BYTES)
            self.spoil(0)

    def spoil(self, turn: int) -> None:
        """Write plausible but wrong values to a few scattered elements of an output, others in each turn."""
        if self._wrong is not None:
            for number in range(turn * AT_ONCE, turn * AT_ONCE + min(AT_ONCE, len(self._places))):
                place = number % len(self._places)
                self._put(self._wrong, int(self._places[place]), 1, place * self.item_bytes)

    def against_initial(self) -> ArrayComparison:
        """The comparison with the initial content, guard zones included."""
        word = "uint32" if self.size_bytes % 4 == 0 else "uint8"
        count = self._memory.whole_bytes // element_bytes(word)
        return ArrayComparison(self._memory.whole, self._pristine.whole, word, count)

    def against_correct(self, tolerance: Tolerance) -> ArrayComparison:
        """The comparison with the array after a correct run, guard zones included.

        That is the initial content of an input, and the expected result of another array, if there is one.
        """
        if self.array.role == "in":
            return self.against_initial()
        plain, struct = plain_dtype(self.array.dtype), self.array.dtype if self.dtype.names else ""
        return ArrayComparison(
            self._memory.whole,
            (self._expected or self._pristine).whole,
            plain,
            self._memory.whole_bytes // element_bytes(plain),
            tolerance,
            GUARD_BYTES // element_bytes(plain),
            inside=self._expected is not None,
            struct=struct,
            magnitude=self._device_magnitudes,
        )

    def sample_difference(self, tolerance: Tolerance) -> Difference | None:
        """Index of the first wrong element of the sample, and their number."""
        if self.sample is None:
            return None
        places, actual, expected = self.compared(0, self.count)
        wrong = places[unlike(actual, expected, tolerance, self.magnitude_at(places))]
        return (int(wrong[0]), len(wrong)) if len(wrong) else None

    def magnitude_at(self, places: Indices) -> NDArray[Any] | None:
        """The magnitudes of compared elements; None if none were computed."""
        if self._magnitudes is None:
            return None
        return self._magnitudes[places if self.sample is None else np.searchsorted(self.sample, places)]

    def guards(self) -> tuple[Bytes, Bytes]:
        """Read the guard zones below and above the array."""
        return self._memory.guards()

    def is_trustworthy(self) -> bool:
        """True if the pristine and expected images are intact; a stray write may have hit them."""
        return all(image is None or image.is_intact() for image in (self._pristine, self._expected))

    def index_of(self, change: Difference, comparison: ArrayComparison) -> int:
        """Array index of the first element that a comparison found different."""
        return (change[0] * element_bytes(comparison.dtype) - GUARD_BYTES) // self.item_bytes

    def values(self, start: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Read elements from `start` on: as they are in memory, and as expected, or else as initialised."""
        offset_bytes, size_bytes = start * self.item_bytes, count * self.item_bytes
        memories = (self._memory, self._expected or self._pristine)
        actual, expected = (memory.read(offset_bytes, size_bytes).view(self.dtype) for memory in memories)
        return actual, expected

    def compared(self, start: int, count: int) -> tuple[Indices, NDArray[Any], NDArray[Any]]:
        """The compared ones of `count` elements from `start` on: indices, found values, expected values."""
        if self.sample is None:
            return np.arange(start, start + count), *self.values(start, count)
        assert self._expected_values is not None
        inside = (self.sample >= start) & (self.sample < start + count)
        gathered = self._device.gather(self._region, self.sample, self.item_bytes)
        return self.sample[inside], gathered.view(self.dtype)[inside], self._expected_values[inside]

    def are_unwritten(self, elements: NDArray[Any]) -> bool:
        """True if elements of an output still hold the poison."""
        return self.array.role == "out" and bool(np.all(as_bytes(elements) == self._pristine.content[0]))

    def content(self) -> NDArray[Any]:
        """The array as it is now."""
        return self._device.read(self._region, self.size_bytes).view(self.dtype).reshape(self.array.shape)

    def _put(self, source: Buffer, start: int, count: int, source_offset: int = 0) -> None:
        """Copy `count` elements into the array, beginning with element `start`."""
        if count:
            self.is_pristine = False
            offsets = GUARD_BYTES + start * self.item_bytes, source_offset
            self._device.copy(self._memory.whole, source, count * self.item_bytes, offsets)

    def _wrong_content(self) -> Buffer | None:
        """Plausible values, each wrong in one of the places; None without an expected result."""
        if self._expected_values is None or not self.count:
            return None
        plain = numpy_dtype(plain_dtype(self.array.dtype))
        indices = np.minimum(self._places, self._expected_values.size - 1)
        values = np.ascontiguousarray(self._expected_values[indices]).view(plain)
        if is_floating(plain):
            with np.errstate(over="ignore", invalid="ignore"):
                values = values + np.maximum(np.abs(values), 1).astype(values.dtype)
        else:
            values = values ^ 1
        buffer = self._device.allocate(values.nbytes)
        self._device.write(buffer, as_bytes(values))
        return buffer


@contextmanager
def _pinned(device: Device, part: Bytes) -> Iterator[None]:
    """Pin large memory while it is copied, if the driver can; it refuses memory-mapped files.

    A repeated byte takes no host memory; the device sets it.
    """
    with ExitStack() as opened:
        if part.size >= PINNED_BYTES and part.strides == (1,):
            with suppress(DeviceError):  # if the device is really lost, a copy says so
                opened.enter_context(device.pinned(part))
        yield
