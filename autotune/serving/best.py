"""The answer of `best_config`: a configuration, with all that a program needs to compile and launch it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from autotune.core.argument_values import arguments
from autotune.core.expressions import parse
from autotune.core.frozen import dataclass, replace
from autotune.core.launch_plan import DIALECTS, compiler_options, launches, macros
from autotune.core.records import (
    Argument,
    ArgumentSpec,
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
from autotune.errors import ExpressionError, InputError, Untrusted
from autotune.serving.validity import KernelOnDevice, require_sizes, whole_sizes

if TYPE_CHECKING:
    from autotune.serving.portability import Slowdown

T = TypeVar("T")


class Refusal(NamedTuple):
    """A result, or several, and the reason why it may not be served; together a sentence."""

    what: str
    why: str


@dataclass(frozen=True)
class NoMatch:
    """No result of a tier may be served, for these reasons."""

    reasons: tuple[Refusal, ...] = ()


@dataclass(frozen=True, eq=False)
class Best(Mapping[str, Value]):
    """A configuration as a mapping of tuned parameters, with its origin and its use.

    Attributes:
        config: The configuration.
        match: How closely it matches the query.
        stale_reasons: Changes since it was tuned, as sentences.
        kernel: The present kernel, for the element type and the device of the query.
        entry: The result that it comes from; None for the kernel's default.
        evidence: Computes the slowdowns that the same way of choosing has on known devices or sizes; not
            called for an EXACT match.
    """

    config: Config
    match: Match
    stale_reasons: tuple[str, ...]
    kernel: KernelOnDevice
    entry: Entry | None
    evidence: Callable[[], Sequence[Slowdown]]

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
        """A table for notebooks: the line from `repr`, then every parameter with its value."""
        from html import escape

        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>" for name, value in self.items()
        )
        return f"<p>{escape(repr(self))}</p><table>{rows}</table>"

    @property
    def record(self) -> KernelRecord:
        """The kernel's parameters, constraints and launches."""
        return self.kernel.record

    @property
    def device(self) -> DeviceInfo | None:
        """The device that will run it; None if unknown."""
        return self.kernel.device

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.kernel.dtype

    @property
    def time_ms(self) -> float | None:
        """Median time on the device and at the sizes where it was tuned (`match`); None for a default."""
        if self.entry is None:
            return None
        if self.config == self.entry.config:
            return self.entry.time_ms
        return dict(self.entry.measured)[self.config]

    @property
    def expected_slowdown(self) -> float | None:
        """The time relative to the best possible that half of the cases do not exceed.

        1 for an EXACT match, None if unknown. The estimate leaves out each known device or size in turn; see
        docs/serving-api.md.
        """
        return self._foretold[0]

    @property
    def slowdown_at_most(self) -> float | None:
        """The time relative to the best possible that nine of ten cases do not exceed; None if unknown."""
        return self._foretold[1]

    @cached_property
    def _foretold(self) -> tuple[float | None, float | None]:
        if self.match.tier is Tier.EXACT:
            return 1.0, 1.0
        from autotune.serving.portability import foretold  # only if somebody asks

        return foretold(self.evidence(), self.match.tier)

    @cached_property
    def digest(self) -> str:
        """A hash of kernel, type and configuration, equal in all processes that serve this configuration."""
        import hashlib  # not needed to serve
        import json

        text = json.dumps([self.record.kernel, self.dtype, sorted(self.config.items())])
        return hashlib.sha256(text.encode()).hexdigest()

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

    def options(
        self, dialect: str, sizes: Sizes | None = None, *, is_trusted: bool = False
    ) -> tuple[str, ...]:
        """The tuned compiler options of a dialect, "cuda" or "opencl", without the macros.

        Args:
            dialect: The dialect.
            sizes: The sizes of the request, if nothing was tuned: an option may depend on them.
            is_trusted: True if the cache may give the compiler any option, even options that write files.

        Raises InputError when an option depends on an unknown device or size, and Untrusted when an option is
        not known to be harmless and the cache is not trusted.
        """
        if dialect not in DIALECTS:
            raise InputError(f"options: unknown dialect {dialect!r}{hint(str(dialect), DIALECTS)}")
        options = self.record.compiler_options.get(dialect, {})
        try:
            known = self.kernel.values(self.config, self.match.source_sizes or sizes)
            flags = compiler_options(options, known)
        except ExpressionError as error:
            raise InputError(f"{self.record.kernel}: compiler options: {error}") from None
        if flags and not is_trusted:
            from autotune.serving.allowed_options import refused_options  # few kernels have options

            for option in refused_options(flags, dialect, self.record.compiler):
                raise Untrusted(
                    f"{self.record.kernel}: its results ask for the compiler option {option}, which only a "
                    "trusted cache may; if the cache is yours, name its folder (trusted=, --trusted), or "
                    "call best.options(is_trusted=True)"
                )
        return flags

    def arguments(self, **sizes: int) -> tuple[Argument, ...]:
        """The arguments of the launches: shapes of arrays (scratch included) and values of scalars.

        Raises InputError for sizes that `launch` refuses, and for sizes whose arguments no script has listed.
        """
        return self._evaluate(
            sizes, lambda values: arguments(self._argument_specs(sizes), values, self.dtype)
        )

    def launch(self, **sizes: int) -> tuple[Launch, ...]:
        """The launches for a problem of these sizes, grid in blocks and block in threads.

        Raises InputError for a missing or unknown size, for sizes that the configuration is not valid for,
        and for a plan that depends on an unknown device.
        """
        return self._evaluate(
            sizes, lambda values: launches(self.record.launch, values, self.record.arguments)
        )

    def _argument_specs(self, sizes: Sizes) -> tuple[ArgumentSpec, ...]:
        """The kernel's arguments, or the arguments that a script listed for a problem of these sizes."""
        if not self.record.is_of_script:
            return self.record.arguments
        own = (self.entry,) if self.entry else ()
        listed: list[Entry] = [entry for entry in (*own, *self.record.entries) if entry.arguments]
        for entry in listed:
            if entry.sizes == sizes:
                return entry.arguments
        known = " and ".join(dict.fromkeys(size_text(entry.sizes) for entry in listed))
        raise InputError(
            f"{self.record.kernel}: the script gave arrays and scalars for {known} only; for "
            f"{size_text(sizes)}, run the script at these sizes, or write a space: autotune new"
        )

    def _evaluate(self, sizes: Sizes, evaluate: Callable[[dict[str, Any]], T]) -> T:
        sizes = whole_sizes(self.record.kernel, sizes)
        require_sizes(self.record, sizes)
        registers = self.entry.registers_of(self.config) if self.entry else None
        violations = self.kernel.check(self.config, sizes, registers).violations
        if violations:
            raise InputError(
                f"{self.record.kernel}: this configuration is not valid for {size_text(sizes)}: "
                f"{'; '.join(violations)}; ask best_config for these sizes"
            )
        try:
            return evaluate(self.kernel.values(self.config, sizes))
        except ExpressionError as error:
            mend = "name one that `autotune list` shows, or give best_config its DeviceInfo"
            unknown = "" if self.device else f"; the device is not known: {mend}"
            by_script = self._computed_by_script(sizes)
            raise InputError(f"{self.record.kernel}: launch plan: {error}{unknown}{by_script}") from None

    def _computed_by_script(self, sizes: Sizes) -> str:
        """The names in the launch plan whose values a script's functions computed, and what to do."""
        known = {*sizes, *self.config, *self.record.derived, "DTYPE"}
        texts = (
            text
            for step in self.record.launch
            for text in (*step.grid, *step.block, step.shared_bytes, step.when)
        )
        names = sorted({name for text in texts for name in parse(text).names - known if "." not in name})
        mend = "give grid_div_x and the like as expressions of parameters, and tune again"
        return f"; the tuned script computed {', '.join(names)} with functions: {mend}" if names else ""


def with_refusal(best: Best, reasons: Sequence[Refusal]) -> Best:
    """An answer whose match tells the first reason why a closer one was not served."""
    if not reasons:
        return best
    detail = f"{best.match.detail}; {' '.join(reasons[0])}"
    return replace(best, match=replace(best.match, detail=detail))
