"""Shared text functions: sizes, rates, ratios, suggestions for misspelt names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

MAX_SAID = 20_000  # letters of a message from a compiler, a driver or a kernel
_WARNING = re.compile(r"(?:(?!\berror\b).)*\b(?:warning|remark)\b")  # it may quote a variable `error`
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K"))


def size_text(sizes: Mapping[str, int]) -> str:
    """Sizes for a message: `m=64, n=128`."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "no sizes"


def table_sizes(sizes: Mapping[str, int]) -> str:
    """Sizes for a table or a title: `n=1,000 m=2,000`."""
    return " ".join(f"{name}={size:,}" for name, size in sizes.items())


def volume_text(problems: Iterable[Mapping[str, int]]) -> str:
    """A problem's place on an axis of problems: its only size, else the product of its sizes."""
    names = {name for sizes in problems for name in sizes}
    return names.pop() if len(names) == 1 else "product of the sizes"


def problem_text(sizes: Mapping[str, int], dtype: str | None = None, data: str = "") -> str:
    """The known parts of a problem, for a table or a title: `n=1,000 m=2,000, float32, sorted data`."""
    return ", ".join(filter(None, (table_sizes(sizes), dtype, f"{data} data" if data else "")))


def count_text(count: int, noun: str) -> str:
    """A number of things: `1 trial`, `2,000 trials`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def per_second(rate: float, unit: str) -> str:
    """A rate in the unit that suits it, from KB/s to TB/s for bytes."""
    scale, prefix = next((row for row in _PREFIXES if rate >= row[0]), _PREFIXES[-1])
    return f"{rate / scale:.4g} {prefix}{unit}"


def ratio_text(ratio: float) -> str:
    """The ratio of two numbers: `1.25 x`, `1,234 x`."""
    return f"{ratio:,.0f} x" if ratio >= 999.5 else f"{ratio:.3g} x"


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The end of a message, such as `; did you mean BLOCK_SIZE?`; empty if no known name is similar."""
    import difflib  # only for messages: production code that looks up results imports this module

    words = sorted(known)
    same = [word for word in words if word.lower() == name.lower()]
    similar = same or difflib.get_close_matches(name, words, n=1, cutoff=cutoff)
    if not similar and len(begun := _begun(name, words)) == 1:
        similar = begun
    return f"; did you mean {similar[0]}?" if similar else ""


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a message with the most similar name, else the names that begin like it, else all."""
    words = sorted(known)
    listed = ", ".join(_begun(name, words) or words)
    return nearest(name, words) or (f"; expected one of: {listed}" if words else "; there are none")


def _begun(name: str, words: Sequence[str]) -> list[str]:
    """The words that begin with a name, such as the number of a landmark."""
    return [word for word in words if name and word.lower().startswith(name.lower())]


def shortened(text: str) -> str:
    """A text of at most MAX_SAID letters; a longer one is cut in the middle, with a count of missing letters.

    It then has half as many letters, so it is not cut again when words are put around it.
    """
    if len(text) <= MAX_SAID:
        return text
    begin, end = 3 * MAX_SAID // 8, MAX_SAID // 8
    return f"{text[:begin]}\n[... {len(text) - begin - end:,} letters are left out ...]\n{text[-end:]}"


def first_error(log: str) -> str:
    """The first line of a compiler's log that has an error, else the first line."""
    lines = log.splitlines() or [""]
    errors = (line for line in lines if "error" in line and not _WARNING.match(line))
    return next(errors, lines[0]).strip()
