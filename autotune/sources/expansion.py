"""Write out the macros of C, token by token; each token keeps its place in the source."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from autotune.sources.macros import Macro

TOKEN = re.compile(
    r"\s+|[A-Za-z_$][\w$]*+|\.?\d(?:[eEpP][+-]|[\w.'])*+|(?:u8|[uUL])?\"(?:\\.|[^\"\\\n])*+\"|"
    r"'(?:\\.|[^'\\\n])*+'|\#\#|::|->|.",
    re.DOTALL,
)
_MAX_TOKENS = 1_500_000  # of a source; macros that use each other twice make it ever longer

# Its text and where it stands in the source; below 0, `-place - 1` of the macro that it comes from.
Token = tuple[str, int]


class UnclosedCall(Exception):
    """The call of a macro does not end with the text."""


class TooLong(ValueError):
    """What macros stand for is too long to be read."""


def expanded(
    tokens: Iterable[Token],
    macros: Mapping[str, Macro],
    kept: Collection[str] = (),
    outer: Collection[str] = (),
    *,
    is_sure: bool = False,
    most: int = _MAX_TOKENS,
) -> list[Token]:
    """Tokens with what macros stand for in their place.

    Args:
        tokens: Of a text without comments and directives.
        macros: What names stand for; one without a text is left alone.
        kept: Names that stay.
        outer: Macros that are being written out, in whose text they do not stand for anything.
        is_sure: Leave alone what may stand for something else.
        most: Tokens of the result.

    Raises:
        UnclosedCall: A macro's call does not end.
        TooLong: The result is.
    """
    left, found = [*tokens][::-1], []
    active = [*outer]
    total = len(left)
    while left:
        text, place = left.pop()
        if text == "":  # the end of what a macro stands for
            active.remove(left.pop()[0])
            continue
        macro = macros.get(text)
        is_left = macro is None or not macro.bodies or (is_sure and not macro.is_sure)
        if macro is None or is_left or text in kept or text in active:
            found.append((text, place))
            continue
        body = macro.bodies[-1]
        if macro.has_arguments:
            if not _is_called(left):
                found.append((text, place))
                continue
            given = _arguments(left, active)
            meaning = _with_arguments(body, macro.parameters, given, macros, kept, active)
        else:
            meaning = TOKEN.findall(body)
        active.append(text)
        origin = place if place < 0 else -place - 1
        left += [(text, origin), ("", origin)]
        left += [(part, origin) for part in reversed(_pasted(meaning))]
        total += len(meaning)
        if total > most:
            raise TooLong("its macros stand for more text than can be read")
    return found


def _is_called(left: list[Token]) -> bool:
    """True if a bracket is next; raises UnclosedCall where nothing is."""
    place = len(left)
    while place:
        place -= 1
        if left[place][0] == "":
            place -= 1
        elif not left[place][0].isspace():
            return left[place][0] == "("
    return False


def _arguments(left: list[Token], active: list[str]) -> list[list[Token]]:
    """Take the arguments of a call, up to its closing bracket."""
    given: list[list[Token]] = [[]]
    depth = 0
    while left:
        token = left.pop()
        text = token[0]
        if text == "":
            active.remove(left.pop()[0])
            continue
        if text == "," and depth == 1:
            given.append([])
            continue
        depth += (text == "(") - (text == ")")
        if depth == 0:
            return given
        if depth > 1 or text != "(":
            given[-1].append(token)
    raise UnclosedCall


def _with_arguments(
    body: str,
    parameters: tuple[str, ...],
    given: list[list[Token]],
    macros: Mapping[str, Macro],
    kept: Collection[str],
    active: Collection[str],
) -> list[str]:
    """The text of a macro with its arguments, written out except beside `#` and `##`."""
    names = list(parameters)
    if names and names[-1].endswith("..."):
        names[-1] = names[-1][:-3].strip() or "__VA_ARGS__"
        following = given[len(names) - 1 :]
        joined = [
            token for number, part in enumerate(following) for token in ([(",", 0)] if number else []) + part
        ]
        given = [*given[: len(names) - 1], joined]
    values = dict(zip(names, given, strict=False))
    words = [word for word in TOKEN.findall(body) if not word.isspace() or "#" not in body]
    if "#" in body:
        words = TOKEN.findall(re.sub(r"\s*##\s*", "##", re.sub(r"(?<!#)#\s+(?=\w)", "#", body)))
    tokens_out: list[str] = []
    for place, word in enumerate(words):
        if word not in values:
            tokens_out.append(word)
            continue
        raw = [text for text, _ in values[word]]
        before, after = words[place - 1 : place], words[place + 1 : place + 2]
        if before == ["#"]:
            line = "".join(" " if text.isspace() else text for text in raw)
            tokens_out[-1] = '"' + line.strip().replace("\\", "\\\\").replace('"', '\\"') + '"'
        elif before == ["##"] or after == ["##"]:
            tokens_out.append("".join(raw).strip())
        else:
            tokens_out += [text for text, _ in expanded(values[word], macros, kept, active)]
    return tokens_out


def _pasted(words: list[str]) -> list[str]:
    """Words with those on both sides of `##` as one."""
    if "##" not in words:
        return words
    return TOKEN.findall("".join(words).replace("##", ""))
