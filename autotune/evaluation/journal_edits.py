"""Edits since a journal was begun: a description, and the trials that still hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from autotune.core.records import Config
from autotune.core.trials import Status, Trial

KeyOf = Callable[[Config], str | None]  # the key of a configuration now; None if the space has it no longer
ARGUMENT = "argument "  # begins the name of the note of an argument
WORKLOAD = "workload"  # the note that has a hash of inputs and launches
UNKNOWN = "unknown"  # names files that a compiler reads and no hash covers
_HASHED = {  # the subjects of the hashes in a header
    "source": "the kernel's source or a file that it includes",
    "reference": "the reference's file or a module that it imports",
    "arguments": "arguments, verify_sizes or tolerances in the space file",
    "special": "the special values in the space file",
    "variants": "the variants of the inputs in the space file",
}


@dataclass(frozen=True)
class JournalChanges:
    """The changes since a journal was begun, and the trials that still hold."""

    changes: tuple[str, ...]  # what has changed, in words
    kept: tuple[Trial, ...]  # trials that still hold, with their present keys
    is_harmless: bool  # True if every trial holds, and nothing has to be verified again


def edit_of(
    stored: Mapping[str, Any],
    header: Mapping[str, str],
    notes: Mapping[str, str],
    trials: Iterable[Trial],
    key_of: KeyOf,
) -> JournalChanges | None:
    """Compare a journal's header with the present search's; None if they agree.

    A trial holds if its key still does. If only verify_sizes, the tolerance, the special values, the variants
    or the reference have changed, a trial with a time holds, too: the last round verifies the best few again.

    `stored` is the journal's first line; `header` and `notes` are what it should have. `key_of` gives the key
    of a configuration in the present search.
    """
    changed = [name for name, value in header.items() if stored.get(name) != value]
    if not changed:
        return None
    gone = [name for name in stored if name.startswith(ARGUMENT) and name not in notes]
    noted = [name for name in (*notes, *gone) if stored.get(name) != notes.get(name)]
    is_only_checked = set(changed) <= {"arguments", "reference", "special", "variants"}
    is_same_work = WORKLOAD in notes and stored.get(WORKLOAD) == notes[WORKLOAD]
    kept, every = [], list(trials)
    may_hold = every if is_only_checked else []
    for trial in may_hold:
        key = key_of(trial.config)
        is_timed = trial.status is Status.OK
        is_same = key == trial.key and (is_timed or "reference" not in changed)
        if key is not None and (is_same or (is_timed and is_same_work)):
            kept.append(replace(trial, key=key))
    is_harmless = changed == ["arguments"] and {trial.key for trial in every} == {trial.key for trial in kept}
    told = ["kernel"] if "kernel" in changed else changed  # in another kernel all is different
    texts = [text for name in told for text in _changes(name, noted, stored, header, notes)]
    return JournalChanges(tuple(texts), tuple(kept), is_harmless)


def _changes(
    name: str,
    noted: Iterable[str],
    stored: Mapping[str, Any],
    header: Mapping[str, str],
    notes: Mapping[str, str],
) -> list[str]:
    """The changes of one entry of a header, in words."""
    told = [note for note in noted if note != WORKLOAD]
    if UNKNOWN in header and name in ("source", UNKNOWN):
        return [f"perhaps what {header[UNKNOWN]} reads, which cannot be known"] if name == "source" else []
    if name == "arguments" and told:
        return [f"{note} was {stored.get(note, 'missing')}, is {notes.get(note, 'missing')}" for note in told]
    if name == "verification":
        return ["this version of autotune verifies more"]
    if name in _HASHED:
        return [_HASHED[name]]
    return [f"{name} was {stored.get(name)!r}, is {header[name]!r}"]
