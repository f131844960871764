"""What is read of strangers' sources in Triton, and what a first space makes of it. Needs no Triton."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.scaffold.triton import scaffold_triton
from autotune.sources.triton import element_types, entry_signature, read_triton
from autotune.sources.triton_module import is_triton, triton_part
from autotune.space import load_space

HEAD = "import triton\nimport triton.language as tl\n"
COPY = """
@triton.jit
def copied(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)
"""


@pytest.fixture
def made(tmp_path):
    """Write a file, the space that is guessed for it, and load that."""

    def make(text, name="kernel.py", entry=None):
        source = tmp_path / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        found = scaffold_triton(source, "made", entry)
        space = source.with_name("made.yaml")
        space.write_text(found.space)
        source.with_name("made_reference.py").write_text(found.reference)
        return load_space(space)

    return make


def values(spec):
    return {one.name: one.values for one in spec.parameters}


@pytest.mark.parametrize(
    "imports",
    [
        "from a_framework.compat import tl, triton\n",
        "from a_framework.compat import triton\nfrom a_framework.compat import tl\n",
        "try:\n    from a_framework import tl, triton\nexcept ImportError:\n    triton = tl = None\n",
        "from .compat import tl, triton\n",
        "from triton import language as tl\nimport triton, a_framework\n",
    ],
)
def test_whoever_hands_triton_on_is_not_imported(tmp_path, imports):
    text = triton_part(imports + COPY, tmp_path / "kernel.py")
    assert "a_framework" not in text and "compat" not in text
    assert "import triton\n" in text or "import triton as triton\n" in text
    assert text.endswith(COPY.lstrip("\n"))


def test_a_name_that_the_host_takes_over_stays_the_kernels(tmp_path):
    later = "import torch\nkept = copied\ndef copied(*given):\n    return kept[(1,)](torch.ones(1), *given)\n"
    text = triton_part(HEAD + COPY + later, tmp_path / "kernel.py")
    assert text.endswith(COPY.lstrip("\n")) and "torch" not in text


def test_an_import_of_a_folder_above_is_found_from_the_folder_of_the_file(tmp_path, monkeypatch):
    inner = tmp_path / "project" / "ops" / "norm"
    inner.mkdir(parents=True)
    (tmp_path / "project" / "math.py").write_text(HEAD + "@triton.jit\ndef twice(x):\n    return x + x\n")
    monkeypatch.chdir(inner)
    doubled = COPY.replace("tl.load(x + at, mask=at < n)", "twice(tl.load(x + at, mask=at < n))")
    assert "return x + x" in triton_part(HEAD + "from ...math import twice\n" + doubled, Path("kernel.py"))


def test_a_shim_of_libdevice_is_libdevice(tmp_path):
    pytest.importorskip("triton.runtime", reason="needs the extra triton")
    (tmp_path / "shims.py").write_text("import torch\nshim = torch.shim()\n")
    copied = COPY.replace("tl.load(x + at, mask=at < n)", "fast(shim.erf(tl.load(x + at, mask=at < n)))")
    text = triton_part(HEAD + "from shims import shim\nfast = shim.tanh" + copied, tmp_path / "kernel.py")
    assert "from triton.language.extra import libdevice as shim\n" in text and "torch" not in text


def test_functions_that_older_versions_of_triton_had_are_those_of_libdevice(tmp_path):
    pytest.importorskip("triton.runtime", reason="needs the extra triton")
    loaded = "tl.load(x + at, mask=at < n)"
    copied = COPY.replace(loaded, f"tl.math.exp(tl.libdevice.tanh(tl.math.pow({loaded}, 2.0)))")
    text = triton_part(HEAD + copied, tmp_path / "kernel.py")
    assert "tl.math.exp(triton_libdevice.tanh(triton_libdevice.pow(tl.load(" in text
    assert "import libdevice as triton_libdevice\n" in text


def test_the_jit_of_another_language_is_not_tritons():
    assert not is_triton("import tilelang\n@tilelang.jit\ndef f(x): pass\n")
    assert is_triton("from triton import jit\n@jit\ndef f(x): pass\n")
    assert is_triton("import triton as tr\nif True:\n    @tr.jit\n    def f(x): pass\n")


def test_helpers_come_from_the_package_of_the_file_and_conditions_are_decided(tmp_path):
    package = tmp_path / "project" / "ops"
    package.mkdir(parents=True)
    (tmp_path / "project" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from .math import *\n")
    (package / "math.py").write_text(
        "import os\n" + HEAD + "FAST = os.environ.get('FAST', '0') == '1'\n"
        "if FAST:\n    @triton.jit\n    def twice(x):\n        return fast(x)\n"
        "else:\n    @triton.jit\n    def twice(x):\n        return x + x\n"
    )
    (package / "scope.py").write_text(HEAD + "@triton.jit\ndef place(n):\n    return tl.program_id(0) * n\n")
    source = package / "kernel.py"
    source.write_text(
        HEAD + "import torch\nfrom project.ops import twice\nfrom project.ops import scope as where\n"
        "try:\n    from a_framework.libdevice import tanh\nexcept ImportError:\n"
        "    from triton.language.extra.libdevice import tanh\n"
        "SIZE = tl.constexpr(4 if torch.version.hip is None else 8)\n"
        "KIND = tl.float8e4b8 if torch.version.hip else tl.float8e4nv\n"
        "@triton.jit(launch_metadata=torch.zeros)\ndef f(x: torch.Tensor, B: tl.constexpr):\n"
        "    at = where.place(B) + tl.arange(0, B)\n"
        "    tl.store(x + at, tanh(twice(tl.load(x + at))).to(KIND) + SIZE)\n"
    )
    text = triton_part(source.read_text(), source)
    assert "return x + x" in text and "fast" not in text
    assert "torch" not in text and "a_framework" not in text and "project" not in text
    assert "KIND = tl.float8e4nv\n" in text
    assert "SIZE = tl.constexpr(4)" in text and "where.place = place" in text
    compile(text, "kernel.py", "exec")


def test_a_block_is_one_by_its_use_and_flags_divide_no_grid(made):
    spec = made(
        HEAD + "@triton.jit\ndef k(x, y, n, flip: tl.constexpr, MODE: tl.constexpr, B: tl.constexpr):\n"
        "    o = tl.program_id(0) * B + tl.arange(0, B)\n    v = tl.load(x + o, mask=o < n)\n"
        "    if flip:\n        v = -v\n    if MODE == 'square':\n        v = v * v\n"
        "    tl.store(y + o, v, mask=o < n)\n"
    )
    assert spec.launch[0].grid == ("ceil_div(n, B)",)
    assert values(spec)["flip"] == (False,) and values(spec)["MODE"] == ("square",)
    assert len(values(spec)["B"]) > 3 and [one.shape for one in spec.arguments[:2]] == [("n",), ("n",)]


def test_an_option_of_triton_may_be_a_constant_of_the_kernel(made):
    spec = made(
        HEAD
        + COPY.replace("B: tl.constexpr", "B: tl.constexpr, num_warps: tl.constexpr")
        + "def host(x, y, n):\n    copied[(triton.cdiv(n, 1024),)](x, y, n, 1024)\n"
    )
    assert spec.launch[0].grid == ("ceil_div(n, B)",), "the host's grid is for one value of B"
    assert values(spec)["num_warps"] == (1, 2, 4, 8)


@pytest.mark.parametrize("tuner", ["triton.autotune", "libtuner", "wrapped.fla_cache_autotune"])
def test_any_decorator_with_configs_and_a_key_is_an_autotuner(made, tmp_path, tuner):
    (tmp_path / "lists.py").write_text(
        HEAD + "def made(sizes):\n"
        "    return [triton.Config({'B': b}, num_warps=w) for b in sizes for w in (4, 8)]\n"
    )
    spec = made(
        HEAD + "from lists import made\nSIZES = [64] if unknown() else [32]\n"
        f"@{tuner}(configs=made(SIZES), key=['n'], warmup=5)" + COPY
    )
    assert values(spec) == {"B": (64,), "num_warps": (4, 8)}
    assert len(spec.landmarks) == 2


def test_one_tile_that_covers_a_row_follows_from_its_length(made):
    spec = made(
        HEAD + "@triton.jit\ndef k(x, y, stride, columns, scale, B: tl.constexpr):\n"
        "    row = tl.program_id(0)\n    o = tl.arange(0, B)\n"
        "    v = tl.load(x + row * stride + o, mask=o < columns)\n"
        "    tl.store(y + row * stride + o, v * scale, mask=o < columns)\n"
    )
    assert spec.derived == {"B": "2 ** ceil(log2(columns))"}
    assert spec.launch[0].grid == ("programs",)
    assert spec.arguments[0].shape == ("programs", "columns")
    numbers = {one.name: (one.dtype, one.value) for one in spec.arguments[2:]}
    assert numbers["stride"] == ("int32", "columns") and numbers["scale"] == ("float32", "1.0")


ROWS = """
@triton.heuristics({"ROWS": rows, "B": lambda given: next_power_of_2(given["columns"])})
@triton.jit
def k(x, y, n, columns, flip: tl.constexpr, ROWS: tl.constexpr, B: tl.constexpr):
    row, o = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, B)
    at = row[:, None] * columns + o[None, :]
    inside = (row < n)[:, None] & (o < columns)[None, :]
    v = tl.load(x + at, mask=inside)
    tl.store(y + at, -v if flip else v, mask=inside)
"""


def test_rules_may_be_functions_and_come_from_other_files(made, tmp_path):
    (tmp_path / "rules.py").write_text(
        HEAD + "from triton import next_power_of_2\n"
        'def rows(given) -> int:\n    """Few."""\n    length = next_power_of_2(given["columns"])\n'
        '    return max(1, 1024 // length) if given["n"] > 64 else 1\n'
    )
    spec = made(HEAD + "from triton import next_power_of_2\nfrom rules import rows\n" + ROWS)
    length = "2 ** ceil(log2(columns))"
    assert spec.derived == {"ROWS": f"max(1, 1024 // {length}) if n > 64 else 1", "B": length}
    assert spec.launch[0].grid == ("ceil_div(n, ROWS)",)


def test_a_block_whose_rule_is_no_expression_is_tuned(made):
    spec = made(HEAD + "def rows(given):\n    for one in given:\n        return one\n" + ROWS)
    assert set(values(spec)["ROWS"]) >= {16, 32} and "ROWS" not in spec.derived


@pytest.mark.parametrize("given", ["mask=inside", "mask=inside[:, None]", "mask=at[:, None] < at[None, :]"])
def test_functions_that_are_given_blocks_are_helpers(made, given):
    helper = (
        f"@triton.jit\ndef a(x, at, inside=None, flip: tl.constexpr = True):\n    v = tl.load(x, {given})\n"
        "    tl.store(x, v + tl.load(x + 1, mask=flip))\n"
    )
    assert made(HEAD + helper + COPY).launch[0].entry == "copied"
    with pytest.raises(InputError, match="is a helper, which takes blocks of elements"):
        made(HEAD + helper)


def test_a_kernel_whose_mask_is_a_flag_of_its_host_is_none(made):
    text = HEAD + COPY.replace("B:", "keep, B:").replace("mask=at < n)", "mask=keep)", 1)
    launch = "def run(x, y, n):\n    copied[(n // 64,)](x, y, n, n > 3, B=64)\n"
    assert made(text + launch).launch[0].entry == "copied"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (COPY.replace("triton.jit", "gluon.jit"), "copied is under @gluon.jit, and autotune reads"),
        (
            "class Copy:\n" + COPY.replace("\n", "\n    "),
            "copied is inside of Copy: move it to the top level",
        ),
        (COPY.replace("tl.store(y + at", "tl._experimental_descriptor_store(y"), "tensor descriptors of y"),
    ],
)
def test_why_a_kernel_is_not_read(made, text, why):
    gluon = "from triton.experimental import gluon\n@triton.jit\ndef one():\n    return 1\n"
    with pytest.raises(InputError, match=why):
        made(HEAD + gluon + text)


@pytest.mark.parametrize(
    "chosen",
    ["    p = tl.where(pid < 3, x + at, z + at)\n", "    p = x + at\n    if pid < 3:\n        p = z + at\n"],
)
def test_each_array_of_which_a_program_takes_one_is_one(made, chosen):
    spec = made(
        HEAD + "@triton.jit\ndef k(x, z, y, n, B: tl.constexpr):\n    pid = tl.program_id(0)\n"
        f"    at = pid * B + tl.arange(0, B)\n{chosen}"
        "    tl.store(y + at, tl.load(p, mask=at < n), mask=at < n)\n"
    )
    shapes = {one.name: one.shape for one in spec.arguments if one.shape}
    assert shapes == {"x": ("n",), "z": ("n",), "y": ("n",)}


@pytest.mark.parametrize("used", ["inside = o < offset", "o = o + offset"])
def test_what_may_be_a_number_or_an_array_is_a_number(made, used):
    loaded = used.replace("offset", "tl.load(offset)")
    spec = made(
        HEAD + "@triton.jit\ndef k(x, y, offset, n, IS_ARRAY: tl.constexpr, B: tl.constexpr):\n"
        "    o = tl.program_id(0) * B + tl.arange(0, B)\n    inside = o < n\n"
        f"    if IS_ARRAY:\n        {loaded}\n    else:\n        {used}\n"
        "    tl.store(y + o * n, tl.load(x + o * n, mask=inside))\n"
    )
    assert {one.name for one in spec.arguments if one.shape} == {"x", "y"}
    assert spec.default["IS_ARRAY"] is False


def test_an_array_that_is_loaded_under_its_own_name_is_one(made):
    added = COPY.replace("n, B", "n, bias, HAS: tl.constexpr, B").replace(
        "    tl.store", "    if HAS:\n        bias = tl.load(bias + at)\n        n = n + bias\n    tl.store"
    )
    assert {one.name for one in made(HEAD + added).arguments if one.shape} == {"x", "y", "bias"}


def test_constants_have_the_values_of_a_launch(made):
    """Those of its function's defaults and of the file as well; behind `*args` no place is known."""
    rows = ROWS.replace("ROWS: tl", "MODE: tl.constexpr, LAST: tl.constexpr, ROWS: tl")
    text = (
        HEAD
        + rows.split("\n", 2)[2].replace("-v if flip else v", "-v if flip else v * MODE * LAST")
        + "WIDE = 4 * 8\ndef host(x, y, flip=True, last=3):\n    block = 512\n"
        "    k[(1,)](x, y, *x.shape, 7, flip=flip, MODE=x.mode, LAST=last, ROWS=WIDE, B=block, num_warps=2)\n"
    )
    spec = made(text)
    assert {name: spec.default[name] for name in ("flip", "MODE", "LAST", "ROWS", "num_warps")} == {
        "flip": True, "MODE": 1, "LAST": 3, "ROWS": 32, "num_warps": 2
    }  # fmt: skip
    assert len(values(spec)["ROWS"]) > 3 and values(spec)["LAST"] == (3,)


@pytest.mark.parametrize(
    ("demands", "default", "width", "landmarks"),
    [
        ("B <= D", {"B": 128}, 128, 2),  # a wider row
        ("D % (4 * B) == 0 and B < 128", {"B": 64}, 256, 1),  # another configuration
        ("fits(D, B)", {"B": 128}, 64, 2),  # not read
        ("B == C", {"B": 64, "C": 64}, 64, 1),  # a guessed number
    ],
)
def test_what_a_kernel_asserts_holds_for_the_default(made, demands, default, width, landmarks):
    within = demands.replace("D", "width").replace("B", "block").replace("C", "turns")
    spec = made(
        HEAD + "@triton.jit\ndef check(width, block: tl.constexpr, turns, flip):\n"
        f"    if width == 0:\n        return\n    tl.static_assert({within}, 'no')\n"
        "    if flip:\n        tl.static_assert(block == 7)\n"
        "@triton.autotune([triton.Config({'B': b}) for b in (128, 64)], key=['n'])\n"
        "@triton.jit\n"
        "def k(x, y, n, stride, flip: tl.constexpr, D: tl.constexpr, B: tl.constexpr, C: tl.constexpr):\n"
        "    check(D, B, C, flip)\n    for one in range(C):\n        pass\n"
        "    row, at = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)\n"
        "    o, inside = row[:, None] * stride + at[None, :], row[:, None] < n\n"
        "    tl.store(y + o, tl.load(x + o, mask=inside), mask=inside)\n"
    )
    assert spec.default.items() >= default.items() and spec.sizes["default"]["D"] == width
    assert len(spec.landmarks) == landmarks
    assert any(demands == one.text for one in spec.constraints) == (demands != "fits(D, B)")


GATHER = """
@triton.autotune(
    configs=[
        triton.Config({"B": b, "C": 64}, num_warps=w, num_stages=s)
        for b in (32, 64)
        for w in (2, 4, 8)
        for s in (1, 2)
    ],
    key=["n"],
)
@triton.jit
def gathered(x, table, at, y, n, m, stride, eps, B: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * C + tl.arange(0, C)
    inside = (rows[:, None] < n) & (columns[None, :] < m)
    place = tl.load(at + rows, mask=rows < n)
    value = tl.load(table + place[:, None] * stride + columns[None, :], mask=inside)
    own = tl.load(x + rows[:, None] * m + columns[None, :], mask=inside)
    tl.store(y + rows[:, None] * m + columns[None, :], (own + value) * (own + eps), mask=inside)

def gather(x, table, at, *, eps: float = 1e-6):
    gathered[(1, 1)](x, table, at, x, 1, 1, 1, eps)
"""


def test_what_an_index_of_an_array_leads_into_is_to_be_checked(made, tmp_path):
    spec = made(HEAD + GATHER)
    lines = {
        line.split(",")[0].split(": ")[1]: line
        for line in (tmp_path / "made.yaml").read_text().splitlines()
        if "{name: " in line
    }
    assert "# check: its shape" in lines["table"] and "check" not in lines["x"]
    assert "fill: inputs" in lines["at"] and "# check: indices below n" in lines["at"]
    assert "value: 1e-06" in lines["eps"]  # the default of the host's function
    assert spec.landmarks == ()  # all combinations of the parameters


ENTROPY = """
@triton.jit
def entropy(logits, target, loss, lse, same, other, stride, vocab, ignored, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.load(target + row)
    total = 0.0
    for start in range(0, vocab, B):
        columns = start + tl.arange(0, B)
        total += tl.sum(tl.load(logits + row * stride + columns, mask=columns < vocab).to(tl.float32))
    tl.store(lse + row, total)
    tl.store(same + row, total)
    tl.store(other + row, total)
    if at != ignored:
        tl.store(loss + row, total - tl.load(logits + row * stride + at))

def host(logits, target, other, ignored=-100):
    rows, vocab = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    lse = torch.zeros(rows, device=logits.device)
    entropy[(rows,)](
        logits, target, loss, lse, torch.empty_like(logits), other, logits.stride(0), vocab, ignored=ignored
    )
"""


def test_indices_of_a_row_are_drawn_within_each_of_verify_sizes(made, tmp_path):
    spec = made(HEAD + ENTROPY)
    drawn = {one.name: one.fill.kind for one in spec.arguments if one.fill}
    assert drawn == {"logits": "normal", "target": "inputs"}
    names = runpy.run_path(str(tmp_path / "made_reference.py"))
    for sizes in spec.verify_sizes:
        target = names["inputs"](sizes, np.random.default_rng(0))["target"]
        assert target.shape == (sizes["rows"],) and 0 <= target.min() <= target.max() < sizes["vocab"]


def test_rows_that_programs_count_are_few_where_a_loop_over_tiles_is_followed(made):
    sizes = made(HEAD + ENTROPY).verify_sizes
    assert max(one["vocab"] for one in sizes) > 4096  # the largest tile
    assert {one["rows"] for one in sizes if one["vocab"] > 4096} == {3, 4, 5}


def test_outputs_have_the_types_of_the_hosts_arrays(made, tmp_path):
    spec = made(HEAD + ENTROPY)
    dtypes = {one.name: one.dtype for one in spec.arguments if one.role == "out"}
    assert dtypes == {"loss": "float32", "lse": "float32", "same": "DTYPE", "other": "DTYPE"}
    lines = (tmp_path / "made.yaml").read_text().splitlines()
    asked = [line.split(",")[0] for line in lines if "# check: its element type" in line]
    assert asked == ["  - {name: other"]
    assert "DTYPE" in lines[-1], "an output may have 16 bits"
    assert next(one.value for one in spec.arguments if one.name == "ignored") == "-100"


def test_what_programs_count_has_the_word_of_the_host(made, tmp_path):
    spec = made(HEAD + ENTROPY)
    assert spec.launch[0].grid == ("rows",) and spec.arguments[0].shape == ("rows", "vocab")
    assert "programs" not in (tmp_path / "made.yaml").read_text()
    for launched in ("entropy[(logits.shape[0],)]", "entropy[(vocab,)]"):  # no word, and one of a parameter
        assert made(HEAD + ENTROPY.replace("entropy[(rows,)]", launched)).arguments[0].shape[0] == "programs"


def test_outputs_that_may_be_rounded_are_named_with_a_tolerance(made, tmp_path):
    text = HEAD + ENTROPY.replace("dtype=torch.float32", "dtype=torch.int8")
    made(text)
    written = (tmp_path / "made.yaml").read_text()
    said = "# if the kernel rounds loss, it may round the other way: "
    assert f"{said}atol: {{loss: 1, lse: 1e-6, same: 1e-6, other: 1e-6}}\nverify: " in written
    made(HEAD + ENTROPY)
    assert "the other way" not in (tmp_path / "made.yaml").read_text()


def test_the_tolerance_is_that_of_the_outputs(made, tmp_path):
    whole = HEAD + COPY + "def host(x, n):\n    y = torch.empty(n, dtype=torch.float32)\n"
    made(whole + "    copied[(1,)](x, y, n)\n")
    assert "verify: {rtol: 1e-5, atol: 1e-6}" in (tmp_path / "made.yaml").read_text()


def test_sizes_to_verify_have_either_size_as_the_longer_one(made):
    sizes = made(HEAD + GATHER).verify_sizes
    assert {one["n"] > one["m"] for one in sizes} == {True, False}


def test_sizes_to_verify_let_a_loop_over_a_row_turn_again(made):
    space = made(
        HEAD
        + """
@triton.autotune(configs=[triton.Config({"B": 64}), triton.Config({"B": 256})], key=["n"])
@triton.jit
def summed(x, y, n, B: tl.constexpr):
    total = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        total += tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0)
    tl.store(y + tl.program_id(0), tl.sum(total))
"""
    )
    assert sorted(sizes["n"] for sizes in space.verify_sizes) == [1, 5, 511, 512, 513]


@pytest.mark.parametrize(
    ("step", "options"),
    [
        ("total += tl.sum(v)", {"num_warps"}),  # Triton pipelines loops of products only
        ("total += tl.sum(tl.dot(v, v))", {"num_warps", "num_stages"}),
    ],
)
def test_stages_are_guessed_where_triton_pipelines(made, step, options):
    spec = made(
        HEAD + "@triton.jit\ndef k(x, y, n, B: tl.constexpr):\n    total = 0.0\n"
        "    o = tl.arange(0, B)[:, None] * n + tl.arange(0, B)[None, :]\n"
        f"    for at in range(0, n, B):\n        v = tl.load(x + at + o)\n        {step}\n"
        "    tl.store(y + tl.program_id(0), total)\n"
    )
    assert {one.name for one in spec.parameters} == {"B", *options}


def test_tiles_of_one_block_are_bounded_together_and_extents_differ(made):
    spec = made(
        HEAD + "@triton.jit\ndef k(x, y, m, n, A: tl.constexpr, B: tl.constexpr):\n"
        "    i = tl.program_id(0) * A + tl.arange(0, A)\n    j = tl.program_id(1) * B + tl.arange(0, B)\n"
        "    o = i[:, None] * n + j[None, :]\n    mask = (i[:, None] < m) & (j[None, :] < n)\n"
        "    tl.store(y + o, tl.load(x + o, mask=mask), mask=mask)\n"
    )
    assert spec.launch[0].grid == ("ceil_div(m, A)", "ceil_div(n, B)")
    assert spec.arguments[0].shape == ("m", "n")
    sizes = spec.sizes["default"]
    assert sizes["m"] != sizes["n"] and sizes["m"] * sizes["n"] <= 2**25
    assert spec.default["A"] * spec.default["B"] <= 4096


def test_arrays_whose_elements_are_indices_hold_whole_numbers(made):
    spec = made(
        HEAD + "@triton.jit\ndef k(x, y, places, n, B: tl.constexpr):\n"
        "    o = tl.program_id(0) * B + tl.arange(0, B)\n    at = tl.load(places + o, mask=o < n)\n"
        "    tl.store(y + o, tl.load(x + at, mask=o < n), mask=o < n)\n"
    )
    assert {one.name: one.dtype for one in spec.arguments[:3]} == {
        "x": "DTYPE",
        "y": "DTYPE",
        "places": "int32",
    }


def test_arrays_that_whole_numbers_are_made_of_hold_these(made):
    counted = COPY.replace("tl.load(x + at, mask=at < n)", "tl.cumsum(tl.load(x + at, mask=at < n)) + 1")
    host = "def host(x, n):\n    y = torch.empty(n, dtype=torch.int64)\n    copied[(1,)](x, y, n)\n"
    assert [one.dtype for one in made(HEAD + counted + host).arguments[:2]] == ["int64", "int64"]
    real = host.replace("int64", "float32")
    assert [one.dtype for one in made(HEAD + counted + real).arguments[:2]] == ["DTYPE", "float32"]


def test_a_text_that_may_be_none_is_one_that_the_source_knows(made):
    chosen = COPY.replace("B: tl", "act: tl.constexpr, B: tl").replace(
        "    tl.store",
        "    if act is not None:\n        if act == 'relu':\n            n = n + 0\n    tl.store",
    )
    assert values(made(HEAD + chosen))["act"] == ("relu",)


@pytest.mark.parametrize(
    ("stored", "computed"),
    [
        ("v", set()),  # a copy
        ("v.to(tl.float32) + 1", set()),
        ("tl.load(table + v).to(tl.float32)", set()),  # an index
        ("v + 1", {"x"}),
        ("tl.maximum(v, 0)", {"x"}),
        ("tl.sum(v)", {"x"}),
        ("(v > 0).to(tl.float32)", {"x"}),
        ("(v * v).to(tl.float32)", {"x"}),
    ],
)
def test_arrays_that_are_computed_with_in_their_own_type_are_told(tmp_path, stored, computed):
    text = HEAD + "@triton.jit\ndef k(x, table, y, B: tl.constexpr):\n    o = tl.arange(0, B)\n"
    text += f"    v = tl.load(x + o)\n    tl.store(y + o, {stored})\n"
    assert {*read_triton(text, tmp_path / "k.py")["k"].computed} == computed


def test_an_array_that_may_be_none_is_named_as_such(tmp_path):
    source = tmp_path / "k.py"
    source.write_text(
        HEAD + "@triton.jit\ndef k(x, bias):\n    v = tl.load(x)\n    if bias is not None:\n"
        "        v += tl.load(bias)\n    tl.store(x, v)\n"
    )
    lines = scaffold_triton(source, "made").space.splitlines()
    (line,) = (one for one in lines if "name: bias" in one)
    assert line.endswith("the source also takes None for it")


def test_arrays_and_texts_are_told_by_what_takes_them(made):
    spec = made(
        HEAD + "@triton.jit\ndef k(x, y, lengths, packed, CACHE: tl.constexpr, HOW: tl.constexpr, "
        "B: tl.constexpr):\n    length = tl.load(lengths + tl.program_id(0))\n"
        "    total = tl.zeros((B,), dtype=tl.float32)\n"
        "    for start in range(0, length, B):\n        o = start + tl.arange(0, B)\n"
        "        total += tl.load(x + o, mask=o < length, cache_modifier=CACHE)\n"
        "        total += (tl.load(packed + o) >> 4) & 15\n"
        "        tl.dot(total, total, input_precision=HOW)\n    tl.store(y + tl.arange(0, B), total)\n"
    )
    assert {one.name for one in spec.arguments if one.dtype == "int32"} == {"lengths", "packed"}
    assert values(spec)["CACHE"] == ("",) and values(spec)["HOW"] == ("ieee",)


def test_a_constant_that_is_an_element_type_is_told_from_a_text(tmp_path):
    text = HEAD + (
        "@triton.jit\ndef k(x, T: tl.constexpr, MODE: tl.constexpr):\n"
        "    v = tl.load(x).to(T)\n    if MODE == 'float32':\n        v = -v\n    tl.store(x, v)\n"
    )
    assert element_types(text, tmp_path / "k.py", "k") == {"T"}


def test_what_a_helper_loads_and_stores_counts_for_the_kernel(tmp_path):
    text = HEAD + (
        "@triton.jit\ndef put(place, v, o, n):\n    tl.store(place + o, v, mask=o < n)\n"
        "@triton.jit\ndef k(x, y, n, B: tl.constexpr):\n"
        "    o = tl.program_id(0) * B + tl.arange(0, B)\n    put(y, tl.load(x + o), o, n)\n"
    )
    kernel = read_triton(text, tmp_path / "k.py")["k"]
    assert kernel.roles == {"x": "in", "y": "out"}
    assert kernel.tiles["B"].bound == "n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@triton.jit\ndef twice(x):\n    return 2 * x\n", "or accesses nothing through its parameters"),
        ("@triton.jit\ndef k(d, y):\n    tl.store(y, d.load([0]))\n", "tensor descriptors of d"),
        ("@triton.jit\ndef k(s, y):\n    tl.store(y + s[0], 1)\n", "it takes tuples .s."),
        ("@triton.jit\ndef k(s: tl.constexpr, y):\n    tl.store(y + s[3 * 1], 1)\n", "it takes tuples .s."),
        ("@triton.jit\ndef k(x, n):\n    tl.load(x)\n", "stores nothing"),
        (
            "@triton.jit\ndef k(x, min: tl.constexpr):\n    tl.store(x, min)\n",
            "min has a name that spaces reserve",
        ),
    ],
)
def test_a_kernel_that_no_space_can_pass_is_refused_in_one_line(made, text, reason):
    with pytest.raises(InputError, match=reason) as caught:
        made(HEAD + text)
    assert "\n" not in str(caught.value)


def test_an_item_of_what_is_made_with_a_parameter_makes_it_no_tuple(made):
    text = COPY.replace("    tl.store(y + at,", "    made = tl.barriers(B)\n    tl.store(y + at + made[0],")
    assert made(HEAD + text).launch[0].entry == "copied"


def test_a_constant_with_a_default_that_an_extent_reads_has_a_value(made):
    text = (
        "@triton.jit\ndef k(x, y, n, R: tl.constexpr = 1):\n    at = tl.program_id(0)\n"
        "    for r in tl.static_range(R):\n        tl.store(y + at * R + r, tl.load(x + at))\n"
    )
    assert values(made(HEAD + text))["R"]


def test_a_tuple_in_an_index_of_another_is_one(made):
    text = "@triton.jit\ndef k(t: tl.constexpr, s: tl.constexpr, y):\n    tl.store(y + s[t[0] + 1], 1)\n"
    with pytest.raises(InputError, match="it takes tuples"):
        made(HEAD + text)


def test_stores_through_pointers_in_an_array_are_told(made):
    text = "@triton.jit\ndef k(all_of, y):\n    tl.store(tl.load(all_of).to(tl.pointer_type(tl.int8)), 1)\n"
    with pytest.raises(
        InputError, match="k cannot be tuned as it is: it stores through pointers that it loads"
    ):
        made(HEAD + text)


def test_what_is_reckoned_of_a_parameter_is_no_flag(tmp_path):
    guarded = "    whole = n % B == 0\n    if whole:\n        return\n    tl.store"
    text = HEAD + COPY.replace("    tl.store", guarded)
    assert read_triton(text, tmp_path / "kernel.py")["copied"].found.flags == set()


def nested(depth, header, body):
    lines = [f"{'    ' * (level + 1)}{header}" for level in range(depth)]
    return "\n".join([*lines, "    " * (depth + 1) + body])


@pytest.mark.parametrize(
    "body",
    [
        "    " + "\n    ".join(["a = (a, a)", "b = b * b", "c = c + c - b"] * 200),
        nested(18, "for i in range(n):", "x += i * n"),
        "    " + "\n    ".join(f"a = again(a, {number})" for number in range(2000)),
        "    a = " + " + ".join(["n"] * 5000),
        "    a = " + "(" * 90 + "n" + ")" * 90,
    ],
)
def test_hostile_kernels_are_read_soon_or_refused(tmp_path, body):
    text = HEAD + (
        "@triton.jit\ndef again(x, y):\n    return again(x, y) + again(y, x)\n"
        f"@triton.jit\ndef k(x, a, b, c, n):\n{body}\n    tl.store(x, a)\n"
    )
    try:
        assert "k" in read_triton(text, tmp_path / "k.py")
    except InputError as error:
        assert "nested too deeply" in str(error)


def test_an_entry_names_a_kernel_its_types_and_its_constants():
    entry = "add('*fp32:16', 'i32', BLOCK=128, T='fp16')"
    assert entry_signature(entry) == ("add", ("*fp32:16", "i32"), {"BLOCK": 128, "T": "fp16"})


@pytest.mark.parametrize(
    "entry", ["add", "add(", "a.b()", "add(1, 2)", "add(**x)", "add(f())", "add('i32', n=open)", "add\0"]
)
def test_a_text_that_is_no_entry_is_refused(entry):
    with pytest.raises((SyntaxError, ValueError)):
        entry_signature(entry)


def test_a_size_that_the_source_compares_with_numbers_is_one_of_them(made):
    text = (
        HEAD
        + """
@triton.jit
def convolved(x, w, y, n, WIDTH: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in tl.static_range(WIDTH):
        if WIDTH == 3:
            total += tl.load(w + k) * tl.load(x + at + k, mask=at + k < n)
        elif WIDTH == 4:
            total += tl.load(w + 3 - k) * tl.load(x + at + k, mask=at + k < n)
    tl.store(y + at, total, mask=at < n)
"""
    )
    assert made(text).sizes["default"]["WIDTH"] == 3


def test_matrices_are_multiplied_in_the_type_of_the_arrays_and_summed_up_in_32_bits(made):
    text = (
        HEAD
        + """
@triton.jit
def product(a, b, c, M, N, own: tl.constexpr, sums: tl.constexpr, result: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    rows = tl.program_id(0) * B + at
    total = tl.zeros((B, B), dtype=sums)
    left = tl.load(a + rows[:, None] * B + at[None, :], mask=rows[:, None] < M)
    right = tl.load(b + at[:, None] * N + at[None, :]).to(own)
    total = tl.dot(left, right, total, out_dtype=sums)
    tl.store(c + rows[:, None] * N + at[None, :], total.to(result), mask=rows[:, None] < M)
"""
    )
    kinds = {name: listed for name, listed in values(made(text)).items() if name in ("own", "sums", "result")}
    assert kinds == {"own": ("float16",), "sums": ("float32",), "result": ("float16",)}


@pytest.mark.parametrize(
    ("own", "dtype"), [("bfloat16", "bfloat16"), ("float16", "float16"), ("float32", "float16")]
)
def test_matrices_have_the_type_to_which_others_are_converted(made, own, dtype):
    text = (
        HEAD
        + f"""
@triton.jit
def product(a, b, c, M, B: tl.constexpr):
    at = tl.arange(0, B)
    rows = tl.program_id(0) * B + at
    left = tl.load(a + rows[:, None] * B + at[None, :], mask=rows[:, None] < M)
    right = tl.load(b + at[:, None] * B + at[None, :]).to(tl.{own})
    tl.store(c + rows[:, None] * B + at[None, :], tl.dot(left, right), mask=rows[:, None] < M)
"""
    )
    assert made(text).dtypes == (dtype,)


@pytest.mark.parametrize("name", ["DTYPE", "dtype"])
def test_an_element_type_under_a_name_that_spaces_reserve_is_that_of_the_search(made, name):
    text = COPY.replace("B: tl", f"{name}: tl.constexpr, B: tl").replace(
        "mask=at < n), m", f"mask=at < n).to({name}), m"
    )
    spec = made(HEAD + text)
    assert name not in values(spec)
    assert f"{name}=DTYPE" in spec.launch[0].constants


def test_a_function_that_a_call_makes_a_kernel_is_one(made, tmp_path):
    text = COPY.replace("@triton.jit\n", "") + (
        "copied = triton.jit(copied)\n"
        "configs = [triton.Config({'B': 64}), triton.Config({'B': 32})]\n"
        "copied = triton.autotune(configs=configs, key=[])(copied)\n"
    )
    assert is_triton(HEAD + text)
    spec = made(HEAD + text)
    assert values(spec)["B"] == (32, 64)
    assert "autotune" not in triton_part(HEAD + text, tmp_path / "kernel.py")


def test_a_matrix_is_given_by_another_kernel(made):
    helper = (
        "@triton.jit\ndef product(a, b, y, B: tl.constexpr):\n    at = tl.arange(0, B)\n"
        "    tl.store(y + at[:, None] * B + at[None, :], tl.dot(a, tl.load(b + at[:, None] * B + at)))\n"
    )
    with pytest.raises(InputError, match="product is a helper"):
        made(HEAD + helper)


def test_an_import_of_a_neighbour_can_succeed_in_a_folder_that_is_no_package(made, tmp_path):
    pytest.importorskip("triton.runtime", reason="needs the extra triton")
    (tmp_path / "tuner.py").write_text("")
    head = "try:\n    import triton\n    import triton.language as tl\n    from . import tuner\n"
    spec = made(f"{head}{COPY.replace(chr(10), chr(10) + '    ')}\nexcept ImportError:\n    triton = None\n")
    assert spec.launch[0].entry == "copied"


def test_a_block_has_the_extents_of_the_indices_that_were_loaded_for_it(made):
    text = (
        "@triton.jit\ndef looked_up(x, at, y, n: tl.constexpr, m: tl.constexpr, w: tl.constexpr):\n"
        "    i = tl.load(at + tl.arange(0, n)[:, None] * m + tl.arange(0, m)[None, :])\n"
        "    v = tl.load(x + i[:, :, None] * w + tl.arange(0, w)[None, None, :])\n"
        "    tl.store(y + tl.arange(0, w), tl.sum(tl.sum(v, axis=0), axis=0))\n"
    )
    spec = made(HEAD + text)
    extents = {**spec.sizes["default"], **spec.default}
    assert extents["n"] * extents["m"] * extents["w"] <= 16_384


def test_rows_that_programs_share_in_a_loop_are_as_many_as_its_end(made):
    spec = made(
        HEAD
        + """
@triton.jit
def shared(y, x, stride, rows, columns, B: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.arange(0, B)
        one = tl.load(x + row * stride + at, mask=at < columns)
        tl.store(y + row * stride + at, one / tl.sum(one), mask=at < columns)
"""
    )
    assert {*spec.sizes["default"]} == {"rows", "columns"}
    assert [*spec.launch[0].grid] == ["rows"]
    shapes = [one.shape for one in spec.arguments if one.shape]
    assert shapes == [("rows", "columns")] * 2
