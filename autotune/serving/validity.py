"""Checks configurations against the kernel's parameters and constraints, and the device's limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import index
from typing import Any

from autotune.core.expressions import at_least, parse
from autotune.core.frozen import dataclass
from autotune.core.launch_plan import constant_expressions, known_values, launches
from autotune.core.records import Config, DeviceInfo, KernelRecord, LaunchSpec, Sizes
from autotune.core.text import size_text
from autotune.errors import ExpressionError, InputError
from autotune.hardware.launch_limits import amounts, conditions


@dataclass(frozen=True)
class Validity:
    """The reasons why a configuration may not run, if any, and the constraints that could not be checked."""

    violations: tuple[str, ...]
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelOnDevice:
    """A kernel for one element type, on a device that may be unknown."""

    record: KernelRecord  # the kernel's present parameters, constraints and launches
    device: DeviceInfo | None  # the device that will run it; None if unknown
    dtype: str

    def values(self, config: Config, sizes: Sizes | None) -> dict[str, Any]:
        """The values of all names that an expression may read, as far as device and sizes are known.

        Raises ExpressionError for a derived name that cannot be evaluated.
        """
        return known_values(self.device, sizes, self.dtype, config, self.record.derived)

    def is_valid(self, config: Config, sizes: Sizes) -> bool:
        """True if a configuration may run at these sizes, as far as is known before it is compiled."""
        return not self.check(config, sizes).violations

    def launched(self, config: Config, sizes: Sizes) -> tuple[bool, ...]:
        """The launches of the plan that a run at these sizes makes; empty if that cannot be evaluated."""
        try:
            values = self.values(config, sizes)
            return tuple(bool(parse(step.when)(values)) for step in self.record.launch)
        except ExpressionError:
            return ()

    def check(self, config: Config, sizes: Sizes | None, registers: int | None = None) -> Validity:
        """Check a configuration against the parameters, the constraints and the limits of the device.

        Something must be launched, with grids and blocks of at least 1 and within the device's limits. Checks
        that depend on an unknown device, unknown sizes or unknown registers per thread are left out. Raises
        ExpressionError for a text in the record that is no expression.
        """
        parameters = self.record.parameters
        names = {parameter.name for parameter in parameters}
        if config.keys() != names:
            gone, new = (", ".join(sorted(some)) for some in (config.keys() - names, names - config.keys()))
            return Validity((f"it has {gone or 'nothing'} where the kernel now has {new or 'nothing'}",))
        invalid_values = tuple(
            f"{parameter.name} = {config[parameter.name]!r} is not among its values"
            for parameter in parameters
            if not parameter.takes(config[parameter.name])
        )
        constraints = [parse(text) for text in self.record.constraints]
        try:
            values = self.values(config, sizes)
        except ExpressionError as error:
            return Validity((*invalid_values, str(error)))
        complete = self.device is not None and sizes is not None
        checked = [item for item in constraints if complete or item.names <= values.keys()]
        violations = (*invalid_values, *(item.text for item in checked if not item.holds(values)))
        return Validity(
            # a launch plan may rely on the constraints
            violations=violations or tuple(self._unlaunchable(values, registers)),
            unchecked=tuple(item.text for item in constraints if item not in checked),
        )

    def _unlaunchable(self, values: Mapping[str, Any], registers: int | None) -> Iterator[str]:
        """The known reasons why launches cannot be made, or why the device refuses them."""
        plan = self.record.launch
        try:
            is_known = all(_names(step) <= values.keys() for step in plan)
            if plan and is_known and not launches(plan, values, self.record.arguments):
                yield "nothing is launched, because no `when` holds"
            for step in plan:
                when = parse(step.when)
                if when.names <= values.keys() and when(values):
                    yield from _refused(step, self.device, values, registers)
        except ExpressionError as error:
            yield f"{error.place or 'launch'}: {error}"


def _refused(
    step: LaunchSpec, device: DeviceInfo | None, values: Mapping[str, Any], registers: int | None
) -> Iterator[str]:
    """The limits that a launch exceeds, as far as its numbers are known.

    Raises ExpressionError for a number that cannot be evaluated or is too small.
    """
    for amount in amounts(step, device, registers):
        number = parse(amount.text)
        if number.names <= values.keys():
            value = at_least(amount.least, number, values)
            if amount.most and value > (most := parse(amount.most)(values)):
                yield f"{step.entry} has {value} {amount.name}, the device allows {most}"
    for condition in map(parse, conditions(step, device)):
        if condition.names <= values.keys() and not condition.holds(values):
            yield f"{step.entry}: {condition.text} does not hold"


@lru_cache(maxsize=256)
def _names(step: LaunchSpec) -> frozenset[str]:
    """Every name that the plan of a launch reads."""
    flags = (step.shared_bytes, step.when, step.repeat, step.cooperative, step.programmatic)
    texts = (*step.grid, *step.block, *step.cluster, *flags, *constant_expressions(step).values())
    return frozenset[str]().union(*(parse(text).names for text in texts if text))


def whole_sizes(kernel: str, sizes: Sizes) -> Sizes:
    """Sizes as Python integers, converted from numpy's if necessary; raises InputError for other numbers."""
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
