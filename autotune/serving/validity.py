"""Whether a configuration may run: by the kernel's parameters and constraints, and by the device's limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from operator import index

from autotune.core.expressions import at_least, integer, parse
from autotune.core.frozen import dataclass
from autotune.core.launch_plan import known_values
from autotune.core.light_typing import Any
from autotune.core.records import Config, DeviceInfo, KernelRecord, Sizes
from autotune.core.text import size_text
from autotune.errors import ExpressionError, InputError
from autotune.hardware.architectures import extent_limits


@dataclass(frozen=True)
class Check:
    """Why a configuration may not run (empty: it may), and the constraints that could not be checked."""

    violations: tuple[str, ...]
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelOnDevice:
    """A kernel for one element type, on a device that may be unknown.

    Attributes:
        record: The kernel's present parameters, constraints and launches.
        device: The device that is to run it; None if unknown.
        dtype: The element type.
    """

    record: KernelRecord
    device: DeviceInfo | None
    dtype: str

    def values(self, config: Config, sizes: Sizes | None) -> dict[str, Any]:
        """Every name that an expression may read, as far as device and sizes are known.

        Raises ExpressionError for a derived name that cannot be evaluated.
        """
        return known_values(self.device, sizes, self.dtype, config, self.record.derived)

    def is_valid(self, config: Config, sizes: Sizes) -> bool:
        """Whether a configuration may run at these sizes, as far as that is known before it is compiled."""
        return not self.check(config, sizes).violations

    def launched(self, config: Config, sizes: Sizes) -> tuple[bool, ...]:
        """Which launches of the plan a run at these sizes has; empty where that cannot be evaluated."""
        try:
            values = self.values(config, sizes)
            return tuple(bool(parse(step.when)(values)) for step in self.record.launch)
        except ExpressionError:
            return ()

    def check(self, config: Config, sizes: Sizes | None, registers: int | None = None) -> Check:
        """Check a configuration against the parameters, the constraints and the limits of the device.

        Blocks must have at least one thread, and no more threads, dynamic shared memory or registers than the
        device has. What depends on an unknown device or on unknown sizes is not checked.

        Args:
            config: The configuration.
            sizes: Of the problem; None if unknown.
            registers: Per thread; None if unknown.

        Raises:
            ExpressionError: A text of the record is not an expression.
        """
        parameters = self.record.parameters
        names = {parameter.name for parameter in parameters}
        if config.keys() != names:
            return Check((f"the parameters are now {', '.join(sorted(names))}",))
        invalid_values = tuple(
            f"{parameter.name} = {config[parameter.name]!r} is not among its values"
            for parameter in parameters
            if not parameter.takes(config[parameter.name])
        )
        constraints = [parse(text) for text in self.record.constraints]
        try:
            values = self.values(config, sizes)
        except ExpressionError as error:
            return Check((*invalid_values, str(error)))
        complete = self.device is not None and sizes is not None
        checked = [item for item in constraints if complete or item.names <= values.keys()]
        return Check(
            violations=(
                *invalid_values,
                *(item.text for item in checked if not item.holds(values)),
                *_beyond_limits(self.record, self.device, values, registers),
            ),
            unchecked=tuple(item.text for item in constraints if item not in checked),
        )


def _beyond_limits(
    record: KernelRecord, device: DeviceInfo | None, values: Mapping[str, Any], registers: int | None
) -> Iterator[str]:
    """The limits of the device that launches exceed, as far as that is known."""
    if device is None:
        return
    limits = (
        ("threads", device.max_threads_per_block),
        ("bytes of shared memory", device.shared_bytes_per_block),
        ("registers", device.registers_per_block),
    )
    for step in record.launch:
        texts = (*step.block, step.shared_bytes, step.when)
        if any(not parse(text).names <= values.keys() for text in texts):
            continue
        try:
            if not parse(step.when)(values):
                continue
            threads = prod(at_least(1, parse(text), values) for text in step.block)
            needed = (threads, integer(parse(step.shared_bytes), values), threads * (registers or 0))
        except ExpressionError as error:
            yield str(error)
            continue
        for amount, (what, limit) in zip(needed, limits, strict=True):
            if limit is not None and amount > limit:
                yield f"{step.entry} needs {amount} {what} a block, the device has {limit}"
        for what, text, most in extent_limits(step) if device.backend != "opencl" else ():
            if parse(text).names <= values.keys() and (extent := integer(parse(text), values)) > most:
                yield f"{step.entry} has {extent} {what}, the device allows {most}"


def whole_sizes(kernel: str, sizes: Sizes) -> Sizes:
    """Sizes as Python integers, also if they are numpy's; raises InputError for other numbers."""
    try:
        return {name: index(size) for name, size in sizes.items()}
    except TypeError:
        texts = {name: repr(size) if isinstance(size, str) else size for name, size in sizes.items()}
        is_quoted = all(str(size).isdecimal() for size in sizes.values())
        mend = f"; write {size_text(sizes)}" if is_quoted else ""
        raise InputError(f"{kernel}: sizes are whole numbers; found {size_text(texts)}{mend}") from None


def require_sizes(record: KernelRecord, sizes: Sizes) -> None:
    """Raise InputError unless these are the sizes of the kernel, each a whole number of at least 1."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f"{record.kernel}: {name} = {size!r}: expected a whole number of at least 1")
    expected = [sorted(entry.sizes) for entry in record.entries]
    if expected and sorted(sizes) not in expected:
        takes, given = ", ".join(expected[0]) or "none", ", ".join(sorted(sizes)) or "none"
        left = [name for name in expected[0] if name not in sizes]
        missing = f"; missing: {', '.join(left)}" if left else ""
        raise InputError(f"{record.kernel}: takes the sizes {takes}; given: {given}{missing}")
