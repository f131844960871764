"""Configurations that an installed framework serves now, which new ones have to beat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from autotune.core.launch_plan import TRITON_USUAL
from autotune.core.records import Config
from autotune.errors import InputError
from autotune.frameworks.config_file import KEY, Entry, Format, load, nearest, quantization_of
from autotune.frameworks.planned_file import package_folders

_FORCED = ("SPLIT_K",)  # launchers set it to 1, whatever a file says


class InstalledConfigs:
    """The entries of the installed framework's files, or its defaults, by shape and number of tokens."""

    def __init__(self, form: Format, device: str, quantization: str | None = None) -> None:
        """Read nothing yet; without a quantization, names have `fp8_w8a8` with blocks, else nothing."""
        self._form, self._device, self._quantization = form, device, quantization
        self._files: dict[str, tuple[Path, Mapping[int, Entry]] | None] = {}

    def entry(self, sizes: Mapping[str, int]) -> tuple[str, Entry] | None:
        """The entry for the sizes of a problem, and where it is from; None where it is not known.

        Raises InputError for sizes that the format does not have.
        """
        form = self._form
        missing = [name for name in (*form.sizes, KEY) if name not in sizes]
        if missing:
            raise InputError(f"--format {form.name}: the space has no size {', '.join(missing)}")
        quantization = quantization_of(sizes) if self._quantization is None else self._quantization
        name = form.name_of(sizes, self._device, quantization)
        if name not in self._files:
            self._files[name] = self._read(name)
        shape = form.shape(name)
        assert shape is not None
        content = self._files[name]
        if content is None:
            default = form.default(shape, sizes[KEY])
            return None if default is None else (f"the default of {form.package}", default)
        path, entries = content
        return str(path), form.launched(shape, entries[nearest(sorted(entries), sizes[KEY])])

    def config(self, sizes: Mapping[str, int], default: Config) -> tuple[Config | None, str]:
        """The entry as a configuration of a space with this default, or None; and where it is from."""
        installed = self.entry(sizes)
        if installed is None:
            return None, f"there is no file, and {self._form.package}'s default is not known here"
        where, entry = installed
        known = {**TRITON_USUAL, **entry}
        values = {name: known[name] for name in default if name in known}
        unknown = [name for name in entry if name not in (*default, *_FORCED)]
        if unknown or len(values) < len(default):
            return None, f"{where}: has other parameters than the space: {', '.join(entry)}"
        return Config(values), where

    def _read(self, name: str) -> tuple[Path, Mapping[int, Entry]] | None:
        """The file that the look-up finds; None without one that it can read."""
        for place in package_folders(self._form.package):
            for folder in _in_order(place / self._form.folder, self._form):
                with suppress(InputError):
                    return folder / name, load(self._form, folder / name).entries
        return None


def _in_order(root: Path, form: Format) -> list[Path]:
    """The folders that a look-up searches: of this version of Triton first, then of others, newest first."""
    if not form.subfolder:
        return [root]
    try:
        own = version("triton").replace(".", "_")
    except PackageNotFoundError:
        own = ""
    above = (root / form.subfolder).parent
    others = sorted(
        above.glob("triton_*"), key=lambda folder: [*map(int, re.findall(r"\d+", folder.name))], reverse=True
    )
    return [root / form.subfolder.format(version=own), *others]
