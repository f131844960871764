"""Finds races on any machine: runs a kernel as C++ on the CPU, one fiber per thread, under ThreadSanitizer.

kernels/threads.h gives CUDA's words in C++, so kernels in the portable dialect and plain CUDA C++
without templates, textures or tensor cores can be run. What g++ refuses is not checked.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotune.compilers.kernel_source import packaged
from autotune.core.trials import Failure, Status
from autotune.evaluation.inputs import draw_inputs
from autotune.evaluation.work_item import ProblemInstance

TIMEOUT_S = 30.0  # for all problems of a configuration
MAX_THREADS = 150_000  # of a problem: a second runs some 30,000
_FOUND = 86  # the exit code of a finding
_OPTIONS = ("-std=c++17", "-O1", "-g", "-fsanitize=thread", "-pthread", "-fpermissive", "-w")
_SETTINGS = f"halt_on_error=1:exitcode={_FOUND}:report_thread_leaks=0"
_DYNAMIC = "extern __shared__ __align__(16) type name[]"  # of portable.h; here it can have its size
_ACCESS = re.compile(
    r"^  (?:Previous )?((?:atomic )?(?:read|write)) of size \d+ .*\n"
    r"(?:    #\d+ \S+ (?:\S*/)?threads\.h:.*\n)*    #\d+ (\w+).* (?:\S*/)?([^ /]+:\d+)",
    re.MULTILINE | re.IGNORECASE,
)
_BARRIER = re.compile(r"^BARRIER: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class RaceDetector:
    """A compiler with ThreadSanitizer."""

    compiler: str

    def check(self, source: str, problems: Sequence[ProblemInstance]) -> Failure | None:
        """Run a rendered source on those problems that are small enough; return the first race.

        Returns None, too, where the compiler refuses the source or the time is over.
        """
        small = sorted((_threads(problem), place) for place, problem in enumerate(problems))
        chosen = [problems[place] for threads, place in small if threads <= MAX_THREADS]
        deadline_s = time.monotonic() + TIMEOUT_S
        with tempfile.TemporaryDirectory() as folder:
            text, program = Path(folder, "kernel.cpp"), Path(folder, "kernel")
            text.write_text(_program(source, chosen, Path(folder)))
            build: list[str] = [self.compiler, *_OPTIONS, str(text), "-o", str(program)]
            try:
                if subprocess.run(build, capture_output=True, timeout=TIMEOUT_S).returncode:
                    return None
                for place in range(len(chosen)):
                    done = subprocess.run(
                        [program, str(place)],
                        capture_output=True,
                        text=True,
                        errors="replace",
                        timeout=max(0.0, deadline_s - time.monotonic()),
                        env=os.environ | {"TSAN_OPTIONS": _SETTINGS},
                    )
                    if done.returncode == _FOUND:
                        return _failure(done.stdout, done.stderr)
            except subprocess.TimeoutExpired:
                return None
        return None


def find_race_detector() -> RaceDetector | None:
    """Return the race detector; None without g++."""
    compiler = shutil.which("g++")
    return RaceDetector(compiler) if compiler else None


def _threads(problem: ProblemInstance) -> int:
    return sum(math.prod(launch.grid) * math.prod(launch.block) for launch in problem.launches)


def _failure(output: str, report: str) -> Failure:
    barrier = _BARRIER.search(output)
    if barrier:
        return Failure(Status.WRONG_RESULT, f"race detector found: {barrier[1]}")
    accesses = [f"{kind.lower()} in {name} ({place})" for kind, name, place in _ACCESS.findall(report)]
    return Failure(Status.WRONG_RESULT, f"race detector found: {' and '.join(accesses[:2]) or 'a race'}")


def _program(source: str, problems: Sequence[ProblemInstance], folder: Path) -> str:
    """The source between CUDA's words and a main program that runs the problem whose number it is given."""
    head = '#line 1 "threads.h"\n' + (packaged("kernels") / "threads.h").read_text()
    fixed = source.replace(_DYNAMIC, "static thread_local __align__(16) type name[count]")
    arrays, cases = [], []
    for number, problem in enumerate(problems):
        steps = []
        inputs = draw_inputs(problem.definition, problem.arrays)
        values = {
            one.name: f"{one.value!r}{'ul' if isinstance(one.value, int) else ''}" for one in problem.scalars
        }
        for array in problem.arrays:
            if array.name in problem.used:
                path = "0"
                if array.name in inputs:
                    file = folder / f"{number}.{array.name}"
                    np.ascontiguousarray(inputs[array.name]).tofile(file)
                    path = f'"{file}"'
                size_bytes = math.prod(array.shape) * np.dtype(array.dtype).itemsize
                values[array.name] = f"array_{number}_{array.name}"
                arrays.append(f"static autotune::any_pointer {values[array.name]};")
                steps.append(f"{values[array.name]} = autotune::array({path}, {size_bytes}ul);")
        for launch in problem.launches:
            call = f"{launch.entry}({', '.join(values[name] for name in launch.arguments)});"
            grid, block = (
                ", ".join(f"{extent}u" for extent in shape) for shape in (launch.grid, launch.block)
            )
            steps.append(f"autotune::launch({{{grid}}}, {{{block}}}, [] {{ {call} }});")
        cases.append(f"if (number == {number}) {{ {' '.join(steps)} }}")
    main = "int main(int, char **words) { const int number = atoi(words[1]);"
    return "\n".join([head, fixed, *arrays, main, *cases, "return 0; }", ""])
