"""Files of configurations that frameworks read: written from the cache, read back, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autotune.frameworks import sglang, vllm
from autotune.frameworks.config_file import Format

__all__ = ["FORMATS", "Format", "format_of"]

FORMATS: Mapping[str, Format] = {  # by the names of `autotune export --format`
    form.name: form for form in (vllm.MOE, sglang.MOE, vllm.PRODUCT, sglang.PRODUCT)
}


def format_of(path: Path) -> Format | None:
    """The format of a file by its name and place; None if the name is of none.

    A folder called as the framework decides; else the spelling that only one of them writes, and vLLM's.
    """
    named = [form for form in FORMATS.values() if form.shape(path.name)]
    placed = [form for form in named if form.package in path.absolute().parts]
    written = [form for form in named if form.spells(path)]
    return next(iter(placed or written or named), None)
