"""Compile the default and the landmarks of the shipped spaces for GPUs that are not here.

    python benchmarks/landmarks.py [SPACE ...] [--architectures A,B] [--option OPTION] [--jobs N]

Needs no GPU, but NVRTC, nvcc for kernels that launch kernels, and Triton for its spaces. The tables show how
many of each space can run on an architecture, why the others cannot, and which use local memory. Fails if
one cannot run that the constraints of its space allow there, for no known reason. With --option, such as
--option=-use_fast_math, all are compiled again with it, and a table shows what that changes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.analysis.compile_survey import Checked, Settings, survey
from autotune.cli.output import emit
from autotune.cli.tables import table
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.text import first_error
from autotune.errors import SpaceError
from autotune.hardware.architectures import ARCHITECTURES, Architecture
from autotune.hardware.names import gpu_architectures
from autotune.space import SpaceSpec, bind, load_space, problem_of
from autotune.tuning.task import Target

SPACES = sorted((Path(__file__).parents[1] / "spaces").glob("*.yaml"))
KNOWN = {  # why a space cannot be compiled here for an architecture
    (
        "nested_reduce",
        "sm_87",
    ): "CUDA's device runtime for x86-64 has no code for Jetson"
}
TIMEOUT_S = 1200.0  # for Blackwell some take a minute, and more on a machine with other work


@dataclass(frozen=True)
class Result:
    """One named configuration on one architecture: why its space forbids it there, or how it compiles."""

    space: str
    name: str
    architecture: str
    invalid: str
    checked: Checked | None
    changed: Checked | None = None  # with the further option

    @property
    def is_broken(self) -> bool:
        """Whether it cannot run, though its space allows it, and nobody knows why."""
        return self.reason != "" and not self.invalid and (self.space, self.architecture) not in KNOWN

    @property
    def reason(self) -> str:
        """Why it cannot run; empty if it can."""
        if self.checked is None or self.checked.failure is None:
            return self.invalid
        return KNOWN.get((self.space, self.architecture)) or first_error(self.checked.failure.detail)


def _say(stage: Stage) -> None:
    """Name an architecture on stderr before its first configuration."""
    if not stage.done:
        print(f"  {stage}", file=sys.stderr, flush=True)


def main() -> None:
    """Print the tables; exit with 1 if a landmark cannot run for no reason that its space has."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("spaces", nargs="*", metavar="SPACE", help="names (default: all that are shipped)")
    parser.add_argument(
        "--architectures",
        default=",".join(name for name, item in ARCHITECTURES.items() if not item.is_amd),
        help="(default: all of NVIDIA; those of AMD are for spaces in Triton)",
    )
    parser.add_argument("--option", help="compile with this option of the compiler, too")
    parser.add_argument("--jobs", type=int, help="compilers at once (default: one per core)")
    parsed = parser.parse_args()
    architectures = gpu_architectures(parsed.architectures)
    settings = Settings(timeout_s=TIMEOUT_S, compilers=parsed.jobs)
    results: list[Result] = []
    for path in SPACES:
        if not parsed.spaces or path.stem in parsed.spaces:
            print(path.stem, file=sys.stderr, flush=True)
            results += compiled(path, architectures, settings, parsed.option)
    names = [item.name for item in architectures]
    emit(table(("space", *names), _counts(results, names)))
    for title, columns, rows in (
        ("Cannot run", ("space", "configuration", "on", "reason"), _exceptions(results)),
        ("Local memory", ("space", "configuration", "on", "bytes", "of spills"), _local(results)),
        (f"With {parsed.option}", _CHANGE_COLUMNS, _changes(results)),
    ):
        if rows:
            emit(f"\n{title}:")
            emit(table(columns, rows))
    if any(item.is_broken for item in results):
        sys.exit(1)


def compiled(
    path: Path, architectures: list[Architecture], settings: Settings, option: str | None
) -> Iterator[Result]:
    """Compile what has a name in a space, for each architecture."""
    spec = load_space(path)
    named = {spec.default: "default"} | {one.config: one.name for one in spec.landmarks}
    asked = replace(settings, configs=tuple(named))
    plain = survey(Target(path), architectures, asked, _say)
    again = plain
    if option:
        again = survey(Target(path), architectures, replace(asked, options=(option,)), _say)
    for found, other in zip(plain, again, strict=True):
        invalid = _invalid(spec, found.architecture, asked.configs)
        checked = {item.config: item for item in found.checked}
        changed = {item.config: item for item in other.checked} if option else {}
        for config, name in named.items():
            yield Result(
                path.stem,
                name,
                found.architecture.name,
                invalid[config],
                checked.get(config),
                changed.get(config),
            )


def _invalid(spec: SpaceSpec, architecture: Architecture, configs: tuple[Config, ...]) -> dict[Config, str]:
    """Why each configuration is not valid on an architecture; empty if it is."""
    try:
        space = bind(spec, architecture.device, problem_of(spec, architecture.device))
    except SpaceError as error:
        return dict.fromkeys(configs, str(error))
    return {config: "; ".join(space.why_invalid(config)) for config in configs}


def _counts(results: list[Result], architectures: list[str]) -> Iterator[tuple[str, ...]]:
    """A row for each space: how many can run on each architecture."""
    for space in dict.fromkeys(item.space for item in results):
        cells = []
        for name in architectures:
            here = [item for item in results if (item.space, item.architecture) == (space, name)]
            good = sum(not item.reason for item in here)
            cells.append(f"{good}" if good == len(here) else f"{good} of {len(here)}")
        yield (space, *cells)


def _exceptions(results: list[Result]) -> list[tuple[str, ...]]:
    """A row for each configuration and reason: where it cannot run."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for item in results:
        if item.reason:
            places.setdefault((item.space, item.name, item.reason), []).append(item.architecture)
    return [(space, name, ", ".join(where), reason) for (space, name, reason), where in places.items()]


def _local(results: list[Result]) -> list[tuple[str, ...]]:
    """A row for each configuration that uses local memory."""
    return [
        (item.space, item.name, item.architecture, str(used.local_bytes), str(used.spill_bytes))
        for item in results
        if (used := item.checked) and used.local_bytes
    ]


_CHANGE_COLUMNS = ("space", "configuration", "on", "registers", "local bytes", "spill bytes", "seconds")


def _changes(results: list[Result]) -> list[tuple[str, ...]]:
    """A row for each configuration that was compiled twice: without and with the option."""
    return [
        (
            *(item.space, item.name, item.architecture),
            f"{before.registers} {after.registers}",
            f"{before.local_bytes} {after.local_bytes}",
            f"{before.spill_bytes} {after.spill_bytes}",
            f"{before.compile_ms / 1e3:.1f} {after.compile_ms / 1e3:.1f}",
        )
        for item in results
        if (before := item.checked) and (after := item.changed)
        if before.compile_ms is not None and after.compile_ms is not None
    ]


if __name__ == "__main__":
    main()
