"""The answer of `best_config`: a configuration with all that a program needs to compile and launch it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from operator import index

from autotune.core.expressions import integer, parse
from autotune.core.frozen import dataclass, field
from autotune.core.launch_plan import arguments, at_least, compiler_options, known_values, launches, macros
from autotune.core.light_typing import Any, TypeVar
from autotune.core.records import (
    Argument,
    Config,
    DeviceInfo,
    Entry,
    KernelRecord,
    Launch,
    Match,
    Provenance,
    Sizes,
    Tier,
    Value,
)
from autotune.core.text import hint, size_text
from autotune.errors import ExpressionError, InputError
from autotune.hardware.architectures import extent_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from autotune.serving.portability import Slowdown

_T = TypeVar("_T")
_DIALECTS = ("cuda", "opencl", "portable", "python", "triton")


@dataclass(frozen=True)
class Check:
    """Why a configuration may not run (empty: it may), and the constraints that could not be checked."""

    violations: tuple[str, ...]
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Best(Mapping[str, Value]):
    """A configuration as a mapping of tuned parameters, with where it comes from and how to use it.

    Attributes:
        config: The configuration.
        dtype: The element type.
        match: How closely it matches what was asked for.
        stale_reasons: Sentences on what has changed since it was tuned.
        record: The kernel's parameters, constraints and launches.
        device: The device that is to run it; None if unknown.
        entry: The result that it was taken from; None for the kernel's default.
        evidence: Computes the slowdowns that choosing in the same way causes on known devices or sizes.
    """

    config: Config
    dtype: str
    match: Match
    stale_reasons: tuple[str, ...]
    record: KernelRecord
    device: DeviceInfo | None
    entry: Entry | None
    evidence: Callable[[], Sequence[Slowdown]] = field(repr=False)

    def __getitem__(self, parameter: str) -> Value:
        return self.config[parameter]

    def __iter__(self) -> Iterator[str]:
        return iter(self.config)

    def __len__(self) -> int:
        return len(self.config)

    def __repr__(self) -> str:
        device = self.device.name if self.device else self.match.source_device or "an unknown device"
        sizes = "".join(f", {name}={size:,}" for name, size in (self.match.source_sizes or {}).items())
        return f"Best({self.record.kernel} on {device}{sizes}: {self.config}, {self.match.tier.value})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Two columns for notebooks: every parameter with its value, under the line that `repr` gives."""
        from html import escape

        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>" for name, value in self.items()
        )
        return f"<p>{escape(repr(self))}</p><table>{rows}</table>"

    @property
    def time_ms(self) -> float | None:
        """Median time where it was tuned, for `match.source_sizes`; None for a default."""
        if self.entry is None or self.entry.config == self.config:
            return self.entry.time_ms if self.entry else None
        return dict(self.entry.measured)[self.config]

    @cached_property
    def expected_slowdown(self) -> float | None:
        """The time relative to the best possible, as a bound that holds in nine cases of ten.

        1 for an EXACT match, None if unknown. Estimated from known devices or sizes, each left out in turn;
        see docs/production.md.
        """
        if self.match.tier is Tier.EXACT:
            return 1.0
        from autotune.serving.portability import expected_slowdown  # not needed for an exact answer

        return expected_slowdown(self.evidence(), self.match.tier)

    @property
    def provenance(self) -> Provenance | None:
        """How the result was found; None for a default."""
        return self.entry.provenance if self.entry else None

    @property
    def source_device(self) -> str | None:
        """The slug of the device it was tuned on; None for a default."""
        return self.match.source_device

    @property
    def defines(self) -> dict[str, Value]:
        """Every macro that the kernel's source needs."""
        return macros(self.record.parameters, self.config, self.dtype)

    @property
    def flags(self) -> list[str]:
        """The macros as compiler options: `-DBLOCK_SIZE=256`."""
        return [f"-D{name}={value}" for name, value in self.defines.items()]

    def options(self, dialect: str) -> tuple[str, ...]:
        """Tuned compiler options besides the macros, for the compiler of a dialect: "cuda" or "opencl".

        Raises InputError when an option depends on a device or a size that is unknown.
        """
        if dialect not in _DIALECTS:
            raise InputError(f"options: unknown dialect {dialect!r}{hint(str(dialect), _DIALECTS)}")
        options = self.record.compiler_options.get(dialect, {})
        try:
            sizes = self.match.source_sizes
            return compiler_options(
                options, known_values(self.device, sizes, self.dtype, self.config, self.record.derived)
            )
        except ExpressionError as error:
            raise InputError(f"{self.record.kernel}: compiler options: {error}") from None

    def arguments(self, **sizes: int) -> tuple[Argument, ...]:
        """The arguments of the launches: shapes of arrays (scratch included) and values of scalars.

        Raises InputError as `launch` does.
        """
        return self._evaluate(sizes, lambda values: arguments(self.record.arguments, values, self.dtype))

    def launch(self, **sizes: int) -> tuple[Launch, ...]:
        """The launches for a problem of these sizes, grid in blocks and block in threads.

        Raises InputError for a missing or unknown size, for sizes that the configuration is not valid for,
        and for a plan that depends on an unknown device.
        """
        return self._evaluate(
            sizes, lambda values: launches(self.record.launch, values, self.record.arguments)
        )

    def _evaluate(self, sizes: Sizes, evaluate: Callable[[dict[str, Any]], _T]) -> _T:
        sizes = whole_sizes(self.record.kernel, sizes)
        require_sizes(self.record, sizes)
        registers = self.entry.registers_of(self.config) if self.entry else None
        violations = check(self.record, self.config, self.device, sizes, self.dtype, registers).violations
        if violations:
            raise InputError(
                f"{self.record.kernel}: this configuration is not valid for {size_text(sizes)}: "
                f"{'; '.join(violations)}; ask best_config for these sizes"
            )
        try:
            return evaluate(known_values(self.device, sizes, self.dtype, self.config, self.record.derived))
        except ExpressionError as error:
            unknown = "" if self.device else "; the device is not known: give best_config its DeviceInfo"
            raise InputError(f"{self.record.kernel}: launch plan: {error}{unknown}") from None


def check(
    record: KernelRecord,
    config: Config,
    device: DeviceInfo | None,
    sizes: Sizes | None,
    dtype: str,
    registers: int | None = None,
) -> Check:
    """Check a configuration against the kernel's present parameters and constraints and the device's limits.

    Blocks must have at least one thread, and no more threads, dynamic shared memory or registers than the
    device has. What depends on an unknown device or on unknown sizes (None) is not checked.

    Args:
        record: The kernel's parameters, constraints and launches.
        config: The configuration.
        device: The device that is to run it; None if unknown.
        sizes: Of the problem; None if unknown.
        dtype: The element type.
        registers: Per thread; None if unknown.

    Raises:
        ExpressionError: A text of the record is not an expression.
    """
    names = {parameter.name for parameter in record.parameters}
    if config.keys() != names:
        return Check((f"the parameters are now {', '.join(sorted(names))}",))
    invalid_values = tuple(
        f"{parameter.name} = {config[parameter.name]!r} is not among its values"
        for parameter in record.parameters
        if not parameter.takes(config[parameter.name])
    )
    constraints = [parse(text) for text in record.constraints]
    try:
        values = known_values(device, sizes, dtype, config, record.derived)
    except ExpressionError as error:
        return Check((*invalid_values, str(error)))
    complete = device is not None and sizes is not None
    checked = [item for item in constraints if complete or item.names <= values.keys()]
    return Check(
        violations=(
            *invalid_values,
            *(item.text for item in checked if not item.holds(values)),
            *_beyond_limits(record, device, values, registers),
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
        raise InputError(f"{record.kernel}: takes the sizes {takes}; given: {given}")
