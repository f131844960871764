"""A workload: the arrays, numbers and launches with which one configuration computes one problem."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from autotune.core.argument_values import pointed
from autotune.core.launch_plan import Settings
from autotune.core.records import Argument, Launch, ScalarValue, Sizes, Value
from autotune.core.trials import Problem
from autotune.devices.array_compare import EXACT, Tolerance
from autotune.devices.element_types import array_bytes

canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode  # for hashed keys


@dataclass(frozen=True)
class StoredArray:
    """An array in a .npy file, of its argument's element type; `sha256` is the hash of its content."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    sha256: str


@dataclass(frozen=True)
class Array:
    """One array argument; `fill` is a kind of fill and its parameters, None for `out` and `scratch`.

    The fill of an array that is read from a file is "stored" and the content's hash; `path` is that file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str  # "in", "out", "inout" or "scratch"
    fill: tuple[Value, ...] | None
    path: str = field(default="", compare=False)  # not compared: the hash identifies the content
    symbol: str = ""  # a variable of the source that it is copied to, in place of an argument
    is_kept: bool = field(default=False, compare=False)  # True if a program fills it once for all calls

    @property
    def count(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """The size on the device."""
        return array_bytes(self.dtype, self.shape)

    @property
    def identity(self) -> dict[str, Any]:
        """This array's part of a trial's key, version 1."""
        words = {"name": self.name, "dtype": self.dtype, "shape": self.shape, "role": self.role}
        return words | {"fill": self.fill} | ({"symbol": self.symbol} if self.symbol else {})


@dataclass(frozen=True)
class Scalar:
    """One scalar argument."""

    name: str
    dtype: str
    value: ScalarValue


@dataclass(frozen=True)
class Workload:
    """What a configuration runs to compute one problem: its arrays, numbers and launches."""

    problem: Problem
    arrays: tuple[Array, ...]
    scalars: tuple[Scalar, ...]
    launches: tuple[Launch, ...]
    tolerance: Tolerance = EXACT
    expected: tuple[tuple[str, StoredArray], ...] | None = None  # None: a reference file computes it
    views: tuple[Argument, ...] = ()
    local: tuple[Argument, ...] = ()  # memory of OpenCL, of which each block has its own
    bounds: tuple[tuple[str, Tolerance], ...] = ()  # for outputs with a tolerance of their own
    settings: Settings = ()  # the device's clock and power limit while it is timed
    trusted: str = ""  # the file with results of trusted configurations, instead of `expected`

    @property
    def size_bytes(self) -> int:
        """The size of all arrays on the device."""
        return sum(array.size_bytes for array in self.arrays)

    @cached_property
    def used_names(self) -> frozenset[str]:
        """The names that the launches use: arguments that they pass, and arrays in variables."""
        passed = {name for launch in self.launches for name in launch.arguments}
        passed |= {name for item in self.scalars if item.name in passed for name in pointed(item.value)}
        passed |= {view.of for view in self.views if view.name in passed}
        return frozenset(passed | {array.name for array in self.arrays if array.symbol})

    @cached_property
    def identity(self) -> dict[str, Any]:
        """This workload's part of a trial's key, version 1; keep its words when fields are renamed."""
        problem = self.problem
        newer = {  # than the first journals, which have none of them
            "bounds": [[name, bound.rtol, bound.atol, bound.factor] for name, bound in self.bounds],
            "views": [[view.name, view.of, view.offset_bytes] for view in self.views],
            "local": [[item.name, array_bytes(item.dtype, item.shape)] for item in self.local],
            "device": [list(setting) for setting in self.settings],
        }
        return {
            "problem": [sorted(problem.sizes.items()), problem.dtype, problem.seed],
            "arrays": [array.identity for array in self.arrays],
            "scalars": [{"name": s.name, "dtype": s.dtype, "value": s.value} for s in self.scalars],
            "launches": [
                {
                    "entry": step.entry,
                    "grid": step.grid,
                    "block": step.block,
                    "shared_bytes": step.shared_bytes,
                    "arguments": step.arguments,
                    **step.attributes,
                }
                for step in self.launches
            ],
            "rtol": self.tolerance.rtol,
            "atol": self.tolerance.atol,
            **self._expected_identity,
            **{name: listed for name, listed in newer.items() if listed},
        }

    @property
    def _expected_identity(self) -> dict[str, Any]:
        """The part for expected results; empty if a reference file computes them."""
        if self.trusted:
            return {"expected": "trusted"}
        if self.expected is None:
            return {}
        return {"expected": [[name, array.sha256] for name, array in self.expected]}

    @cached_property
    def identity_text(self) -> str:
        """The identity as it is hashed."""
        return canonical(self.identity)

    @cached_property
    def data_key(self) -> str:
        """Identifies inputs and expected results: the problem and all arrays except scratch."""
        arrays = [array for array in self.identity["arrays"] if array["role"] != "scratch"]
        return json.dumps([self.identity["problem"], arrays, *self._expected_identity.values()])

    @property
    def data_sha256(self) -> str:
        """Hash of the content of all stored arrays; empty without any."""
        stored = [str(item.fill[1]) for item in self.arrays if item.fill and item.fill[0] == "stored"]
        return hashlib.sha256("".join(stored).encode()).hexdigest() if stored else ""

    def tolerance_of(self, name: str) -> Tolerance:
        """The allowed difference of an output's elements from the reference's."""
        return dict(self.bounds).get(name, self.tolerance)

    @property
    def outputs_with_magnitude(self) -> tuple[str, ...]:
        """The outputs whose tolerance grows with the magnitude of the data that they are computed from."""
        return tuple(name for name, bound in self.bounds if bound.factor)


Make = Callable[[Sizes], Workload | None]
"""Makes the workload of sizes; None where the configuration is not valid."""


def identity_of(workloads: Iterable[Workload]) -> str:
    """Identifies what a binary runs on these workloads: launches, scalars and arrays."""
    texts = "\n".join(workload.identity_text for workload in workloads)
    return hashlib.sha256(texts.encode()).hexdigest()[:32]


def entries(*workloads: Workload) -> set[str]:
    """The kernels that workloads launch, with the values of their templates."""
    return {step.entry for workload in workloads for step in workload.launches}


def verification_order(workloads: tuple[Workload, ...], kind: str) -> tuple[Workload, ...]:
    """The workloads in the order of verification: on a CPU, the one with the most threads comes first.

    PoCL makes machine code at a kernel's first run: for grids of fewer than 65,536 threads, and again for
    wider ones. Code for wider grids also serves smaller ones later in the same process.
    """
    if kind != "cpu" or not workloads:
        return workloads
    widest = max(workloads, key=lambda workload: sum(step.threads for step in workload.launches))
    return (widest, *(workload for workload in workloads if workload is not widest))
