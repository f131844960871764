"""The devices of this machine that a search uses, and the case in which one of them is enough."""

from __future__ import annotations

from autotune.core.records import DeviceInfo
from autotune.core.trials import Budget
from autotune.devices import Address, choose
from autotune.devices.listing import find_devices
from autotune.errors import InputError
from autotune.evaluation.instance import environment

ALL = "all"
STARTUP_S = 5.0  # that several devices cost more than one, until they measure
TRIAL_S = 0.05  # of a slow kernel; the shipped ones take 2 to 30 ms on an H200


def local_devices(text: str) -> list[tuple[Address, DeviceInfo]]:
    """The devices of this machine that `--devices` names; `all` means all that are like the first GPU.

    Raises InputError unless all are of one model.
    """
    found = find_devices()
    if text == ALL:
        first, info = choose(None, found)
        return [
            (address, other)
            for address, other in found
            if address.backend == first.backend and environment(other, "") == environment(info, "")
        ]
    chosen = dict(choose(name, found) for name in text.split(","))
    (first, info), *others = chosen.items()
    for address, other in others:
        expected, own = environment(info, ""), environment(other, "")
        differing = [f"{key} {own[key]}, not {expected[key]}" for key in own if own[key] != expected[key]]
        if differing:
            raise InputError(f"--devices {text}: {address} is not like {first}: {'; '.join(differing)}")
    return list(chosen.items())


def why_one(count: int, budget: Budget) -> str:
    """The reason why one of so many devices searches as much as all in this budget; empty if more pay."""
    if count < 2:
        return "there is one"
    least_s = STARTUP_S * count / (count - 1)  # from which on all have done more than one
    start = f"{count} devices take {STARTUP_S:g} s longer to start"
    if budget.seconds is not None and budget.seconds <= least_s:
        return f"{start}, which {budget.seconds:g} s do not win back"
    if budget.trials is not None and budget.trials * TRIAL_S <= least_s:
        return f"{start}, which {budget.trials} trials do not win back"
    return ""
