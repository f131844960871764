"""Find the macros that a source leaves to its user, and what it says of their values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autotune.core.brackets import split_arguments
from autotune.core.c_types import LOCAL_QUALIFIERS, QUALIFIERS, SCALARS
from autotune.sources.macro_reach import Unseen, unseen_macros

DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\(?)[ \t]*([^\n]*)$", re.MULTILINE)
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
TEMPLATE = re.compile(r"\btemplate\s*<([^;{}()]*?)>")
_FUNCTION_LIKE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)\n]*)\)[ \t]*([^\n]*)$", re.MULTILINE)
_GUARDED = re.compile(
    r"^[ \t]*#[ \t]*(?:ifndef[ \t]+|if[ \t]+!\s*defined\s*\(?[ \t]*)(\w+)[ \t]*\)?[ \t]*\n"
    r"[ \t]*#[ \t]*define[ \t]+\1\b[ \t]*([^\s][^\n]*)$",
    re.MULTILINE,
)
_GROUP = re.compile(  # defaults that one macro of the user switches off together
    r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)[ \t]*\n((?:[ \t]*(?:#[ \t]*define[ \t]+\w+[ \t]+[^\n]*)?\n)+)"
    r"[ \t]*#[ \t]*(?:endif|else)\b",
    re.MULTILINE,
)
_COMMENTED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\d+)[ \t]*(?://|/\*)([^\n]*)", re.MULTILINE)
_LIST = re.compile(r"(?<![\w.])\d+(?:(?:\s*,|\s*\||\s+or\b|\s*,\s*or\b)\s*\d+)+(?![\w.]*\w)")
_BRACKETED = re.compile(rf"[(\[{{]\s*({_LIST.pattern})\s*[)\]}}]")
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b([^\n]*)$", re.MULTILINE)
_WANTED = re.compile(r"(?<![!\w])(\w+)\s*==\s*(\d+)\b|\A[\s(]*([A-Za-z_]\w*)[\s)]*\Z")
_TEST = re.compile(r"^[ \t]*#[ \t]*(ifdef|ifndef|if|elif)\b([^\n]*)$", re.MULTILINE)
_DEMANDED = re.compile(  # a macro that the user has to define
    r"^[ \t]*#[ \t]*if(?:ndef|[ \t]*!\s*defined)\b[^\n]*\n\s*#[ \t]*error\b[^\n]*\n\s*#[ \t]*endif\b",
    re.MULTILINE,
)
_COMPARED = re.compile(r"(?:[(&|!,?:=]|\b(?:el)?if|\breturn)\s*\b([A-Za-z_]\w*)\s*[=!]=\s*(\w+)")
_DECLARED = re.compile(
    r"(?:\bconstexpr|^(?:static[ \t]+)?const)[ \t]+(?:static[ \t]+|const[ \t]+)*"
    r"(?:unsigned(?:[ \t]+int)?|int|long|size_t|u?int\d+_t|auto)[ \t]+(\w+)[ \t]*=[ \t]*([\w \t+*/()-]+);",
    re.MULTILINE,
)
_VARIABLE = re.compile(rf"\b(?:{'|'.join(sorted(SCALARS, key=len, reverse=True))})\s+\**\s*(\w+)")
_PRODUCT = re.compile(r"\(?\s*\w+(?:\s*\*\s*\w+)*\s*\)?")
_DEPTH = 4  # of constants, one in another
_FUNCTION = re.compile(
    r"(?:^|[;}])[ \t]*((?:[A-Za-z_]\w*+[\s*]++)+)\w+\s*\((?:[^;{}()]|\([^;{}()]*\))*\)\s*\{", re.M
)
_EXTENSION = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+OPENCL\b[^\n]*$", re.MULTILINE)
_INTEGER = re.compile(r"\(?\s*(\d+)[uUlL]*\s*\)?")
_CONVENTION = re.compile(r"(?:block|tile|work|vector)_size(?:_[xyz])?|work_per_thread(?:_[xyz])?")
_IMAGE = re.compile(r"(?i)textures?|image|_tex")
_BUILT_IN = re.compile(
    r"__\w*|DTYPE\w*|CLK_\w+|CL_\w+|CUDA\w*|(?:FLT|DBL|HALF|FP)_\w+|"
    r"(?:U?CHAR|SCHAR|U?SHRT|U?INT|U?LONG|U?LLONG|SIZE)_(?:MAX|MIN|BIT|WIDTH)|"
    r"M_(?:E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)(?:_[FH])?|"
    r"NULL|INFINITY|NAN|HUGE_VALF?|TRUE|FALSE|NDEBUG|MAXFLOAT|cl_(?:khr|amd|intel|nv)_\w+|defined|true|false"
)


@dataclass(frozen=True)
class Macro:
    """A macro that the source uses and leaves to its user.

    `default` is its value if the user does not define it. `names` are the undefined constants and `numbers`
    the numbers that it is compared with. `test` is how the preprocessor tests it: "if" its value, "ifdef" its
    definition only, "switch" to leave out the defaults of others, "" not at all. `listed` are the values in a
    comment behind its default.
    """

    name: str
    default: str | None
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    test: str = ""
    listed: tuple[int, ...] = ()


def find_macros(
    text: str, code: str, plain: str, taken: Collection[str], undefined: Collection[str]
) -> Iterator[Macro]:
    """Find macros that are undefined, or defined only as a default, in the order of their use.

    Args:
        text: The source.
        code: The source without comments and strings.
        plain: The code without preprocessor directives.
        taken: Names that mean something else, such as arguments.
        undefined: Words that a compiler does not know.
    """
    groups = _defaults_together(code)
    together = [pair for found in groups.values() for pair in found]
    defaults = {name: value.strip() for name, value in (*_GUARDED.findall(code), *together)}
    defined = {match[1]: match[3] for match in DEFINITION.finditer(code) if match[1] not in defaults}
    listed = {name: _listed_values(default, comment) for name, default, comment in _COMMENTED.findall(text)}
    tests = _tests(code, defaults)
    compared: dict[str, list[str]] = {}
    for left, right in _COMPARED.findall(code):
        compared.setdefault(left, []).append(right)
    constants = {
        right
        for left, rights in compared.items()
        for right in rights
        if right.upper().startswith(f"{left}_".upper()) and right not in defaults
    }
    variables = set(_VARIABLE.findall(plain)) - tests.keys() - defaults.keys()
    unseen = unseen_macros(code, {*defaults, *tests})
    replaced = {name for name, why in unseen.items() if why is Unseen.REDEFINED}
    excluded = {*taken, *defined, *constants, *variables, *replaced}
    for word in dict.fromkeys(WORD.findall(_EXTENSION.sub("", code))):
        is_macro = (
            word in undefined
            or word in defaults
            or word in tests
            or _CONVENTION.fullmatch(word)
            or _is_constant(word, plain)
        )
        if not is_macro or word in excluded or _BUILT_IN.fullmatch(word):
            continue
        if tests.get(word) == "ifdef" and _IMAGE.search(word):  # undefined, the kernel takes pointers
            continue
        if usual := _replaced(word, code):
            yield Macro(word, usual)
            continue
        rights = compared.get(word, [])
        names = dict.fromkeys(right for right in rights if right in constants and right not in defined)
        numbers = {int(number[1]) for right in rights if (number := _integer(defined.get(right, right)))}
        test = "switch" if word in groups else tests.get(word) or ("if" if _is_condition(word, plain) else "")
        default, values = defaults.get(word), listed.get(word, ())
        yield Macro(word, default, tuple(names), tuple(sorted(numbers)), test, values)


def _listed_values(default: str, comment: str) -> tuple[int, ...]:
    """The values that a comment lists in brackets or alone, if the default is one of them: `(1, 2, 4, 8)`."""
    alone = _LIST.fullmatch(comment.removesuffix("*/").strip())
    for found in [alone[0]] if alone else _BRACKETED.findall(comment):
        values = tuple(dict.fromkeys(map(int, re.findall(r"\d+", found))))
        if int(default) in values and len(values) > 1:
            return values
    return ()


def _defaults_together(code: str) -> dict[str, list[tuple[str, str]]]:
    """The definitions that hold unless the user defines a macro, `#ifndef TUNED`, by that macro."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for switch, lines in _GROUP.findall(code):
        found = [(match[1], match[3]) for match in DEFINITION.finditer(lines) if not match[2]]
        if len(found) > 1 and switch not in dict(found):  # as in the guard of a header
            groups.setdefault(switch, []).extend(found)
    return groups


def wanted_values(code: str, place: int) -> dict[str, int]:
    """What the conditions around a place of a source want of macros: `#if LAYOUT == 1` that it is 1."""
    conditions: list[str] = []
    for match in _CONDITIONAL.finditer(code, 0, place):
        if match[1] == "endif":
            del conditions[-1:]
        elif match[1].startswith("if"):
            conditions.append(match[2] if match[1] == "if" else "")
        elif conditions:
            conditions[-1] = match[2] if match[1] == "elif" else ""
    wanted: dict[str, int] = {}
    for name, number, alone in (found for text in conditions for found in _WANTED.findall(text)):
        wanted.setdefault(name or alone, int(number or 1))
    return wanted


def _replaced(word: str, code: str) -> str:
    """The number that stands in for a macro: `#ifdef A`, `#define N A`, `#else`, `#define N 16`."""
    passed = re.search(rf"#[ \t]*ifdef[ \t]+{word}\s*#[ \t]*define[ \t]+(\w+)[ \t]+{word}\b", code)
    other = passed and re.search(rf"#[ \t]*else\s*#[ \t]*define[ \t]+{passed[1]}[ \t]+(\d+)\b", code)
    return other[1] if other else ""


def defined_meanings(code: str) -> dict[str, list[str]]:
    """What each macro without arguments stands for, in the order of its definitions under conditions."""
    meanings: dict[str, list[str]] = {}
    for match in DEFINITION.finditer(code):
        if not match[2]:
            meanings.setdefault(match[1], []).append(match[3].strip())
    return meanings


def declared_constants(code: str) -> dict[str, str]:
    """What each constant of a source stands for: `constexpr int BINS = 256`."""
    return {match[1]: match[2].strip() for match in _DECLARED.finditer(code)}


def with_values(text: str, values: Mapping[str, str]) -> str:
    """A text with the values of names in place of the names."""
    return WORD.sub(lambda word: values.get(word[0], word[0]), text)


def with_constants(body: str, constants: Mapping[str, str]) -> str:
    """A kernel's body with the values of constants, numbers and products, in place of their names."""
    products = {name: text for name, text in constants.items() if _PRODUCT.fullmatch(text)}
    for _ in range(_DEPTH if products else 0):
        body = with_values(body, products)
    return body


def expand_qualifiers(meanings: Mapping[str, Sequence[str]], plain: str) -> str:
    """Replace macros that stand for nothing but qualifiers, such as `__global const`."""
    for alias, texts in meanings.items():
        if all(words and set(words) <= QUALIFIERS | LOCAL_QUALIFIERS for words in map(WORD.findall, texts)):
            plain = re.sub(rf"\b{alias}\b", texts[0], plain)
    return plain


def expand_introducers(
    code: str, plain: str, introducer: re.Pattern[str], definitions: Mapping[str, str]
) -> str:
    """Write out the macros of `code` in `plain` that a kernel begins with, and those in signatures and types.

    `definitions` are the macros without arguments.
    """
    for alias, meaning in definitions.items():
        if introducer.search(meaning):
            plain = re.sub(rf"\b{alias}\b", meaning.replace("\\", r"\\"), plain)
    for _ in range(_DEPTH):  # one macro stands for another
        before = plain
        for alias, names, meaning in _FUNCTION_LIKE.findall(code):
            declared = rf"(?:{introducer.pattern}|\btypedef\b)[^;{{}}]*\b{alias}\s*\("
            if introducer.search(meaning) or re.search(declared, plain):
                plain = _call_replaced(plain, alias, names, meaning, definitions)
        if plain == before:
            break
    return plain


def expand_calls(code: str, body: str) -> str:
    """Write out the macros with arguments that a source defines."""
    for alias, names, meaning in _FUNCTION_LIKE.findall(code):
        body = _call_replaced(body, alias, names, f"({meaning})", {})
    return body


def _call_replaced(plain: str, alias: str, names: str, meaning: str, definitions: Mapping[str, str]) -> str:
    """A text with the meaning of a macro in place of its calls; what is pasted (`##`) is taken as it is."""
    values = {} if "##" in meaning else definitions

    def replaced(match: re.Match[str]) -> str:
        given = (with_values(part, values) for part in split_arguments(match[1]))
        arguments = dict(zip(split_arguments(names), given, strict=False))
        return re.sub(r"\s*##\s*", "", with_values(meaning, arguments))

    return re.sub(rf"\b{alias}\s*\(((?:[^()]|\([^()]*\))*)\)", replaced, plain)


def _tests(code: str, defaults: Collection[str]) -> dict[str, str]:
    """How the preprocessor tests each word; tests around a default do not count."""
    tests: dict[str, str] = {}
    for kind, condition in _TEST.findall(_DEMANDED.sub("", code)):
        for word in WORD.findall(condition):
            if kind == "ifndef" and word in defaults:
                continue
            if kind == "if" and word in defaults and re.fullmatch(r"\s*!\s*defined.*", condition):
                continue
            if kind in ("ifdef", "ifndef") or re.search(rf"defined\s*\(?\s*{word}\b", condition):
                tests.setdefault(word, "ifdef")
            else:
                tests[word] = "if"
    return tests


def qualifiers(plain: str, words: Collection[str]) -> set[str]:
    """Those of some words that stand before the type of a function: `INLINE float twice(float x) {`."""
    found = {word for match in _FUNCTION.finditer(plain) for word in WORD.findall(match[1])[:-1]}
    return found & set(words)


def _is_condition(word: str, plain: str) -> bool:
    """Whether the language tests a word by itself: `if (WORD)`, `!WORD`, `WORD ? a : b`."""
    alone = rf"(?:\bif\s*\(|&&|\|\||!)\s*{word}\s*[)&|?]|(?:[(,=?:]|\breturn)\s*{word}\s*\?"
    return re.search(alone, plain) is not None


def _is_constant(word: str, plain: str) -> bool:
    """Whether a word is in capitals, as macros are, somewhere not called like a function, and never set."""
    is_set = rf"(?<![\w.]){word}\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)"
    is_used = rf"(?<!::)(?<!\.)(?<!->)\b{word}\b(?!\s*(?:\(|::))"
    return word.isupper() and bool(re.search(is_used, plain)) and not re.search(is_set, plain)


def _integer(text: str) -> re.Match[str] | None:
    return _INTEGER.fullmatch(text.strip())
