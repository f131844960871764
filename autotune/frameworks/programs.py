"""Files from which a program's `@triton.autotune` takes a result in place of tuning.

A recorded file says what the program calls its kernels with, and so what its look-up asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.core.launch_plan import TRITON_OPTIONS, TRITON_USUAL, constant_expressions
from autotune.core.records import Config, Entry, Value
from autotune.errors import AutotuneError, InputError
from autotune.frameworks.planned_file import PlannedFile, exported_records, require_not_installed, write
from autotune.recording.tunings import Tuning
from autotune.serving.cache import Folder
from autotune.serving.device_records import DeviceRecord
from autotune.serving.triton_call import launch_of, reader_of
from autotune.serving.validity import KernelOnDevice


@dataclass(frozen=True)
class ServedTuning:
    """A recorded tuning with the result that the program is to take."""

    tuning: Tuning
    entry: Entry
    served: Config
    content: Mapping[str, Any]  # `served` as `triton.Config` has its fields

    @property
    def times_ms(self) -> list[float]:
        """Median, 20% and 80% quantile, as Triton keeps them; of ours, the ends of the interval."""
        return [self.entry.time_ms, *self.entry.interval_ms]


@dataclass(frozen=True)
class ProgramFormat:
    """A kind of file that answers a program's autotuner."""

    package: str  # whose folders only `--install` writes to
    root: Callable[[], Path]  # the folder that is looked in unless an environment variable names another
    subfolder: Callable[[str], str]  # below it, for a device's name
    planned: Callable[
        [Path, Sequence[ServedTuning]], Iterator[PlannedFile]
    ]  # raises InputError for a damaged file
    refused: Callable[[Tuning], str]  # why its look-up never asks; empty if it does


def export_program(
    kernel: str,
    format_: ProgramFormat,
    tunings: Iterable[Tuning],
    folder: Path | None,
    cache: Folder | None = None,
    data: str | None = None,
) -> tuple[list[PlannedFile], list[str]]:
    """Write the results of a kernel where recorded programs look for them.

    Without a folder they are written where the programs look, and old files are kept. `data` is the content
    of the inputs that was tuned for; None takes the newest result.

    Returns:
        What was written, and why recorded tunings have no entry.

    Raises:
        InputError: No recorded tuning can be answered, or a file that is there is damaged.
        NoConfig: There are no results.
        CacheError: A file of the cache is damaged.
        WriteError: A file cannot be written.
    """
    if folder is not None:
        require_not_installed(folder, format_.package)
    records = exported_records(kernel, cache, data)
    functions = {step.entry for known in records for step in known.record.launch if step.constants}
    asked = [tuning for tuning in tunings if tuning.function in functions]
    if not asked:
        called = ", ".join(sorted(functions)) or "this kernel"
        raise InputError(f"{kernel}: the recorded file has no call of {called}")
    by_device: dict[str, list[ServedTuning]] = {}
    left_out = []
    for tuning in asked:
        try:
            known = _device_of(kernel, records, tuning)
            if reason := format_.refused(tuning) or _never_asks(tuning):
                raise InputError(reason)
            answer = _answer(known, tuning)
            by_device.setdefault(known.device.name, []).append(answer)
        except AutotuneError as error:
            left_out.append(f"{tuning.label}: {error}")
    if not by_device:
        raise InputError("; ".join(left_out))
    if folder is not None and len(by_device) > 1 and format_.subfolder("x"):
        raise InputError(f"{folder}: takes results of one device, found some of {', '.join(by_device)}")
    files: list[PlannedFile] = []
    for device, answers in by_device.items():
        place = folder if folder is not None else format_.root() / format_.subfolder(device)
        files += format_.planned(place, answers)
    return write(kernel, files, keeps_old=folder is None), left_out


def _device_of(kernel: str, records: Iterable[DeviceRecord], tuning: Tuning) -> DeviceRecord:
    """The device with results for the program's target; raises InputError."""
    backend, _, number = tuning.target.partition(":")
    wanted = f"sm_{number}" if backend == "cuda" else number
    fitting = [known for known in records if known.device.architecture == wanted]
    if len(fitting) != 1:
        names = ", ".join(known.device.name for known in fitting) or f"no {wanted}"
        raise InputError(f"the program ran on {wanted}, but {kernel} has results of {names}")
    return fitting[0]


def _answer(tuned: DeviceRecord, tuning: Tuning) -> ServedTuning:
    """The result for the call that was recorded; raises InputError."""
    record = tuned.record
    reader = reader_of(record, tuning.function, tuning.passed)
    sizes, named = reader.problem(tuning.given)
    dtype = named or record.dtypes[0]
    fitting = [item for item in record.entries if (item.sizes, item.dtype) == (sizes, dtype)]
    if not fitting:
        text = ", ".join(f"{name}={value}" for name, value in sizes.items())
        raise InputError(f"no result for {text}, {dtype}; to tune it: autotune search --recorded FILE")
    entry = fitting[-1]
    before = Config(
        {name: value for name, value in tuning.best.items() if name in entry.config and value is not None}
    )
    served = next((item for item in (before, record.default) if item in entry.ties), entry.config)
    kernel = KernelOnDevice(record, tuned.device, dtype)
    known = kernel.values(served, sizes)
    step = launch_of(record.kernel, record.launch, tuning.function)
    launched = kernel.launched(served, sizes)  # empty if that cannot be evaluated
    if not launched or not launched[record.launch.index(step)]:
        raise InputError(f"the best configuration does not launch {tuning.function}: {served}")
    constants = {name: known[text] for name, text in constant_expressions(step).items() if text in known}
    return ServedTuning(tuning, entry, served, _content(tuning, constants, served))


def _content(tuning: Tuning, constants: Mapping[str, Value], served: Config) -> dict[str, Any]:
    """The fields of a configuration that the program can take; raises InputError."""
    wanted = set(tuning.parameters)
    if missing := wanted - constants.keys():
        raise InputError(
            f"the program's configurations set {', '.join(sorted(missing))}, which the space does not"
        )
    for name in sorted(constants.keys() - wanted - {*TRITON_OPTIONS}):
        if name not in tuning.scalars:
            if name in served:
                raise InputError(f"the program's configurations do not set {name}")
        elif tuning.scalars[name] != constants[name]:
            raise InputError(
                f"the program passes {name}={tuning.scalars[name]}, but the result is for {constants[name]}"
            )
    options = {name: constants.get(name, TRITON_USUAL.get(name)) for name in TRITON_OPTIONS}
    return {
        "kwargs": {name: constants[name] for name in tuning.parameters},
        **options,
        "pre_hook": None,
        "ir_override": None,
    }


def _never_asks(tuning: Tuning) -> str:
    """The reason why no autotuner looks for a result, or takes one; empty if it does."""
    if tuning.configurations < 2:
        return "the program has one configuration, so its autotuner has nothing to choose"
    if tuning.has_hook:
        return "a configuration has a pre_hook, which a file cannot hold"
    return ""
