"""Conditions of the preprocessor are decided where the text decides them, and only there."""

import shutil
import subprocess

import pytest

from autotune.sources.macro_reach import Unseen, unseen_macros
from autotune.sources.preprocessor import compiled_lines

CERTAIN = [  # conditions that g++ decides as this does
    *("1", "0", "!0", "-1", "2 - 2", "1 ? 0 : 1", "0 ? 1 : 0 ? 1 : 2", "(1)", "1 == 1", "1 != 1"),
    *("7 / 2 == 3", "-7 / 2 == -3", "-7 % 2 == -1", "1 | 2 && 0", "1 & 2 == 2", "4 >> 1 == 2", "1 << 3 > 7"),
    *("~0 == -1", "!1 == 0", "010 == 8", "0x1F == 31", "2u > 1ul", "+1", "1 || 1 / 0", "0 && 1 / 0"),
    *("A", "A == 3", "B == 7", "B * 2 == 10", "defined A", "defined(A) && A > 2", "!defined(A)", "C"),
]
TEXT = "#define A 3\n#define B A + 4\n#define C A == 4\n"


def compiled(text, given=()):
    return {line.rest.strip(): line.is_certain for line in compiled_lines(text, given) if not line.directive}


@pytest.mark.parametrize("condition", CERTAIN)
def test_a_condition_is_decided_as_a_compiler_decides_it(condition):
    text = f"{TEXT}#if {condition}\nyes\n#else\nno\n#endif\n"
    found = compiled(text)
    chosen = "yes" if "yes" in found else "no"
    if "1 / 0" not in condition:
        assert found[chosen] and len(found) == 2  # with the empty last line
    if shutil.which("g++"):
        command = ["g++", "-E", "-P", "-x", "c++", "-"]
        theirs = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
        assert theirs.strip() in found


@pytest.mark.parametrize(
    "condition",
    [
        "UNKNOWN",
        "UNKNOWN == 2",
        "defined(UNKNOWN)",
        "A && UNKNOWN",
        "F(1)",
        "__has_include(<a>)",
        "1 +",
        "'a'",
    ],
)
def test_what_the_text_does_not_decide_is_compiled_perhaps(condition):
    found = compiled(f"{TEXT}#if {condition}\nyes\n#elif 1\nno\n#else\nnever\n#endif\n")
    assert found == {"yes": False, "no": False, "": True}


def test_branches_are_left_out_in_what_is_left_out():
    text = "#if 0\n#if UNKNOWN\na\n#else\nb\n#endif\n#else\nc\n#endif\n#ifdef _WIN32\nd\n#elif 1\ne\n#endif\n"
    assert compiled(text) == {"c": True, "e": True, "": True}


def test_given_macros_are_defined_and_have_any_value():
    text = "#ifdef W\na\n#else\nb\n#endif\n#if W == 1\nc\n#else\nd\n#endif\n"
    assert compiled(text, ["W"]) == {"a": True, "c": False, "d": False, "": True}


def test_deep_and_long_conditions_end():
    for condition in ("(" * 20_000, "!" * 20_000, "1 + " * 20_000 + "1", "A " * 3):
        compiled(f"#if {condition}\na\n#endif\n")
    doubling = "".join(f"#define M{n} M{n - 1} + M{n - 1}\n" for n in range(1, 60))
    assert compiled(f"#define M0 1\n{doubling}#if M59\na\n#endif\n")["a"] is False


REACH = {  # a source, and why the values of the macro W make no difference to it
    "#define W 4\n#ifndef W\n#define W 1\n#endif\nW\n": Unseen.REDEFINED,
    "#define A W\n#define W 3\nA\n": Unseen.REDEFINED,
    "#undef W\n#define W 3\nW\n": Unseen.REDEFINED,
    "#undef W\n#ifndef W\n#define W 3\n#endif\nW\n": Unseen.REDEFINED,
    "#ifdef W\nx\n#endif\n": Unseen.ONLY_TESTED,
    "#if defined(W)\nx\n#endif\n": Unseen.ONLY_TESTED,
    "#ifndef W\n#define W 1\n#endif\nx\n": None,
    "#if !defined(W)\n#define W 1\n#endif\nx\n": None,
    "#ifndef W\n#define W 1\n#endif\nW\n": None,
    "#if defined(W) && W > 1\nx\n#endif\n": None,
    "#define A W\nA\n#define W 3\n": None,
    "#ifdef UNKNOWN\n#define W 3\n#endif\nW\n": None,
    "#if UNKNOWN\nW\n#endif\n#define W 3\n": None,
    "#define F(x) x + W\nF(1)\n#define W 3\n": None,
    "#pragma unroll W\n#define W 1\n": None,
    "x\n": None,
}


@pytest.mark.parametrize("text", REACH)
def test_a_macro_that_makes_no_difference_is_told_with_the_reason(text):
    assert unseen_macros(text, {"W", "OTHER"}).get("W", (None, 0))[0] == REACH[text]
