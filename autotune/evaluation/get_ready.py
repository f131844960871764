"""Imports what the processes of a search need; imports little itself, so that a command can begin with it."""

from __future__ import annotations

from autotune.processes.fork_server import preload


def get_ready() -> None:
    """Import in the background, once, what the processes of a search need, while files are being read."""
    preload(("autotune.evaluation.compiler_pool", "autotune.evaluation.device_samples"))
