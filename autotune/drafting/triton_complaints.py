"""Say where Triton refuses a default, and which guesses of the space lead there."""

from __future__ import annotations

from collections.abc import Iterable

from autotune.core.launch_plan import TRITON_TYPES
from autotune.scaffold.triton_guesses import TritonGuess
from autotune.sources.bare_code import WORD
from autotune.sources.triton_places import Place

_OF_TYPES = {"dtype", "type", "types", "pointer", *TRITON_TYPES, *TRITON_TYPES.values()}
_OF_THE_SOURCE = ("NameError", "AttributeError", "TypeError")
_SHOWN = 4


def complaint_text(said: str, place: Place | None, guess: TritonGuess, space: str) -> str:
    """What Triton says in a line, with its place and what to do; `space` is the file of the guesses."""
    if place is None:
        return said
    line = f"{place}: {place.said}"
    if "; " in place.said:  # it has advice already
        return line
    if guessed := _guessed(place, guess):
        return f"{line}; {guessed} guessed: give what your program passes, in {space}"
    return f"{line}; correct that line, or install the Triton that it was written for"


def _guessed(place: Place, guess: TritonGuess) -> str:
    """The guesses that a line depends on, as the subject of a sentence; empty without one."""
    reached, reason = place.parameters(guess.kernel.entry), place.reason
    if not _OF_TYPES.isdisjoint(WORD.findall(reason)):
        arrays = sorted(reached & guess.kernel.roles.keys() - guess.kernel.made.keys())
        return f"the dtype of {_listed(arrays)} is" if arrays else ""
    if reason.startswith(_OF_THE_SOURCE):
        return ""
    known = {**guess.sizes, **guess.default}
    names = {*guess.unsure, *guess.fixed}
    values = [f"{name}={known[name]}" for name in sorted(reached & names & known.keys())]
    return f"{_listed(values)} {'are' if values[1:] else 'is'}" if values else ""


def _listed(names: Iterable[str]) -> str:
    """Names for a sentence, the first few of many."""
    *others, last = [*names][:_SHOWN]
    return f"{', '.join(others)} and {last}" if others else last
