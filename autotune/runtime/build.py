"""Compiles what a cache serves for NVIDIA architectures, into a copy of the cache; needs no GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from autotune.compilers.known_compilers import lazy_compiler
from autotune.compilers.source_text import SourceText, render
from autotune.core.launch_plan import symbol_names
from autotune.core.records import DeviceInfo, Tier
from autotune.errors import CompileError, InputError, NoConfig, SetupError, Untrusted
from autotune.hardware.architectures import architecture
from autotune.processes.files import locked, replace_file, writing
from autotune.runtime.shipped import (
    FOLDER,
    BinaryKey,
    Manifest,
    binary_key,
    manifest_text,
    read_manifest,
    write_binary,
)
from autotune.runtime.trust import Trust
from autotune.serving.best import Best
from autotune.serving.cache import Folder, read_roots, store
from autotune.serving.device_records import DeviceRecord, device_records
from autotune.serving.lookup import best_config

_OTHER_DIALECTS = {".cl": "opencl", ".py": "python"}  # by suffix, unless Triton or `__global__` is in it


class Built(NamedTuple):
    """The binaries of one kernel for one architecture."""

    kernel: str
    architecture: str
    configurations: int
    size_bytes: int


@dataclass(frozen=True)
class _Results:
    """A cache's results of a kernel, for one or more devices."""

    kernel: str
    cache: Folder | None
    is_trusted: bool
    records: tuple[DeviceRecord, ...]

    @property
    def architectures(self) -> list[str]:
        """The architectures of the NVIDIA GPUs with results."""
        names = {known.device.architecture for known in self.records}
        return sorted(name for name in names if name.startswith("sm_"))

    def devices(self, name: str) -> list[DeviceInfo]:
        """The devices of an architecture with results, else its example device; raises InputError."""
        known = [item.device for item in self.records if item.device.architecture == name]
        return known or [architecture(name).device]

    def served(self, device: DeviceInfo) -> Iterator[Best]:
        """Every configuration that may be served: for problems with a result, the variants, the default."""
        problems = dict.fromkeys(
            (entry.dtype, tuple(entry.sizes.items()), entry.data)
            for known in self.records
            for entry in known.record.entries
        )
        for dtype, sizes, data in problems:
            with suppress(NoConfig):
                best = best_config(
                    self.kernel,
                    device,
                    dtype=dtype,
                    strict=False,
                    min_match=Tier.DEFAULT,
                    on_miss=None,
                    cache=self.cache,
                    data=data or None,
                    **dict(sizes),
                )
                yield best
                yield replace(best, config=best.record.default)
                for table in best.record.variants:
                    if table.dtype == dtype:
                        yield from (replace(best, config=config) for config in table.configs)

    def symbols(self, best: Best) -> Iterator[str]:
        """The kernels and variables that a configuration's launches use, at every size with a result."""
        for sizes in {tuple(entry.sizes.items()) for known in self.records for entry in known.record.entries}:
            with suppress(InputError):  # the configuration is not valid for these sizes
                launches, arguments = best.launch(**dict(sizes)), best.arguments(**dict(sizes))
                yield from symbol_names(launches, [item for item in arguments if item.symbol])


def build(
    kernel: str,
    source: SourceText,
    output: Path,
    architectures: Sequence[str],
    cache: Folder | None,
    trust: Trust,
) -> list[Built]:
    """Write the kernel's results and the binaries of what is served from them to a folder, as a cache.

    For each architecture and every element type and size with a result, this is what its devices are served,
    or would be; the tables of variants; and the default. Without `architectures`, the architectures of the
    devices with results are taken.

    Raises:
        NoConfig: The kernel has no results.
        Untrusted: An option that the cache is not trusted with.
        InputError: The kernel is not for CUDA; the output is a file; an architecture is unknown; or none is
            given and no NVIDIA GPU has results.
        SetupError: A configuration does not compile.
        WriteError: The folder cannot be written.
    """
    is_trusted = all(map(trust.covers, read_roots(cache)))
    results = _Results(kernel, cache, is_trusted, tuple(device_records(kernel, cache)))
    _require_cuda(source)
    if output.is_file():
        raise InputError(f"{output}: is a file; expected a folder for the binaries")
    names = list(architectures) or results.architectures
    if not names:
        raise InputError(f"{kernel}: no NVIDIA GPU has results; name architectures, such as sm_90")
    devices = {name: results.devices(name) for name in names}
    folder = output / FOLDER
    with writing(output):
        folder.mkdir(parents=True, exist_ok=True)
        built = [_build(results, source, folder, name, devices[name]) for name in names]
        for known in results.records:  # once all compiled: a part must not look like the whole
            store(output, known.device, replace(known.record, source=""))
        kind = results.records[0].record.compiler
        used = {name: lazy_compiler(name, kind).name for name in names}
        with locked(folder):  # another build may add its architectures
            old = read_manifest(folder, kernel)
            kept = old.compilers if old and old.source_sha256 == source.sha256 else {}
            manifest = Manifest(source.path.name, source.sha256, {**kept, **used})
            replace_file(folder / f"{kernel}.json", manifest_text(manifest))
    return built


def _require_cuda(source: SourceText) -> None:
    """Raise InputError for a kernel that no CUDA compiler takes; portable.h has `__global__`, too."""
    dialect = _OTHER_DIALECTS.get(source.path.suffix)
    if dialect and not source.is_triton and "__global__" not in source.text:
        raise InputError(
            f"{source.path}: the kernel is written in dialect {dialect!r}, not for CUDA; only binaries "
            "for NVIDIA GPUs are built: on other devices, load_kernel compiles the source"
        )


def _build(
    results: _Results, source: SourceText, folder: Path, name: str, devices: Sequence[DeviceInfo]
) -> Built:
    """Compile for one architecture, which `devices` have."""
    wanted: dict[BinaryKey, set[str]] = {}
    examples: dict[BinaryKey, Best] = {}
    for device in devices:
        for best in results.served(device):
            try:
                options = best.options("cuda", is_trusted=results.is_trusted)
            except Untrusted:
                raise
            except InputError:  # an option depends on sizes without a result
                continue
            key = binary_key(source, name, best.record.compiler, best.defines, options)
            wanted.setdefault(key, set()).update(results.symbols(best))
            examples[key] = best
    size_bytes = 0
    for key, symbols in wanted.items():
        if not symbols:  # valid for no size
            continue
        text = render(source, examples[key].defines)
        try:
            binary = lazy_compiler(name, key.kind).compile(text, key.options, sorted(symbols))
        except CompileError as error:
            raise SetupError(f"{source.path}: {name}: {examples[key].config}: {error}") from None
        size_bytes += write_binary(folder, key, binary)
    return Built(results.kernel, name, sum(map(bool, wanted.values())), size_bytes)
