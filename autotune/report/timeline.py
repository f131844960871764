"""The timeline of a command as a chart needs it: what each process did, by the kind of work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autotune.core.timeline import STAGES
from autotune.errors import InputError
from autotune.interop.files import read_text

_KINDS = {  # by how the name of a span begins
    "compiling": ("compile", "names to compile"),
    "verifying": ("verify", "compare", "launch", "run", "arrays"),
    "timing": ("take", "sample", "energy"),
    "reference": ("reference", "draw", "magnitudes", "keep"),
    "sanitizers": (),  # all that their processes and threads do
    "model": ("fit", "choose", "estimate", "import the model"),
    "waiting": ("wait:",),
    "other work": ("",),
}


def timeline_json(path: Path) -> dict[str, Any]:
    """The kinds of work, and a row for each process and for each thread that works; raises InputError.

    A span has its ends in seconds, the place of its kind and its name; those within it follow it.
    """
    try:
        events = json.loads(read_text(path))["traceEvents"]
        named = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["ph"] == "M"}
        tracks: dict[tuple[int, int], list[tuple[float, float, int, str]]] = {}
        for one in (event for event in events if event["ph"] == "X"):
            place = one["pid"], one["tid"]
            if named[place] != STAGES:  # no thread, and a chart of its own
                kind = _kind(one["name"], f"{named[one['pid'], 0]} {named[place]}")
                began, ended = (round(us / 1e6, 4) for us in (one["ts"], one["ts"] + one["dur"]))
                tracks.setdefault(place, []).append((began, ended, kind, one["name"]))
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not a timeline; expected a file of `autotune search --timeline`") from None
    order = list(dict.fromkeys(process for process, _ in tracks))  # in which they began
    waiting = [*_KINDS].index("waiting")
    rows = [
        {"process": named[process, 0], "thread": named[process, track], "spans": tracks[process, track]}
        for process, track in sorted(tracks, key=lambda place: (order.index(place[0]), place))
        if any(kind != waiting for _, _, kind, _ in tracks[process, track])
    ]
    return {"kinds": [*_KINDS], "rows": rows}


def _kind(name: str, place: str) -> int:
    """The place among the kinds of what a process or a thread does."""
    kinds = [*_KINDS]
    if "sanitizer" in place and not name.startswith(_KINDS["waiting"]):
        return kinds.index("sanitizers")
    return next(number for number, kind in enumerate(kinds) if name.startswith(_KINDS[kind]))
