"""Sources that were once misread: each is drafted, refused in one line, or told apart after a change."""

from types import SimpleNamespace

import pytest

from autotune.compilers.source_text import read_source
from autotune.drafting.draft_steps import draft, draft_triton
from autotune.drafting.space_draft import KernelFile
from autotune.errors import InputError
from autotune.space import load_space

COPY = "{ int i = get_global_id(0); if (i < n) y[i] = x[i]; }\n"
OPENCL = f"__kernel void k(__global float *y, __global const float *x, int n) {COPY}"
TRITON = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"


@pytest.fixture
def drafted(tmp_path):
    """Writes a source, drafts its space and loads that."""

    def made(name, text):
        path = tmp_path / name
        path.write_text(text)
        kernel = KernelFile(path, "k", "k_reference.py")
        found = draft_triton(kernel) if path.suffix == ".py" else draft(kernel, tmp_path / "headers")
        (tmp_path / "k.yaml").write_text(found.space)
        (tmp_path / "k_reference.py").write_text(found.reference)
        space = load_space(tmp_path / "k.yaml")
        values = {one.name: one.values for one in space.parameters}
        return SimpleNamespace(text=found.space, values=values)

    return made


def test_typedef_branch(drafted):
    branches = "".join(
        f"#{'el' * bool(n)}if PRECISION == {16 << n}\ntypedef {kind} real;\n"
        for n, kind in enumerate(("half", "float", "double"))
    )
    default = "#ifndef PRECISION\n#define PRECISION 32\n#endif\n"
    found = drafted("k.cl", f"{default}{branches}#endif\n{OPENCL.replace('float', 'real')}")
    assert found.text.count("dtype: float32") == 2
    assert "PRECISION" not in found.values


def test_vectors_of_one_type_are_a_parameter(drafted):
    branches = "#if W == 1\ntypedef float real;\n#elif W == 2\ntypedef float2 real;\n#endif\n"
    default = "#ifndef W\n#define W 1\n#endif\n"
    assert drafted("k.cl", f"{default}{branches}{OPENCL.replace('float', 'real')}").values["W"] == (1, 2)


def test_a_macro_without_a_default_that_chooses_the_type_has_one_value(drafted):
    branches = "#if WIDE == 1\n#define real double\n#else\n#define real float\n#endif\n"
    found = drafted("k.cl", branches + OPENCL.replace("float", "real"))
    assert found.values["WIDE"] == (False,)
    assert found.text.count("dtype: float32") == 2


def test_double_define(drafted):
    text = "#define WPT 4\n#ifndef WPT\n#define WPT 1\n#endif\n" + OPENCL.replace("y[i] = ", "y[i] = WPT * ")
    assert "WPT" not in drafted("k.cl", text).values


def test_name_twice_template(drafted):
    host = "template <int n> void run(float *y, float *x) { k<n><<<(n + 63) / 64, 64>>>(y, x); }\n"
    body = "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }\n"
    drafted("k.cu", f"template <int n> __global__ void k(float *y, const float *x) {body}{host}")


def test_name_twice_triton(drafted):
    body = """def k(y, x, n, BLOCK: tl.constexpr, num_warps: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def run(y, x):
    k[(triton.cdiv(x.numel(), 512),)](y, x, x.numel(), BLOCK=512, num_warps=4)
"""
    drafted("k.py", TRITON + body)


@pytest.mark.parametrize("block", ["B", "BS"])
def test_triton_block_name(drafted, block):
    body = f"""def k(y, x, n, negative: tl.constexpr, {block}: tl.constexpr):
    i = tl.program_id(0) * {block} + tl.arange(0, {block})
    value = tl.load(x + i, mask=i < n)
    if negative:
        value = -value
    tl.store(y + i, value, mask=i < n)
"""
    found = drafted("k.py", TRITON + body)
    assert len(found.values[block]) > 1
    assert f"ceil_div(n, {block})" in found.text


def test_a_device_function_alone_is_refused_in_one_line(drafted):
    with pytest.raises(InputError, match="accesses nothing through its parameters") as refused:
        drafted("k.py", f"{TRITON}def twice(x):\n    return 2 * x\n")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("line", ["/" * 400, "// note ", "/* note */"])
def test_guard_regex_hang(drafted, line):
    assert drafted("k.cl", f"{line}\n" * 400 + OPENCL).values


def test_computed_include_stale(tmp_path):
    """A header that is no part of the text may change: what is read again is another text then."""
    path, header = tmp_path / "k.cl", tmp_path / "h.h"
    path.write_text('#define HEADER "h.h"\n#include HEADER\n' + OPENCL)
    texts = set()
    for value in (1, 3):
        header.write_text(f"#define ONE {value}\n")
        texts.add(read_source(path).sha256)
    assert len(texts) == 2


def test_include_option_stale(drafted, tmp_path):
    text = drafted("k.cl", OPENCL).text + "compiler_options: {opencl: {-Iinc: true}}\n"
    (tmp_path / "k.yaml").write_text(text)
    with pytest.raises(
        InputError, match=r"-Iinc: this option reads files.* name a folder .* in `include_dirs`"
    ):
        load_space(tmp_path / "k.yaml")
