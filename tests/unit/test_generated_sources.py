"""Sources that programs write: thousands of functions, statements or numbers are read in steps as many."""

import sys
import tracemalloc
from itertools import count

import pytest

from autotune.scaffold import scaffold

HEAD = "__global__ void scale(float *out, const float *in, int n) {\n"
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i >= n) return;\n"
KERNEL = f"{HEAD}{INDEX}out[i] = 2 * in[i];\n}}\n"


def functions(length):
    return "".join(f"__device__ float f{n}(float x) {{ return x * {n}; }}\n" for n in range(length)) + KERNEL


def kernels(length):
    return "".join(KERNEL.replace("scale", f"scale{n}") for n in range(length))


def statements(length):
    lines = "".join(f"out[i] += {n} * in[i];\n" for n in range(length))
    return f"{HEAD}{INDEX}{lines}}}\n"


def guards(length):
    lines = "".join(f"if (i == {n}) return;\nout[i] = in[i + {n}];\n" for n in range(length))
    return f"{HEAD}{INDEX}{lines}}}\n"


def comments(length):
    return "".join(f"// {n}: the 'sizes' (16, 32 or 64) of \"line\n" for n in range(length)) + KERNEL


def numbers(length):
    rows = ",\n".join(f"{n}.5f, {n}.25f, 0x{n:x}" for n in range(length))
    return f"__constant__ float table[] = {{\n{rows}\n}};\n{KERNEL.replace('2 *', 'table[i % 8] *')}"


def conditions(length):
    lines = "".join(f"#ifdef SWITCH{n}\n#define VALUE{n} {n}\n#endif\n" for n in range(length))
    return lines + KERNEL


def steps(text):
    """How many functions of Python are entered, or gone on with, to draft a space."""
    counts = count()
    sys.setprofile(lambda _, event, __: next(counts) if event == "call" else None)
    try:
        scaffold("scale.cu", "scale", text)
    finally:
        sys.setprofile(None)
    return next(counts)


@pytest.mark.parametrize("kind", [functions, kernels, statements, guards, comments, numbers, conditions])
def test_twice_the_lines_take_twice_the_steps(kind):
    steps(kind(1))  # so that what is loaded once does not count
    assert steps(kind(160)) < 2.5 * steps(kind(80))


def test_four_times_the_functions_take_four_times_the_memory():
    def most_bytes(length):
        tracemalloc.start()
        try:
            scaffold("scale.cu", "scale", functions(length))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    most_bytes(1)
    assert most_bytes(1000) < 5 * most_bytes(250)
