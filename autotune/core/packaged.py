"""The data folders that come with autotune."""
# ruff: noqa: PTH100, PTH112, PTH120
# Strings only: a look-up in production must not import pathlib.

from __future__ import annotations

import os


def packaged_folder(name: str) -> str:
    """A data folder (kernels, spaces, cache): the one in the installed package, else the checkout's."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = f"{package}/data/{name}"
    return installed if os.path.isdir(installed) else f"{os.path.dirname(package)}/{name}"
