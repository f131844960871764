"""Sets the clock and the power limit of a device for a measurement, and restores them.

While settings are changed, a record in the user's cache folder holds the old values, and the process keeps
it locked. A record without a lock is left from a killed process: whoever finds it restores the values.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from autotune.core.launch_plan import Settings
from autotune.errors import CannotSet, LaunchError
from autotune.processes.files import lock, user_folder
from autotune.processes.own_files import open_own


class ClockControl(Protocol):
    """The settings of one device, by the names of DEVICE_SETTINGS; methods raise LaunchError."""

    @property
    def address(self) -> tuple[str, str]:
        """Identifies the device in another process: `nvml` or `fake`, and its number."""

    def read(self, name: str) -> float:
        """The present value, for `set` to restore later."""

    def allowed(self, name: str) -> Sequence[int]:
        """The values that the device takes, in ascending order."""

    def set(self, name: str, value: float) -> None:
        """Set one value and wait until it holds."""


class Clocks:
    """The settings of one device; `restore` ends what the first `apply` began."""

    def __init__(self, control: ClockControl | None = None) -> None:
        """Change nothing yet; None means that the backend cannot change the device's settings."""
        self._control = control
        self._record: int | None = None  # the open and locked file, while settings may be changed
        self._original: dict[str, float] = {}
        self._applied: dict[str, int] = {}

    def check(self, names: Iterable[str]) -> None:
        """Raise CannotSet unless these settings can be changed: each is set to its present value."""
        try:
            for name in sorted(names):
                control = self._opened()
                control.set(name, control.read(name))
        except LaunchError as error:
            raise CannotSet(str(error)) from None
        finally:
            self.restore()

    def apply(self, settings: Settings) -> None:
        """Set the values that differ; raises LaunchError for a value that the device refuses."""
        for name, value in settings:
            if value == self._applied.get(name, 0):
                continue
            control = self._opened()
            if value and value not in (allowed := control.allowed(name)):
                near = min(allowed, key=lambda level: abs(level - value))
                raise LaunchError(
                    f"{name} {value}: the device takes {allowed[0]} to {allowed[-1]}, and {near} is the "
                    "nearest; 0 leaves it as it is"
                )
            if name not in self._original:
                self._original[name] = control.read(name)
                self._write(control)
            self._applied[name] = value  # first, so that a change that fails half-way is restored, too
            control.set(name, value or self._original[name])

    def restore(self) -> None:
        """Set everything back, and unlock the record."""
        if self._record is None:
            return
        assert self._control is not None
        for name in list(self._applied):
            self._control.set(name, self._original[name])
            del self._applied[name]
        self._original.clear()
        os.truncate(self._record, 0)
        os.close(self._record)
        self._record = None

    def _opened(self) -> ClockControl:
        """The control, with the record locked: another process of this user may be measuring."""
        if self._control is None:
            raise LaunchError(
                "its clock and power limit cannot be set: that takes an NVIDIA GPU, through cuda or pycuda, "
                "and the package nvidia-ml-py; remove `device` from the space"
            )
        if self._record is None:
            record = _locked_record("-".join(self._control.address).replace(os.sep, "-"))
            try:
                _put_back(record)
            except LaunchError:
                os.close(record)
                raise
            self._record = record
        return self._control

    def _write(self, control: ClockControl) -> None:
        """Write the values to restore, before the first change."""
        assert self._record is not None
        data = json.dumps({"device": control.address, "settings": self._original}).encode()
        os.pwrite(self._record, data, 0)
        os.fsync(self._record)


def restore_abandoned() -> None:
    """Restore values that killed processes left changed; what the device refuses waits for a later start."""
    for path in user_folder("clocks").glob("*.json"):
        with suppress(OSError, LaunchError):
            record = open_own(path, os.O_RDWR)
            try:
                if lock(record, wait=False):
                    _put_back(record)
            finally:
                os.close(record)


def _locked_record(name: str) -> int:
    """Open and lock the record of one device; raises LaunchError if it cannot be written."""
    folder = user_folder("clocks")
    try:
        record = open_own(folder / f"{name}.json", os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise LaunchError(f"{folder}: clocks cannot be noted before a change: {error.strerror}") from None
    lock(record)
    return record


def _put_back(record: int) -> None:
    """Restore the values in a record, if any, and empty it; the caller has locked it."""
    text = os.pread(record, os.fstat(record).st_size, 0)
    try:
        noted = json.loads(text)
    except ValueError:  # empty, or half written: nothing was changed yet
        noted = {"settings": {}}
    for name, value in noted["settings"].items():
        _control(*noted["device"]).set(name, value)
    os.truncate(record, 0)


def _control(kind: str, place: str) -> ClockControl:
    if kind == "fake":
        from autotune.devices.fake_clocks import FakeControl

        return FakeControl(Path(place))
    from autotune.devices.nvml import NvmlControl

    return NvmlControl(place)
