"""Memory of one problem on one device: inputs, guard zones around every array, and the expected results.

Arrays stay allocated from one configuration to the next. Every array has a pristine image on the device,
guard zones and poison included, so one device copy puts it back whatever a kernel did to it.
"""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.devices.base import Buffer, Bytes, Device
from autotune.errors import SetupError
from autotune.jobs import Array, Case
from autotune.model import Problem, Value

GUARD_BYTES = 16_384  # a whole block of 1024 threads writing 16 bytes each past the end is still caught
GUARD_VALUE = 0xC5
POISON_FLOAT = 0xFF  # every float format reads it as NaN
POISON_INTEGER = 0xA5


class Slot:
    """One array in device memory between two guard zones."""

    def __init__(self, device: Device, array: Array, content: NDArray[Any] | None) -> None:
        self.array = array
        self.size_bytes = int(np.prod(array.shape, dtype=np.int64)) * np.dtype(array.dtype).itemsize
        self._device = device
        self.initial = content.reshape(-1).view(np.uint8) if content is not None else self._poison()
        image = np.full(self.size_bytes + 2 * GUARD_BYTES, GUARD_VALUE, np.uint8)
        image[GUARD_BYTES : GUARD_BYTES + self.size_bytes] = self.initial
        self._image_bytes = image.size
        self._memory = device.allocate(image.size)
        self._pristine = device.allocate(image.size)
        device.write(self._memory, image)
        device.write(self._pristine, image)
        self.region: Buffer = device.region(self._memory, GUARD_BYTES, self.size_bytes)

    def restore(self) -> None:
        """Put back the initial content and the guard zones."""
        self._device.copy(self._memory, self._pristine, self._image_bytes)

    def read(self) -> tuple[Bytes, Bytes, Bytes]:
        """Guard zone below, content, guard zone above."""
        image = self._device.read(self._memory, self._image_bytes)
        end = GUARD_BYTES + self.size_bytes
        return image[:GUARD_BYTES], image[GUARD_BYTES:end], image[end:]

    def _poison(self) -> Bytes:
        is_float = np.dtype(self.array.dtype).kind == "f"
        return np.full(self.size_bytes, POISON_FLOAT if is_float else POISON_INTEGER, np.uint8)


class Workspace:
    """The arrays of one problem, its inputs drawn from the problem's seed, its reference computed once."""

    def __init__(self, device: Device, problem: Problem, arrays: tuple[Array, ...], reference: Path) -> None:
        self._device = device
        self._inputs = _inputs(problem, arrays)
        self.expected = _expected(reference, self._inputs, problem)
        self._slots: dict[str, Slot] = {}
        known = {array.name for array in arrays if array.role in ("out", "inout")}
        if unknown := sorted(set(self.expected) - known):
            raise SetupError(
                f"{reference}: reference() returned {unknown}; expected names of out or inout arrays"
            )

    def slots(self, case: Case) -> tuple[Slot, ...]:
        """The arrays a case's launches touch, and every output that the reference knows."""
        used = {name for launch in case.launches for name in launch.arguments} | set(self.expected)
        return tuple(self._slot(array) for array in case.arrays if array.name in used)

    def arguments(self, case: Case) -> Mapping[str, Buffer | np.generic]:
        """What the device is handed: regions of arrays and typed scalars."""
        values: dict[str, Buffer | np.generic] = {slot.array.name: slot.region for slot in self.slots(case)}
        return values | {scalar.name: np.dtype(scalar.dtype).type(scalar.value) for scalar in case.scalars}

    def _slot(self, array: Array) -> Slot:
        slot = self._slots.get(array.name)
        if slot is None or slot.array != array:
            slot = Slot(self._device, array, self._inputs.get(array.name))
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
    dtype, count = np.dtype(array.dtype), int(np.prod(array.shape, dtype=np.int64))
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


def _expected(path: Path, inputs: Mapping[str, NDArray[Any]], problem: Problem) -> dict[str, NDArray[Any]]:
    """Run the user's reference; whatever it raises passes through and is reported as the setup's fault."""
    specification = importlib.util.spec_from_file_location("autotune_reference", path)
    if specification is None or specification.loader is None:
        raise SetupError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    results = module.reference(dict(inputs), dict(problem.sizes))
    return {name: np.atleast_1d(np.asarray(result)) for name, result in results.items()}
