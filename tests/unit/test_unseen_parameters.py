"""A parameter whose values the source never sees is an error of the space, and `new` does not offer one."""

import pytest

from tests.conftest import run_in_process
from tests.devices_here import devices_here

KERNEL = """\
#define WPT 4
#ifndef WPT
#define WPT 1
#endif
__kernel void add(__global float *y, __global const float *x, int n) {
    for (int j = 0; j < WPT; j++) {
        int i = (get_group_id(0) * WPT + j) * BLOCK_SIZE + get_local_id(0);
        if (i < n) y[i] = x[i] + 1.0f;
    }
}
"""
ONE_EACH = KERNEL.partition("#endif\n")[2].replace("< WPT", "< 1").replace("* WPT", "* 1")
SPACE = """\
schema: 1
kernel: add
dialect: opencl
source: add.cl
reference: reference.py
sizes: {default: {n: 1000}}
dtypes: [float32]
parameters: {WPT: [1, 2, 4], BLOCK_SIZE: [32, 64]}
default: {WPT: 1, BLOCK_SIZE: 32}
landmarks: {first: {WPT: 1}}
arguments:
  - {name: y, dtype: float32, shape: [n], role: out}
  - {name: x, dtype: float32, shape: [n], role: in, fill: {uniform: [0, 1]}}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: add, grid: ["ceil_div(n, BLOCK_SIZE * WPT)"], block: [BLOCK_SIZE], arguments: [y, x, n]}
verify: {rtol: 0, atol: 0}
"""


@pytest.fixture
def space(tmp_path):
    devices_here("opencl")
    (tmp_path / "add.yaml").write_text(SPACE)
    (tmp_path / "reference.py").write_text(
        "def reference(inputs, sizes):\n    return {'y': inputs['x'] + 1}\n"
    )
    return tmp_path


REDEFINED = "add.cl:1: WPT: this `#define` replaces the values of the parameter"
ONLY_DEFINED = "add.cl:1: WPT: each value of the parameter defines this macro, so all values compile"
SOURCES = {  # by the kind of the finding: the source, and what is said of it
    "redefined_parameter": (KERNEL, REDEFINED),
    "only_defined_parameter": (
        "#ifdef WPT\n#define OWN 4\n#endif\n" + ONE_EACH.replace("1;", "OWN;"),
        ONLY_DEFINED,
    ),
}


TYPES = KERNEL.partition("#define WPT 4\n")[2].replace("float *", "T *")
WITH_TYPES = SPACE.replace("ers: {WPT", "ers: {T: [float, double], WPT").replace("lt: {W", "lt: {T: float, W")
TYPE_PARAMETER = """add.yaml:8: T: the source uses T as a type, but words of a parameter are numbers: \
T_FLOAT is 1; remove it from `parameters` and `default`, and write `dtypes: [float32, float64]`, \
`#define T DTYPE` in add.cl and `dtype: DTYPE` for arguments of this type"""


def test_a_parameter_of_types_is_refused_with_what_to_write(space):
    (space / "add.cl").write_text(TYPES)
    (space / "add.yaml").write_text(WITH_TYPES)
    assert "type_parameter" in run_in_process(space, "space", "add.yaml", "--json").stdout
    done = run_in_process(space, "search", "add.yaml", "--device", "opencl")
    assert done.returncode == 2 and f"autotune: {TYPE_PARAMETER}" in done.stderr, done.stderr
    mended = SPACE.replace("dtypes: [float32]", "dtypes: [float32, float64]")
    (space / "add.yaml").write_text(mended.replace("dtype: float32", "dtype: DTYPE"))
    (space / "add.cl").write_text(f"#define T DTYPE\n{TYPES}")
    for dtype in ("float32", "float64"):
        done = run_in_process(space, "run", "add.yaml", "--device", "opencl", "--dtype", dtype)
        assert done.returncode == 0, done.stderr
        findings = run_in_process(space, "space", "add.yaml", "--dtype", dtype, "--json").stdout
        assert '"signature"' not in findings


@pytest.mark.parametrize("is_template", [True, False])
def test_words_of_types_that_the_source_compares_or_a_template_takes_are_fine(space, is_template):
    source = "#if T == T_DOUBLE\n#endif\n" + TYPES.replace("T *", "float *")
    text = WITH_TYPES
    if is_template:
        source = TYPES.replace("__kernel", "template <typename T> __global__").replace("__global ", "")
        text = text.replace("dialect: opencl", "dialect: cuda").replace("entry: add,", 'entry: "add<T>",')
    (space / "add.cl").write_text(source)
    (space / "add.yaml").write_text(text)
    device = "sm_90" if is_template else "opencl"
    found = run_in_process(space, "space", "add.yaml", "--json", "--device", device)
    assert found.returncode == 0 and "type_parameter" not in found.stdout, found.stderr


@pytest.mark.parametrize("kind", SOURCES)
def test_a_search_refuses_a_parameter_that_the_source_never_sees(space, kind):
    source, message = SOURCES[kind]
    (space / "add.cl").write_text(source)
    assert kind in run_in_process(space, "space", "add.yaml", "--json").stdout
    for command in (("search",), ("run",), ("run", "--landmarks")):
        done = run_in_process(space, *command, "add.yaml", "--device", "opencl")
        assert done.returncode == 2 and f"autotune: {message}" in done.stderr, done.stderr
        assert "compiling" not in done.stderr and not list(space.glob("runs/add.*"))


def test_a_default_alone_is_fine_for_what_the_launches_use(space):
    (space / "add.cl").write_text("#ifndef WPT\n#define WPT 1\n#endif\n" + ONE_EACH)
    assert "defined_parameter" not in run_in_process(space, "space", "add.yaml", "--json").stdout


def test_new_does_not_offer_a_macro_that_the_source_defines_first(tmp_path):
    (tmp_path / "add.cl").write_text(KERNEL)
    run_in_process(tmp_path, "new", "add.cl")
    text = (tmp_path / "add.yaml").read_text()
    assert "  BLOCK_SIZE: [" in text and "WPT" not in text
