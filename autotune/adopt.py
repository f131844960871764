"""A result for a device or a size that has none, from a few runs: a search that others have made short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from autotune.cache import read_entry, read_roots
from autotune.errors import InputError
from autotune.model import ADOPTION, Entry
from autotune.priors import gather
from autotune.rig import Observer, Options, default_journal
from autotune.session import Result, search
from autotune.targets import Bound


def searched(bound: Bound, cache: Path | None) -> Entry | None:
    """What a search, and no probe, has found for this device, problem and element type; None: nothing.

    A configuration that the space does not have, or has no more, is of no search of it.
    """
    problem = bound.space.problem
    for root in read_roots(cache):
        entry = read_entry(root, bound.device.slug, bound.spec.kernel, problem.sizes, problem.dtype)
        if entry is not None and entry.config in bound.space and not entry.provenance.is_probe:
            return entry
    return None


def adopt(bound: Bound, options: Options, observer: Observer) -> Result:
    """Try what other devices and sizes promise most of, verify and time as every search, store the best.

    Raises InputError where nothing is known elsewhere, and as `search` does. Where `searched` finds something
    there is nothing to adopt, and what is stored would replace it.
    """
    priors = gather(bound, options.cache, options.journal or default_journal(bound))
    if not priors:
        raise InputError(
            f"{bound.spec.kernel}: nothing is known of it on another device or for another size, so there is "
            "nothing to adopt: autotune search finds a first result"
        )
    return search(bound, replace(options, engine=ADOPTION), observer, priors)
