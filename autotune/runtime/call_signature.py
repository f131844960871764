"""The arguments that callers of a loaded kernel pass, with their names and order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from autotune.core.records import CallSpec, KernelRecord
from autotune.core.text import size_text
from autotune.errors import InputError
from autotune.runtime.packages import MakeOutput
from autotune.runtime.prepared import BoundCall, View
from autotune.serving.best import Best

CHECK_S = 1.0  # how often cache files are looked at for changes
_OF_ONE_SIZE = (  # `n + 1`, `64 * n` or `n * 64`
    r"\s*(?:(?P<before>\d+)\s*\*\s*)?(?P<size>[A-Za-z_]\w*)\s*"
    r"(?:\*\s*(?P<after>\d+)\s*)?(?P<offset>[+-]\s*\d+)?\s*"
)
_HIDDEN = ("scratch", "local", "scalar", "view")  # roles of what is not passed as an array


@dataclass(slots=True)
class Call:
    """Launches that are ready for all calls with the same key."""

    run: Callable[[Sequence[Any]], Any]  # enqueues the launches, as `Prepared` has it
    bind: Callable[[Sequence[Any]], BoundCall]  # fixes the arrays, as `Prepared` has it
    best: Best
    ask: Callable[[], Best]  # asks the cache for the configuration again
    makers: tuple[MakeOutput, ...]  # of the outputs that are allocated
    results: tuple[int, ...]  # the places of returned arrays: the call's arrays, then the allocated outputs
    like: int  # the place of the array on whose device outputs are made
    number: Callable[[str, Any], Any]  # converts a scalar of a call
    needed_alignment_bytes: Callable[[], int]  # arrays of a GPU must begin at a multiple of it
    until: float = field(default_factory=lambda: monotonic() + CHECK_S)  # when to look at the cache again

    def is_current(self) -> bool:
        """True if the cache still gives this configuration; the cache is not asked again for a while."""
        self.until = monotonic() + CHECK_S
        return self.ask() is self.best


class CallSignature:
    """The arguments as the kernel's newest record declares them, and the calls that are prepared for them.

    When the cache changes, the kernel gets a new signature. Bound kernels, and calls that other threads have
    begun, keep the old one.
    """

    def __init__(self, kernel: str, record: KernelRecord) -> None:
        """Read the record; `kernel` is its name in messages."""
        declared, call = record.arguments, record.call or CallSpec()
        self.record = record
        self.array_names = tuple(item.name for item in declared if item.role not in _HIDDEN)
        self.inputs = call.inputs  # the arrays that are enough; empty if the space does not say
        self.returns = call.returns  # the arrays that a call returns, unless all arrays are passed
        self.written = {item.name for item in declared if item.role in ("out", "inout")}
        # Scalars and sizes may be passed by name.
        self.scalars = {item.name for item in declared if item.role == "scalar"}
        self.sizes = record.size_names
        self.calls: dict[Any, Call] = {}  # by key: see `packages.call_key`
        self._kernel = kernel

    def in_order(
        self, arrays: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...], dict[str, Any]]:
        """Arrays in order (None for an absent array), sizes, and scalars by name; raises InputError."""
        if named.keys() <= self.sizes:
            return arrays, tuple(named.items()), {}
        given = dict(zip(self.names_of(arrays), arrays, strict=False))
        sizes, numbers = {}, {}
        for name, value in named.items():
            if name in self.sizes:
                sizes[name] = value
            elif name in self.scalars:
                numbers[name] = value
            elif name in self.array_names and name not in given:
                given[name] = value
            else:
                known = ", ".join(dict.fromkeys([*self.array_names, *sorted(self.sizes | self.scalars)]))
                why = "is given twice" if name in given else f"is unknown; expected some of {known}"
                raise InputError(f"{self._kernel}: {name} {why}")
        return tuple(map(given.get, self.array_names)), tuple(sizes.items()), numbers

    def names_of(self, arrays: Sequence[Any]) -> tuple[str, ...]:
        """The names of positional arrays and of arrays that may follow; raises InputError for too many."""
        if len(arrays) <= len(self.inputs):
            return self.inputs
        if self.inputs and len(arrays) < len(self.array_names):
            names, array = ", ".join(self.array_names), self.array_names[len(self.inputs)]
            raise InputError(
                f"{self._kernel}: takes the inputs {', '.join(self.inputs)}, or all of {names}; "
                f"{len(arrays)} were given; pass any other array by name, such as {array}=..."
            )
        if len(arrays) > len(self.array_names):
            names = ", ".join(self.array_names)
            by_name = ", ".join(f"{name}=..." for name in sorted(self.scalars - self.sizes))
            numbers = f"; numbers are given by name: {by_name}" if by_name else ""
            raise InputError(f"{self._kernel}: takes the arrays {names}; {len(arrays)} were given{numbers}")
        return self.array_names

    def dtype(self, views: Mapping[str, View]) -> str | None:
        """The element type of the first array whose type the space leaves open; None if there is none."""
        generic = [item.name for item in self.record.arguments if item.dtype == "DTYPE"]
        return next((views[name].dtype for name in generic if name in views and views[name].dtype), None)

    def all_sizes(self, given: Mapping[str, int], views: Mapping[str, View]) -> dict[str, int]:
        """The given sizes, and the sizes that follow from the arrays' shapes.

        Raises InputError for a contradiction or a size that is missing.
        """
        if self.record.is_of_script:
            return self._sizes_of_script(given, views)
        sizes = dict(given)
        shaped = [
            (spec, view.shape)
            for spec in self.record.arguments
            if (view := views.get(spec.name))
            and view.shape is not None
            and len(view.shape) == len(spec.shape)
        ]
        for spec, shape in shaped:
            for name, extent in zip(spec.shape, shape, strict=True):
                if name in self.sizes and sizes.setdefault(name, extent) != extent:
                    raise InputError(
                        f"{self._kernel}: {spec.name} has shape {shape}, so {name} would be {extent}, "
                        f"but it is {sizes[name]}"
                    )
        if sizes.keys() >= self.sizes:
            return sizes
        for spec, shape in shaped:  # [64 * n + 1] gives n where no array is just [n]
            for text, extent in zip(spec.shape, shape, strict=True):
                match = re.fullmatch(_OF_ONE_SIZE, text, re.ASCII)
                if match and match["size"] in self.sizes:
                    offset = int((match["offset"] or "0").replace(" ", ""))
                    factor = int(match["before"] or 1) * int(match["after"] or 1)
                    sizes.setdefault(match["size"], (extent - offset) // max(factor, 1))
        if missing := sorted(self.sizes - sizes.keys()):
            raise InputError(
                f"{self._kernel}: no array's shape gives {', '.join(missing)}; {self._other_rank(views)}"
                f"pass {missing[0]}=..."
            )
        return sizes

    def _sizes_of_script(self, given: Mapping[str, int], views: Mapping[str, View]) -> dict[str, int]:
        """The sizes for which a script listed arrays of these shapes, or the given sizes if none is missing.

        Raises InputError if the script listed them for no sizes, or for several.
        """
        if given.keys() == self.sizes:
            return dict(given)
        shapes = {name: view.shape for name, view in views.items() if view.shape is not None}
        entries = [entry for entry in self.record.entries if entry.arguments]
        fitting = []
        for entry in entries:
            listed = {argument.name: tuple(map(int, argument.shape)) for argument in entry.arguments}
            if given.items() <= entry.sizes.items() and shapes.items() <= listed.items():
                fitting.append(entry.sizes)
        if len(fitting) == 1:
            return dict(fitting[0])
        known = " and ".join(size_text(sizes) for sizes in fitting or [entry.sizes for entry in entries])
        name, shape = next(iter(shapes.items()), ("an array", ()))
        missing = min(self.sizes - given.keys())
        problem = "several results fit" if fitting else "no result fits"
        raise InputError(
            f"{self._kernel}: {problem} arrays of these shapes, {name} of {shape}; tuned for {known}; "
            + (f"pass {missing}=..." if fitting else "for other sizes, write a space: autotune new")
        )

    def _other_rank(self, views: Mapping[str, View]) -> str:
        """A hint to reshape the first array whose rank is not the declared rank; empty without one."""
        for spec in self.record.arguments:
            view = views.get(spec.name)
            if view and view.shape is not None and len(view.shape) != len(spec.shape):
                return (
                    f"{spec.name} has shape {view.shape}, but the space declares [{', '.join(spec.shape)}]: "
                    "reshape it, or "
                )
        return ""
