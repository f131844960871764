"""Memory of one problem on one device: inputs, guard zones around every array, and the expected results.

Arrays stay allocated from one configuration to the next. Every array has a pristine image on the device,
guard zones and poison included, so one device copy puts it back whatever a kernel did to it.
"""

from __future__ import annotations

import importlib.util
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.devices.base import Buffer, Bytes, Device
from autotune.devices.comparison import Difference
from autotune.errors import SetupError
from autotune.jobs import Array, Case
from autotune.model import Value
from autotune.trials import Problem

GUARD_BYTES = 16_384  # a whole block of 1024 threads writing 16 bytes each past the end is still caught
GUARD_VALUE = 0xC5
PAGE_BYTES = 4096  # regions of device memory start at multiples of this
# What an output holds before a run, by the problem's seed, as the byte that is repeated. A kernel that leaves
# out the initial value of a maximum, a minimum or a sum is right by luck under some of them, not under all.
POISON_FLOAT = (0xFF, 0x7F, 0xFB)  # NaN, 3.4e38 and -2.6e36 in single precision
POISON_INTEGER = (0xA5, 0x5A)  # negative, positive


class Slot:
    """One array in device memory between two guard zones, with its pristine image and its expected result."""

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
        self.size_bytes = self.count * np.dtype(array.dtype).itemsize
        self._device = device
        image = np.full(self.size_bytes + 2 * GUARD_BYTES, GUARD_VALUE, np.uint8)
        end = GUARD_BYTES + self.size_bytes
        image[GUARD_BYTES:end] = self._poison(seed) if content is None else content.reshape(-1).view(np.uint8)
        self._image_bytes = image.size
        self._memory = self._upload(image)
        self._pristine = self._upload(image)
        self.region: Buffer = device.region(self._memory, GUARD_BYTES, self.size_bytes)
        self._initial: Buffer = device.region(self._pristine, GUARD_BYTES, self.size_bytes)
        self._expected = None if expected is None else self._upload(expected.view(np.uint8))

    def restore(self) -> None:
        """Put back the initial content and the guard zones."""
        self._device.copy(self._memory, self._pristine, self._image_bytes)

    def guards(self) -> tuple[Bytes, Bytes]:
        """The guard zones below and above the array, as they are now."""
        below = self._device.read(self._memory, GUARD_BYTES)
        content, tail = self._page(self._memory, GUARD_BYTES + self.size_bytes, GUARD_BYTES)
        return below, tail[content:]

    def first_change(self) -> int | None:
        """Index of the first element that differs from the initial content."""
        word = "uint32" if self.size_bytes % 4 == 0 else "uint8"
        words = self.size_bytes // np.dtype(word).itemsize
        difference = self._device.compare(self.region, self._initial, word, words)
        return None if difference is None else difference[0] * self.size_bytes // words // self._item_bytes

    def difference(self, rtol: float, atol: float) -> Difference | None:
        """First element that is not as expected, and how many are not."""
        if self._expected is None:
            return None
        return self._device.compare(
            self.region, self._expected, self.array.dtype, self.count, rtol=rtol, atol=atol
        )

    def values_at(self, index: int) -> tuple[Any, Any]:
        """What an element is, and what it is expected to be."""
        places = ((self._memory, GUARD_BYTES), (self._expected, 0))
        pages = [
            self._page(buffer, start + index * self._item_bytes, self._item_bytes) for buffer, start in places
        ]
        found, wanted = (page[skip:].view(self.array.dtype)[0] for skip, page in pages)
        return found, wanted

    @property
    def _item_bytes(self) -> int:
        return np.dtype(self.array.dtype).itemsize

    def _page(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> tuple[int, Bytes]:
        """Read from the page that an offset lies in; the first number is how many bytes precede it."""
        skip = offset_bytes % PAGE_BYTES
        page = self._device.region(buffer, offset_bytes - skip, skip + size_bytes)
        return skip, self._device.read(page, skip + size_bytes)

    def _upload(self, data: Bytes) -> Buffer:
        buffer = self._device.allocate(data.size)
        self._device.write(buffer, data)
        return buffer

    def _poison(self, seed: int) -> Bytes:
        poisons = POISON_FLOAT if np.dtype(self.array.dtype).kind == "f" else POISON_INTEGER
        return np.full(self.size_bytes, poisons[seed % len(poisons)], np.uint8)


class Workspace:
    """The arrays of one problem, its inputs drawn from the problem's seed, its reference computed once."""

    def __init__(self, device: Device, problem: Problem, arrays: tuple[Array, ...], reference: Path) -> None:
        self._device = device
        self._seed = problem.seed
        self._inputs = _inputs(problem, arrays)
        self._expected = _expected(reference, self._inputs, problem, arrays)
        self._slots: dict[str, Slot] = {}

    def slots(self, case: Case) -> tuple[Slot, ...]:
        """The arrays a case's launches touch, and every output that the reference knows."""
        used = {name for launch in case.launches for name in launch.arguments} | set(self._expected)
        return tuple(self._slot(array) for array in case.arrays if array.name in used)

    def arguments(self, case: Case) -> Mapping[str, Buffer | np.generic]:
        """What the device is handed: regions of arrays and typed scalars."""
        values: dict[str, Buffer | np.generic] = {slot.array.name: slot.region for slot in self.slots(case)}
        return values | {scalar.name: np.dtype(scalar.dtype).type(scalar.value) for scalar in case.scalars}

    def _slot(self, array: Array) -> Slot:
        slot = self._slots.get(array.name)
        if slot is None or slot.array != array:
            content, expected = self._inputs.get(array.name), self._expected.get(array.name)
            slot = Slot(self._device, array, content, expected, self._seed)
            self._slots[array.name] = slot
        return slot


def _inputs(problem: Problem, arrays: tuple[Array, ...]) -> dict[str, NDArray[Any]]:
    inputs: dict[str, NDArray[Any]] = {}
    for array in arrays:
        if array.fill is not None:
            inputs[array.name] = _fill(array, array.fill, problem.seed, inputs)
            inputs[array.name].flags.writeable = False
    return inputs


def _fill(
    array: Array, fill: tuple[Value, ...], seed: int, earlier: Mapping[str, NDArray[Any]]
) -> NDArray[Any]:
    kind, *numbers = fill
    # by name, so that an array keeps its content when another one is added before it
    generator = np.random.default_rng([seed, zlib.crc32(array.name.encode())])
    dtype, count = np.dtype(array.dtype), math.prod(array.shape)
    match kind, numbers:
        case "copy", [str(name)]:
            return earlier[name].astype(dtype, copy=True)
        case "constant", [value]:
            return np.full(array.shape, value, dtype)
        case "sequence", [int() | float() as start, int() | float() as step]:
            return (start + step * np.arange(count)).astype(dtype).reshape(array.shape)
        case "integers", [int() as low, int() as high]:
            exact = dtype if dtype.kind in "iu" else np.dtype(np.int32)
            return generator.integers(low, high, array.shape, exact, endpoint=True).astype(dtype, copy=False)
        case "uniform", [int() | float() as low, int() | float() as high]:
            draws = generator.random(count, np.float64 if dtype.itemsize == 8 else np.float32)
            return (low + (high - low) * draws).astype(dtype).reshape(array.shape)
        case "normal", [int() | float() as mean, int() | float() as deviation]:
            return (mean + deviation * generator.standard_normal(count)).astype(dtype).reshape(array.shape)
    raise SetupError(f"argument {array.name}: no such fill: {fill}")


def _expected(
    path: Path, inputs: Mapping[str, NDArray[Any]], problem: Problem, arrays: tuple[Array, ...]
) -> dict[str, NDArray[Any]]:
    """Run the user's reference; whatever it raises passes through and is reported as the setup's fault."""
    specification = importlib.util.spec_from_file_location("autotune_reference", path)
    if specification is None or specification.loader is None:
        raise SetupError("not a Python file")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    results = module.reference(dict(inputs), dict(problem.sizes))
    known = {array.name: array for array in arrays if array.role in ("out", "inout")}
    if unknown := sorted(set(results) - set(known)):
        raise SetupError(f"reference() returned {unknown}; expected names of out or inout arrays")
    for array in known.values():
        if array.role == "out" and array.name not in results:
            raise SetupError(f"reference() returned nothing for the out argument {array.name}")
    return {name: _as_declared(np.asarray(result), known[name]) for name, result in results.items()}


def _as_declared(result: NDArray[Any], array: Array) -> NDArray[Any]:
    """A reference's result as flat elements of the array's type; raises SetupError when it does not fit."""
    if result.size != math.prod(array.shape):
        raise SetupError(
            f"reference() gives {result.size} elements for {array.name}, not {math.prod(array.shape)}"
        )
    flat = result.reshape(-1)
    typed = flat.astype(array.dtype)
    if typed.dtype.kind in "iu" and not np.array_equal(typed, flat):
        raise SetupError(f"reference() gives values for {array.name} that {array.dtype} cannot hold")
    return np.ascontiguousarray(typed)
