"""Results as CLBlast's tuners write them, for its `scripts/database/database.py`: version 1.7."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.records import DeviceInfo, Entry, KernelRecord
from autotune.core.text import size_text
from autotune.errors import InputError
from autotune.frameworks.planned_file import PlannedFile, exported_records, require_not_installed, write
from autotune.hardware.names import traits_of_name
from autotune.processes.files import read_foreign
from autotune.serving.cache import Folder
from autotune.serving.device_records import DeviceRecord

_BESIDE = ".provenance"  # database.py takes every file that ends in .json for results
_PRECISIONS = {"float16": "16", "float32": "32", "float64": "64"}
_VENDORS = {  # as CLBlast shortens them
    "Intel(R) Corporation": "Intel",
    "GenuineIntel": "Intel",
    "Advanced Micro Devices, Inc.": "AMD",
    "NVIDIA Corporation": "NVIDIA",
}
_ARCHITECTURES = {"gfx803": "Fiji", "gfx900": "Vega"}


@dataclass(frozen=True)
class _Family:
    """A kernel of CLBlast."""

    name: str  # of its table in the database
    parameters: frozenset[str]  # all that the table has
    usual: Mapping[str, int]  # the sizes of CLBlast's own tuner
    scalars: tuple[str, ...]  # arguments of which the file says the value


_FAMILIES = {  # by kernel
    "Xgemm": _Family(
        "xgemm",
        frozenset(
            ("GEMMK", "KREG", "KWG", "KWI", "MDIMA", "MDIMC", "MWG", "NDIMB", "NDIMC", "NWG", "SA", "SB")
        )
        | {"STRM", "STRN", "VWM", "VWN"},
        dict.fromkeys("MNK", 1024),
        ("alpha", "beta"),
    ),
    "XaxpyFastest": _Family("xaxpy", frozenset(("VW", "WGS", "WPT")), {"n": 4_194_304}, ("alpha",)),
}


def export_clblast(
    kernel: str, folder: Path, device_name: str | None, data: str | None, cache: Folder | None
) -> list[PlannedFile]:
    """Write a kernel's results into a folder, a file for each device and element type.

    `device_name` is CLBlast's name of the device; None takes that of the results. `data` is the content of
    the inputs that was tuned for; None takes the newest result.

    Raises:
        InputError: The kernel is not one of CLBlast's, its results are of several sizes, or a file that is
            there is of another device.
        NoConfig: There are no results.
        CacheError: A file of the cache is damaged.
        WriteError: A file cannot be written.
    """
    require_not_installed(folder, "clblast")
    records = exported_records(kernel, cache, data, device_name)
    files = (file for known in records for file in _planned(known, folder, device_name))
    return write(kernel, files, keeps_old=False)


def _planned(known: DeviceRecord, folder: Path, device_name: str | None) -> Iterator[PlannedFile]:
    """The files of a device; raises InputError."""
    record, (step, *others) = known.record, known.record.launch
    family = _FAMILIES.get(step.entry)
    if family is None or others:
        raise InputError(
            f"{record.kernel}: expected one launch, of a kernel of CLBlast: {', '.join(_FAMILIES)}"
        )
    if record.parameter_names != family.parameters:
        differing = ", ".join(sorted(record.parameter_names ^ family.parameters))
        raise InputError(
            f"{record.kernel}: expected exactly the parameters of CLBlast's {family.name}: "
            f"{', '.join(sorted(family.parameters))}; differing: {differing}"
        )
    place = _device(known.device, device_name)
    for dtype in dict.fromkeys(entry.dtype for entry in record.entries):
        entry = _served_entry(record, family, [item for item in record.entries if item.dtype == dtype])
        content = _content(record, family, entry, place)
        path = folder / f"clblast_{content['kernel_family']}_{content['precision']}_{known.device.slug}.json"
        kept = _kept_results(path, content) if path.exists() else []
        content["results"] += kept
        text = json.dumps(content, indent=2) + "\n"
        labels = tuple(
            ",".join(str(value) for _, value in sorted(item["parameters"].items())) for item in kept
        )
        yield PlannedFile(path, text, {size_text(entry.sizes): (entry, entry.config)}, labels, _BESIDE)


def _served_entry(record: KernelRecord, family: _Family, entries: Sequence[Entry]) -> Entry:
    """The result that CLBlast is to have: of its tuner's size, or the only one; raises InputError."""
    newest = [*{size_text(entry.sizes): entry for entry in entries}.values()]
    usual = [entry for entry in newest if dict(entry.sizes) == family.usual] or newest
    if len(usual) > 1:
        sizes = "; ".join(size_text(entry.sizes) for entry in usual)
        raise InputError(
            f"{record.kernel}: has results of several sizes, and CLBlast's database takes one; tune at "
            f"{size_text(family.usual)}, as CLBlast does, or export from a cache with only one of: {sizes}"
        )
    if usual[0].sizes.keys() != family.usual.keys():
        raise InputError(f"{record.kernel}: name its sizes {', '.join(family.usual)}, as CLBlast does")
    return usual[0]


def _device(device: DeviceInfo, name: str | None) -> dict[str, str]:
    """The fields by which CLBlast finds a device; raises InputError."""
    if device.backend != "opencl":
        raise InputError(f"{device.name}: CLBlast runs OpenCL; tune with --device opencl:0")
    vendor, architecture = _VENDORS.get(device.vendor, device.vendor), ""
    if device.kind == "gpu" and vendor == "AMD":
        if name is None:
            raise InputError(
                f"{device.name}: give CLBlast's name of this GPU with --device-name: the board name in clinfo"
            )
        chip = device.name.partition(":")[0]
        architecture = _ARCHITECTURES.get(chip, chip)
    elif device.kind == "gpu" and vendor == "NVIDIA":
        number = (traits_of_name(device.name).architecture or "").removeprefix("sm_")
        architecture = f"SM{number[:-1]}.{number[-1]}" if number else ""
    return {
        "clblast_device_type": device.kind.upper(),
        "clblast_device_vendor": vendor,
        "clblast_device_architecture": architecture,
        "clblast_device_name": name or device.name.replace("pthread-", ""),
        "device": device.name,
        "platform_vendor": "",
        "platform_version": device.runtime,
        "device_vendor": device.vendor,
        "device_type": device.kind.upper(),
        "device_core_clock": "0",
        "device_compute_units": str(device.compute_units),
        "device_extra_info": "",
    }


def _content(
    record: KernelRecord, family: _Family, entry: Entry, device: Mapping[str, str]
) -> dict[str, Any]:
    """The content of a file. The best comes first: of equal times, CLBlast takes the first."""
    if entry.dtype not in _PRECISIONS:
        raise InputError(f"{record.kernel}: CLBlast has no precision for {entry.dtype}")
    kernel, precision = record.launch[0].entry, _PRECISIONS[entry.dtype]
    variation = re.search(r"_\d+\Z", record.kernel)
    times = {entry.config: 1.0} | dict(entry.relative_times)
    return {
        "kernel_family": family.name + (variation[0] if variation else ""),
        "precision": precision,
        "best_kernel": kernel,
        "best_time": f"{entry.time_ms:.6g}",
        "best_parameters": " ".join(f"{name}={value}" for name, value in sorted(entry.config.items())),
        **{f"arg_{name.lower()}": str(size) for name, size in sorted(entry.sizes.items())},
        **{f"arg_{name}": _scalar(record, name) for name in family.scalars},
        **device,
        "results": [
            {
                "kernel": kernel,
                "time": relative * entry.time_ms,
                "parameters": {**dict(sorted(config.items())), "PRECISION": int(precision)},
            }
            for config, relative in times.items()
        ],
    }


def _scalar(record: KernelRecord, name: str) -> str:
    """The value of an argument as CLBlast prints it; raises InputError."""
    value = next((argument.value for argument in record.arguments if argument.name == name), None)
    try:
        return f"{float(value or ''):.2f}"
    except ValueError:
        raise InputError(f"{record.kernel}: expected a number for the argument {name}") from None


def _kept_results(path: Path, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The other results of a file that is there; raises InputError if it is of another device or size."""
    old = read_foreign(path, partial(_read, like=content["results"][0]), "CLBlast would not read it")
    for name in content.keys() - ("results", "best_time", "best_parameters", "platform_version"):
        if old.get(name) != content[name]:
            raise InputError(
                f"{path}: has {name} {old.get(name)!r}, and the result has {content[name]!r}; write to "
                "another folder"
            )
    known = [result["parameters"] for result in content["results"]]
    return [result for result in old["results"] if result["parameters"] not in known]


def _read(text: str, like: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read a file whose results are of one kernel; raises Damaged or NoJson."""
    old = values.load_object(text)
    for number, item in enumerate(values.items(old.get("results"), "results")):
        place = f"results[{number}]"
        result = values.mapping(item, place)
        parameters = values.mapping_of(values.integer, values.name)(result.get("parameters"), place)
        values.amount(result.get("time"), f"{place}.time")
        if result.get("kernel") != like["kernel"] or parameters.keys() != like["parameters"].keys():
            raise values.Damaged(place, "a result of the same kernel with the same parameters", result)
    return old
