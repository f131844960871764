"""The devices of this machine that a search uses, and the case in which one of them is enough."""

from __future__ import annotations

from autotune.core.trials import Budget
from autotune.devices import choose
from autotune.devices.listing import ALL, Found, Listing
from autotune.errors import InputError
from autotune.evaluation.instance import environment

MORE_S = 1.2  # how much later several devices begin than one, and end after the last trial
TRIAL_S = 0.01  # the shipped kernels take 2 to 30 ms on an H200


def local_devices(text: str, listing: Listing) -> Found:
    """The devices of this machine that `--devices` names; `all` means all that are like the first GPU.

    `listing` is that of `listing_for(text)`. Raises InputError unless all are of one model.
    """
    devices = listing.devices()
    if text == ALL:
        first, info = choose(None, devices)
        return [
            (address, alike)
            for address, alike in devices
            if address.backend == first.backend and environment(alike, "") == environment(info, "")
        ]
    chosen = dict(choose(name, devices) for name in text.split(","))
    (first, info), *others = chosen.items()
    for address, alike in others:
        expected, own = environment(info, ""), environment(alike, "")
        differing = [f"{key} {own[key]}, not {expected[key]}" for key in own if own[key] != expected[key]]
        if differing:
            raise InputError(f"--devices {text}: {address} differs from {first}: {'; '.join(differing)}")
    return list(chosen.items())


def why_one(count: int, budget: Budget) -> str:
    """The reason why one of so many devices is enough for this budget; empty if several try more."""
    if count < 2:
        return "there is only one"
    least_s = MORE_S * count / (count - 1)  # from which on all have done more than one
    start = f"{count} devices take {MORE_S:g} s longer than one to start and end"
    if budget.seconds is not None and budget.seconds <= least_s:
        return f"{start}, which {budget.seconds:g} s do not win back"
    if budget.trials is not None and budget.trials * TRIAL_S <= least_s:
        return f"{start}, which {budget.trials} trials do not win back"
    return ""
