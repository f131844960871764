"""A command in a child process, which ends with all that it has started and leaves no temporary file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from errno import ETXTBSY
from functools import partial
from pathlib import Path

from autotune.core.retried import retried
from autotune.processes.child import Child
from autotune.processes.deadline import Deadline


def run_command(
    command: Sequence[str | Path],
    deadline: Deadline,
    limit_s: float,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with further environment variables; returns what it printed.

    Raises ChildTimeout, ChildDied if it was killed with the processes of the deadline, and ChildRaised if it
    cannot be started.
    """
    child = Child(int)
    try:
        with deadline.holding(partial(child.kill, waits=False)):
            limit_s = deadline.left_s(limit_s)
            done: subprocess.CompletedProcess[str] = child.call(
                _run, command, folder, variables or {}, timeout_s=limit_s
            )
            return done
    finally:
        child.kill()


def _run(
    _state: object, command: Sequence[str | Path], folder: Path | None, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run in the child, which has no state."""
    run = partial(subprocess.run, command, capture_output=True, text=True, errors="replace", cwd=folder)
    # a process that another thread of the caller is starting may still have a new program open
    return retried(partial(run, env=os.environ | variables), OSError, ETXTBSY)
