"""The place that Triton's messages mean, and which guesses lead there. Needs no Triton."""

from pathlib import Path

import pytest

from autotune.drafting.complaints import refused_triton
from autotune.errors import InputError
from autotune.scaffold.triton import scaffold_triton
from autotune.sources.triton_places import find_place

HELPER = """
import triton
import triton.language as tl

@triton.jit
def scaled(
    v,
    factor: a_framework.Number,
):
    # a comment
    return v * factor
"""
KERNEL = """
import triton
import triton.language as tl
from helper import scaled

@triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (32, 64)], key=["n"])
@triton.jit
def scale(x, w, y, at_ptr, n, EXTRA: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at += tl.load(at_ptr + EXTRA)
    v = tl.load(x + at, mask=at < n)
    f = tl.load(w + at, mask=at < n)
    tl.store(y + at, scaled(v, f), mask=at < n)
"""


@pytest.fixture
def kernel(tmp_path):
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "scale.py").write_text(KERNEL)
    (tmp_path / ".git").mkdir()  # where the project ends
    return tmp_path / "scale.py"


@pytest.mark.parametrize(
    ("said", "file", "text", "parameters"),
    [
        ("scale, line 2", "scale.py", "at = tl.program_id", {"BLOCK"}),
        ("scale, line 5", "scale.py", "f = tl.load", {"w", "n", "BLOCK", "at_ptr", "EXTRA"}),
        ("scaled, line 2", "helper.py", "return v * factor", {"x", "w", "n", "BLOCK", "at_ptr", "EXTRA"}),
    ],
)
def test_a_line_is_found_in_the_file_of_its_function(kernel, said, file, text, parameters):
    place = find_place(f"{said} from its def, `...`: ValueError: no", kernel)
    assert place.file.name == file and place.said == "`...`: ValueError: no"
    assert place.file.read_text().splitlines()[place.line - 1].strip().startswith(text)
    assert place.parameters("scale") == parameters


def test_a_message_without_a_place_has_none(kernel):
    assert find_place("PassManager::run failed", kernel) is None
    assert find_place("lost, line 2 from its def, `...`", kernel) is None


@pytest.mark.parametrize(
    ("said", "helps"),
    [
        (
            "`...`: ValueError: not a power of 2",
            "; EXTRA=1 is guessed: give what your program passes, in",
        ),
        ("`v = 1; ...`: ValueError: `: odd", "; EXTRA=1 is guessed: give what your program passes, in"),
        ("`...`: AssertionError: got fp32 and int8", "; the dtype of at_ptr, w, x and y is guessed: give"),
        ("`...`: NameError('gone')", "; correct that line, or install the Triton that it was written for"),
        ("`...`: no; take another", ""),
    ],
)
def test_a_line_says_which_guesses_lead_there(kernel, said, helps):
    guess = scaffold_triton(kernel, "scale").guess
    place = find_place(f"scale, line 6 from its def, {said}", kernel)
    text = refused_triton("", place, guess, "scale.yaml")
    assert text.startswith(f"{kernel}:13: {said}{helps}") and (helps or text.endswith(said))


def test_types_that_a_complaint_names_are_tried_for_the_arrays_there(kernel):
    guess = scaffold_triton(kernel, "scale").guess
    tried = [one.made for one in guess.others("got fp16 and int8", {"x", "w", "n"}) if one.made]
    assert tried[0] == {"x": "int8", "w": "int8"} and {"w": "int32"} in tried


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("helper.py", HELPER, "scaled is a helper, .*; scale.py has a kernel that may use them: give that"),
        (
            "host.py",
            "import triton\nfrom scale import scale\n@triton.jit\ndef one(v):\n    return v\n"
            "def run(x):\n    scale[(1,)](x)\n",
            "scale, which it launches, is in scale.py: give that to autotune new",
        ),
        (
            "wrapped.py",
            "import triton\n@pointwise\n@triton.jit\ndef one(v):\n    return v\n",
            "@pointwise makes the kernel when the program runs",
        ),
    ],
)
def test_the_file_with_the_kernel_is_named(kernel, name, text, said):
    kernel.with_name(name).write_text(text)
    with pytest.raises(InputError, match=said):
        scaffold_triton(Path(kernel.with_name(name)), "made")
