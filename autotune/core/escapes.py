"""Escapes texts of users, files and other programs for terminals, spreadsheets and C.

Each of these gives some characters a meaning. Only this module knows which.
"""

from __future__ import annotations

from unicodedata import category

_KEPT = "\n\t"
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # controls, formats such as the direction of text, separators
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def terminal_text(text: str) -> str:
    r"""A text without terminal commands: ESC becomes `\x1b`; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(letter: str) -> str:
    if letter.isprintable() or letter in _KEPT or category(letter) not in _UNSEEN:
        return letter
    return letter.encode("unicode_escape").decode()


def csv_text(text: str) -> str:
    """A text with a quote in front if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def c_string(text: str) -> str:
    """A text as a string literal of C and C++, without trigraphs: special characters become octal numbers."""
    return f'"{"".join(map(_in_c, text))}"'


def _in_c(letter: str) -> str:
    if letter.isprintable() and letter not in '"\\?':
        return letter
    return "".join(f"\\{byte:03o}" for byte in letter.encode(errors="replace"))
