"""Python processes that wait to be told what to do, some of them started before they are needed.

A process leads its own group, dies with its parent (Linux), and is started by command line, not by fork or
by re-importing the caller's main module, so a script that uses autotune needs no `__main__` guard.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, BinaryIO

_BOOT = """
import sys
sys.path[:] = {path!r}
from importlib import import_module
from autotune.processes.child import serve
for name in {imports!r}:
    import_module(name)
serve({fd}, {parent})
"""


@dataclass(frozen=True)
class Process:
    """A running process, the pipe to it, and what it prints."""

    popen: subprocess.Popen[bytes]
    pipe: Connection[Any, Any]
    output: BinaryIO


def start(imports: Sequence[str] = (), wrapper: Sequence[str] = ()) -> Process:
    """Start a process that imports some modules and waits; `wrapper` is a command line that it is run by."""
    output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
    ours, theirs = Pipe()
    parent = 0 if wrapper else os.getpid()
    boot = _BOOT.format(path=sys.path, imports=tuple(imports), fd=theirs.fileno(), parent=parent)
    popen = subprocess.Popen(
        [*wrapper, sys.executable, "-c", boot],
        pass_fds=[theirs.fileno()],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )
    theirs.close()
    return Process(popen, ours, output)


_spares: dict[tuple[str, str], list[Process]] = {}


def keep_ready(kind: str, count: int, imports: Sequence[str]) -> None:
    """Start processes for later, while there is something else to wait for."""
    _spares.setdefault((kind, str(Path.cwd())), []).extend(start(imports) for _ in range(count))


def take(kind: str) -> Process:
    """A process that was kept ready for this kind of work in this folder, or else a new one."""
    waiting = _spares.get((kind, str(Path.cwd())))
    return waiting.pop() if waiting else start()


def discard_spares() -> None:
    """End the processes that nobody took."""
    for waiting in _spares.values():
        for process in waiting:
            process.popen.kill()
            process.popen.wait()
            process.pipe.close()
            process.output.close()
    _spares.clear()
