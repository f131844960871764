"""Imports what the processes of a search need; light itself, so a command can begin with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.compilers.base import TRITON_MODULE
from autotune.devices import BUILT_IN, INTERPRETER
from autotune.processes.fork_server import preload

if TYPE_CHECKING:
    from autotune.devices.listing import Listing


def import_ahead(listing: Listing, *, triton: bool) -> None:
    """Import what the processes of a search need, once, in the background, while files are being read.

    The search chooses from the devices of `listing`.
    """
    packages = [BUILT_IN[name].module for name in listing.names if name in BUILT_IN]
    if triton and listing.names != (INTERPRETER,):  # the interpreter imports Triton in its own way
        packages.append(TRITON_MODULE)
    preload(("autotune.evaluation.compiler_pool", "autotune.evaluation.device_samples", *packages))
