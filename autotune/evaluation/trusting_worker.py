"""A worker that takes the expected results at the full size from configurations that the reference confirms.

The reference runs at the sizes to verify only. The default configuration has to be right there. Its results
at the full size count once a second configuration agrees with them, which has another binary and is also
right at the sizes to verify.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Failure
from autotune.devices.array_compare import differing
from autotune.devices.element_types import loaded
from autotune.errors import ExpressionError, SetupError
from autotune.evaluation.compiler_pool import CompilerPool
from autotune.evaluation.device_process import run_for_results
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.worker import Worker
from autotune.problem.reference_cache import load_results
from autotune.problem.workload import Workload

MAX_TRIED = 20  # configurations that may confirm the default


class TrustingWorker(Worker):
    """Computes the expected results of a workload before it is first loaded."""

    def __init__(
        self, *arguments: Any, maker: InstanceMaker, pool: CompilerPool, timeout_s: float, **options: Any
    ) -> None:
        """Prepare a `Worker`, whose first workloads are those to verify on.

        The maker and the pool are for the trusted configurations, each of which may take `timeout_s`.
        """
        super().__init__(*arguments, **options)
        self._maker = maker
        self._pool = pool
        self._trust_timeout_s = timeout_s
        self._second: Config | None = None  # the one that confirmed the default

    def load(self, *workloads: Workload) -> Failure | None:
        """As `Worker.load`; raises SetupError if no two configurations agree."""
        for workload in workloads:
            if workload.trusted and not Path(workload.trusted).exists():
                self._write_expected(workload)
        return super().load(*workloads)

    def _write_expected(self, workload: Workload) -> None:
        """Write the file of a workload's expected results."""
        spec, target = self._maker.space.spec, Path(workload.trusted)
        self._on_stage(Stage("computing the expected results with trusted configurations"))
        first, second = (target.with_suffix(f".{name}.results") for name in ("first", "second"))
        binary = self._write_results(spec.default, workload, first)
        if isinstance(binary, Failure):
            raise SetupError(
                f"{spec.source}: the default configuration fails, so its results cannot be trusted: {binary}"
            )
        reason = "none of these is right at verify_sizes and compiles to another binary"
        others = self._other_configs() if self._second is None else [self._second]
        for config in others:
            second_binary = self._write_results(config, workload, second, unlike=binary)
            if isinstance(second_binary, Failure) or second_binary == binary:
                continue
            if wrong := _disagreement(workload, first, second):
                reason = f"{config} is right at verify_sizes, but differs at the full size: {wrong}"
                continue
            self._second = config
            first.replace(target)
            return
        raise SetupError(
            f"{spec.path}: verify.full: no other configuration of up to {MAX_TRIED} confirms the results "
            f"of the default ({reason}); mend the kernel, or write `full: reference`"
        )

    def _other_configs(self) -> Iterator[Config]:
        """Configurations to confirm the default with, from all over the space."""
        space = self._maker.space
        for index in np.random.default_rng(0).permutation(len(space))[:MAX_TRIED].tolist():
            if space.config(index) != space.spec.default:
                yield space.config(index)

    def _write_results(
        self, config: Config, workload: Workload, path: Path, unlike: str = ""
    ) -> str | Failure:
        """Verify a configuration and write its results; return the hash of its binary.

        A binary with the hash `unlike` is not run.
        """
        try:
            instance = self._maker.make(config)
            full = self._maker.workload(config, workload.problem)
        except ExpressionError as error:
            raise SetupError(f"{self._maker.space.spec.path}: {config}: {error}") from None
        binary = self._pool.compile(instance).result()
        if isinstance(binary, Failure) or binary.sha256 == unlike:
            return binary if isinstance(binary, Failure) else unlike
        bare = replace(full, trusted="", expected=())
        failure = super().load(*instance.verify_workloads)  # raises SetupError if the reference is broken
        failure = failure or self.run(
            run_for_results,
            binary,
            instance.verify_workloads,
            bare,
            path,
            timeout_s=self._trust_timeout_s,
            workloads=(*instance.verify_workloads, bare),
        )
        return failure or binary.sha256


def _disagreement(workload: Workload, first: Path, second: Path) -> str:
    """A text of how two files of results differ; empty if they agree within the tolerance."""
    ours, theirs = load_results(first), load_results(second)
    assert ours is not None and theirs is not None
    dtypes = {array.name: array.dtype for array in workload.arrays}
    for name in ours.keys() & theirs.keys():
        first_values, second_values = (loaded(values[name], dtypes[name]) for values in (ours, theirs))
        wrong = np.flatnonzero(differing(second_values, first_values, workload.tolerance_of(name)))
        if wrong.size:
            at = int(wrong[0])
            return f"{name} at element {at} is {ours[name][at]} and {theirs[name][at]}, {wrong.size:,} differ"
    return ""
