"""Find the journal that a name on the command line means."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from autotune.core.runs_folder import RUNS
from autotune.core.text import hint
from autotune.errors import InputError

_NOT_OF_A_SEARCH = tuple(f".{name}.jsonl" for name in ("check", "diagnose", "ladder", "run", "versus"))
_ELSEWHERE = (
    "run autotune search, or give the path of a journal elsewhere, as its search printed it "
    '(tune_kernel(cache="DIR/NAME.json") writes DIR/NAME.*.jsonl)'
)


def find_journal(name: str, runs: Path = RUNS) -> Path:
    """The journal that a name means: a file, or for a kernel that of its latest search in `runs` or below.

    A journal of another command, such as `autotune check`, is taken only where no search has left one; one
    without a trial, as an interrupted search leaves it, only where there is no other.
    Raises InputError where there is none.
    """
    path = Path(name)
    if path.exists() or path.suffix:
        return path
    journals = list(runs.rglob("*.jsonl"))
    own = [file for file in journals if file.name.partition(".")[0] == name]
    if own:
        own.sort(
            key=lambda file: (not file.name.endswith(_NOT_OF_A_SEARCH), file.stat().st_mtime), reverse=True
        )
        return next(filter(_has_trials, own), own[0])
    kernels = {file.name.partition(".")[0] for file in journals}
    place = f"{runs}/" if runs.is_absolute() else f"{runs}/ of {Path.cwd()}"
    near = hint(name, kernels) if kernels else ", nor of any other kernel"
    raise InputError(f"{name}: no such file, and no journal of that kernel in {place}{near}; {_ELSEWHERE}")


def _has_trials(file: Path) -> bool:
    with suppress(OSError), file.open("rb") as lines:
        return any(line.startswith(b'{"trial":') for line in lines)
    return False
