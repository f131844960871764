"""The devices of this machine that `--devices` names."""

from __future__ import annotations

from autotune.devices import choose
from autotune.devices.listing import ALL, Found, Listing
from autotune.errors import InputError
from autotune.evaluation.instance import environment


def local_devices(text: str, listing: Listing) -> Found:
    """The devices of this machine that `--devices` names; `all` means all that are like the first GPU.

    `listing` is that of `listing_for(text)`. Raises InputError unless all are of one model.
    """
    found = listing.devices()
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
