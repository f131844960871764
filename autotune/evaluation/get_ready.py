"""Imports what the processes of a search need; imports little itself, so that a command can begin with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.compilers.base import TRITON_MODULE
from autotune.core.launch_plan import TRITON
from autotune.processes.fork_server import preload

if TYPE_CHECKING:
    from autotune.devices.listing import Listing


def get_ready(listing: Listing, dialect: str | None) -> None:
    """Import in the background, once, what the processes of a search need, while files are being read.

    Args:
        listing: That of the devices that the search chooses from.
        dialect: The kernel's; None while it is not known.
    """
    if dialect == TRITON:
        preload((TRITON_MODULE,), server=TRITON)
    preload(("autotune.evaluation.compiler_pool", "autotune.evaluation.device_samples"))
    listing.load_packages()
