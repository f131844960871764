"""Every Triton space compiles for NVIDIA GPUs that are not here, and launches pass what kernels take."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs the extra triton")

from autotune.analysis.compile_survey import Settings, survey
from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.occupancy import why_refused
from autotune.compilers.resource_usage import read_resources
from autotune.compilers.source_text import read_source
from autotune.compilers.triton_binary import code_sha256, completed, scratch_bytes, scratch_name, unpack
from autotune.core.launch_plan import TRITON, symbol_names
from autotune.core.records import Config, Launch
from autotune.core.trials import Status
from autotune.errors import CompileError, LaunchError, SpaceError
from autotune.evaluation.instance import InstanceMaker
from autotune.hardware.architectures import architecture
from autotune.scaffold.triton import scaffold_triton
from autotune.space import bind, load_space, problem_of
from autotune.tuning.task import Target
from tests.sampled_configurations import sampled

FILES = sorted((Path(__file__).parents[2] / "spaces").glob("triton_*.yaml"))
FLOAT8 = FILES[0].with_name("triton_matmul_float8.yaml")
HEAD = "import triton\nimport triton.language as tl\n"
PAIRWISE = 1  # configurations of each space, beside its landmarks


def compiled(space, config, *all_sizes):
    """The launches for each set of sizes, and one binary for all."""
    launches = [step for sizes in all_sizes or [{}] for step in space.launches(config, sizes)]
    compiler = cuda_compiler(space.device.architecture, TRITON)
    return launches, compiler.compile(read_source(space.spec.source).text, (), symbol_names(launches, ()))


def require_launchable(space, config):
    launches, binary = compiled(space, config)
    kernels = unpack(binary)
    assert {step.entry for step in launches} == kernels.keys()
    for step in launches:
        kernel = kernels[step.entry]
        used = read_resources(kernel.cubin)[kernel.symbol]
        place = architecture(space.device.architecture)
        step = completed(step, kernel)
        assert why_refused(place, step, used.registers, used.shared_bytes, used.max_threads) is None
    assert binary.registers and binary.shared_bytes is not None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_landmarks_and_a_sample_compile_for_sm_90(path):
    spec = load_space(path)
    sample = sampled(spec, architecture("sm_90").device, PAIRWISE)
    for config in sample[0].known[:: max(1, len(sample[0].known) - 1)]:  # the default and the last landmark
        require_launchable(sample[0].space, config)
    for part in sample:
        for config in part.pairwise:
            compiled(part.space, config)


def places(*names):
    """Each space on each of these architectures, except for float8 where the hardware has none."""
    pairs = [(path, name) for path in FILES for name in names if (path, name) != (FLOAT8, "sm_80")]
    return pytest.mark.parametrize(("path", "name"), pairs, ids=lambda one: getattr(one, "stem", one))


@places("sm_80", "sm_100")
def test_the_default_compiles_for_other_architectures(path, name):
    spec, device = load_space(path), architecture(name).device
    require_launchable(bind(spec, device, problem_of(spec, device)), spec.default)


def test_float8_needs_hardware_that_has_it():
    spec, device = load_space(FLOAT8), architecture("sm_80").device
    with pytest.raises(SpaceError, match="no configuration is valid on NVIDIA A100"):
        bind(spec, device, problem_of(spec, device))


@pytest.mark.wide
@places("sm_80", "sm_90", "sm_100")
def test_landmarks_and_every_pair_of_values_compile(path, name):
    for part in sampled(load_space(path), architecture(name).device):
        for config in part.known:
            require_launchable(part.space, config)
        for config in part.pairwise:
            compiled(part.space, config)


def softmax():
    spec, device = load_space(FILES[0].with_name("triton_softmax.yaml")), architecture("sm_90").device
    return bind(spec, device, problem_of(spec, device))


def test_one_binary_has_a_kernel_for_each_way_in_which_sizes_are_known():
    space = softmax()
    sizes = [
        {"m": 64, "n": 64},
        {"m": 64, "n": 63},
        {"m": 64, "n": 1},
        {"m": 128, "n": 128},
        {"m": 7, "n": 64},
    ]
    launches, binary = compiled(space, space.spec.default, *sizes)
    kernels = unpack(binary)
    assert [kernels[step.entry].passed for step in launches] == [
        (0, 1, 2, 3),
        (0, 1, 2, 3),
        (0, 1, 2),  # the number 1 is compiled in
        (0, 1, 2, 3),
        (0, 1, 2, 3),
    ]
    assert launches[0].entry == launches[3].entry  # multiples of 16 are all that is known
    assert len(kernels) == 4  # and m, which the kernel is not compiled for, makes no other cubin
    assert len({kernel.cubin for kernel in kernels.values()}) == 3


def test_the_same_source_gives_the_same_binary():
    space = softmax()
    assert compiled(space, space.spec.default)[1].sha256 == compiled(space, space.spec.default)[1].sha256


@pytest.mark.parametrize(
    ("source", "entry", "reason"),
    [
        (
            "import nothing_of_this_name\n@jit\ndef f(): pass",
            "f()",
            "`import nothing_of_this_name` cannot be run",
        ),
        ("f = 1", "f('i32')", "no kernel 'f' under @triton.jit"),
        ("", "f('*fp32:16', 'i32', BLOCK=64)", "takes .x.; the launch plan passes 2"),
        ("", "f('*fp32:16')", "no value for BLOCK"),
        (
            "",
            "f('*fp32:16', BLOCK=63)",
            r"^f, line 2 from its def, `tl.store\(x \+ .*`: ValueError: .*power of 2",
        ),
        (
            HEAD + "@triton.jit\ndef g(v):\n    tl.static_assert(v.dtype == tl.int8)\n    return v\n"
            "@triton.jit\ndef f(x):\n    tl.store(x, g(tl.load(x)))\n",
            "f('*fp32:16')",
            "^g, line 2 from its def, `tl.static_assert.v.dtype == tl.int8.`: the assertion fails$",
        ),
        (
            HEAD + "@triton.jit\ndef f(x, **meta):\n    tl.store(x, 1.0)\n",
            "f('*fp32:16')",
            "^`def f.x, ..meta.:` cannot be run: TypeError: .*; Triton 1 had them",
        ),
        ("", "f('*fp32:16', BLOCK=64, num_warps=3)", "power of 2"),
    ],
)
def test_what_does_not_compile_is_refused_with_its_reason(source, entry, reason):
    text = f"{HEAD}@triton.jit\ndef f(x, BLOCK: tl.constexpr):\n    tl.store(x + tl.arange(0, BLOCK), 1.0)\n"
    with pytest.raises(CompileError, match=reason):
        cuda_compiler("sm_90", TRITON).compile(source or text, (), (entry,))


def test_the_versions_that_have_block_pointers_are_named():
    if hasattr(importlib.import_module("triton.language"), "advance"):
        pytest.skip("this Triton has block pointers")
    text = (
        "import triton\nimport triton.language as tl\n@triton.jit\ndef f(x):\n"
        "    tl.store(tl.make_block_ptr(x, (64,), (1,), (0,), (64,), (0,)), 1.0)\n"
    )
    with pytest.raises(CompileError, match=r"Triton 3\.5 to 3\.8 have them"):
        cuda_compiler("sm_90", TRITON).compile(text, (), ("f('*fp32')",))


CRASHING = """\
import triton
import triton.language as tl


@triton.constexpr_function
def checked(size):
    import os  # Triton refuses functions of other modules

    if size == 64:
        os.abort()
    return size


@triton.jit
def fill(y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, checked(BLOCK))
    tl.store(y + at, 1, mask=at < n)
"""
CRASHING_SPACE = """\
schema: 1
kernel: fill
dialect: triton
source: fill.py
reference: fill.py
sizes: {default: {n: 1000}}
dtypes: [int32]
parameters: {BLOCK: [32, 64, 128]}
default: {BLOCK: 32}
arguments:
  - {name: y, dtype: int32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: fill, grid: ["ceil_div(n, BLOCK)"], arguments: [y, n]}
"""


def test_a_kernel_that_kills_the_compiler_costs_one_configuration(tmp_path):
    (tmp_path / "fill.py").write_text(CRASHING)
    (tmp_path / "fill.yaml").write_text(CRASHING_SPACE)
    target = Target(tmp_path / "fill.yaml")
    (found,) = survey(target, [architecture("sm_90")], Settings(compilers=1))
    reasons = {one.config["BLOCK"]: one.failure for one in found.checked}
    crash = reasons.pop(64)
    assert reasons == {32: None, 128: None}
    assert crash.status is Status.COMPILE_ERROR and "the compiler crashed" in crash.detail
    assert "SIGABRT" in crash.detail and not crash.by_machine


def test_too_much_shared_memory_is_known_before_a_launch():
    text = (
        "import triton\nimport triton.language as tl\n@triton.jit\ndef f(x):\n"
        "    tile = x + tl.arange(0, 256)[:, None] * 256 + tl.arange(0, 256)[None, :]\n"
        "    tl.store(tile, tl.load(tile).T)\n"
    )
    with pytest.raises(
        LaunchError, match="too much shared memory: 262,144 bytes in a block, at most 232,448"
    ):
        cuda_compiler("sm_90", TRITON).compile(text, (), ("f('*fp32:16', num_warps=32)",))


@pytest.mark.parametrize(("name", "needed"), [("sm_80", 0), ("sm_90", 2 * 128)])
def test_descriptors_are_in_scratch_memory_where_the_hardware_has_them(name, needed):
    text = (
        "import triton\nimport triton.language as tl\n@triton.jit\ndef f(x, y):\n"
        "    source = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [16, 64])\n"
        "    target = tl.make_tensor_descriptor(y, [64, 64], [64, 1], [16, 64])\n"
        "    target.store([0, 0], source.load([0, 0]))\n"
    )
    entry = "f('*fp16:16', '*fp16:16')"
    (kernel,) = unpack(cuda_compiler(name, TRITON).compile(text, (), (entry,))).values()
    step = Launch(entry, (10, 1, 1), (1, 1, 1), 0, ("x", "y"))
    assert scratch_bytes(step, kernel) == 10 * needed
    assert (scratch_name(step) in completed(step, kernel).arguments) is bool(needed)


def test_arguments_of_another_size_are_refused():
    text = (
        "import triton\nimport triton.language as tl\n@triton.jit\ndef f(x, n: tl.int64, B: tl.constexpr):\n"
        "    tl.store(x + tl.arange(0, B), n)\n"
    )
    compiler = cuda_compiler("sm_90", TRITON)
    (kernel,) = unpack(compiler.compile(text, (), ("f('*i64:16', 'i64', B=64)",))).values()
    assert (kernel.passed, kernel.warps, kernel.cluster) == ((0, 1), 4, 1)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("def f(x):\n    tl.store(x, tl.dot(x, x, trans_b=True))\n", "around the operand$"),
        ("def f(x, **meta):\n    tl.store(x, 1)\n", "parameter of its own, with tl.constexpr$"),
        ("def f(x):\n    tl.store(x, 1)\nimport triton.ops.blocksparse\n", "the version of your program$"),
    ],
)
def test_what_only_older_versions_take_comes_with_advice(text, advice):
    source = f"import triton\nimport triton.language as tl\n@triton.jit\n{text}"
    with pytest.raises(CompileError, match=advice):
        cuda_compiler("sm_90", TRITON).compile(source, (), ("f('*fp32:16')",))


def test_constants_of_a_file_need_not_be_marked_as_such():
    """As older versions of Triton had it; the variable TRITON_ALLOW_NON_CONSTEXPR_GLOBALS still allows it."""
    text = (
        "import triton\nimport triton.language as tl\nWIDE: tl.constexpr = 2\nHALF = 0.5\n"
        "@triton.jit\ndef f(x, B: tl.constexpr):\n    tl.store(x + tl.arange(0, B) * WIDE, HALF)\n"
    )
    assert cuda_compiler("sm_90", TRITON).compile(text, (), ("f('*fp32:16', B=64)",)).data


def test_element_types_options_and_frameworks_of_a_strangers_kernel(tmp_path):
    (tmp_path / "scaled.py").write_text(
        "from a_framework.compat import tl, triton\n@triton.jit\n"
        "def scaled(x, y, n, T: tl.constexpr, MODE: tl.constexpr, "
        "B: tl.constexpr, num_warps: tl.constexpr):\n"
        "    tl.static_assert(MODE == 'float32')\n    tl.static_assert(num_warps == 8)\n"
        "    o = tl.program_id(0) * B + tl.arange(0, B)\n    v = tl.load(x + o, mask=o < n).to(T)\n"
        "    tl.static_assert(v.dtype == tl.float32)\n    tl.store(y + o, v, mask=o < n)\n"
    )
    (tmp_path / "scaled_reference.py").write_text("")
    (tmp_path / "scaled.yaml").write_text(scaffold_triton(tmp_path / "scaled.py", "scaled").space)
    spec, device = load_space(tmp_path / "scaled.yaml"), architecture("sm_90").device
    space = bind(spec, device, problem_of(spec, device))
    launches, binary = compiled(space, Config({**spec.default, "num_warps": 8}))
    assert unpack(binary)[launches[0].entry].warps == 8


@pytest.fixture
def copying(tmp_path):
    (tmp_path / "copy.py").write_text(
        "import triton\nimport triton.language as tl\n@triton.jit\ndef copy(x, y, n, B: tl.constexpr):\n"
        "    o = tl.program_id(0) * B + tl.arange(0, B)\n"
        "    tl.store(y + o, tl.sigmoid(tl.load(x + o, mask=o < n)), mask=o < n)\n"
    )
    (tmp_path / "copy_reference.py").write_text("")
    text = scaffold_triton(tmp_path / "copy.py", "copy").space
    text = text.replace("parameters:\n", "parameters:\n  num_stages: [1, 3]\n").replace(
        "default: {B", "default: {num_stages: 1, B"
    )
    (tmp_path / "copy.yaml").write_text(text)
    return tmp_path / "copy.yaml"


def test_stages_of_a_kernel_without_a_loop_change_no_binary(copying):
    (found,) = survey(Target(copying), [architecture("sm_90")], Settings(compilers=2))
    assert found.idle_parameters == ("num_stages",)
    assert len({one.work for one in found.checked}) * 2 == len(found.checked) == found.valid


def test_configurations_of_the_same_code_count_as_the_same_run(copying):
    """A search takes the time of the first for all of them."""
    spec, device = load_space(copying), architecture("sm_90").device
    space, source = bind(spec, device, problem_of(spec, device)), read_source(spec.source)
    maker, compiler = InstanceMaker(space, source, "cuda", {}), cuda_compiler("sm_90", TRITON)

    def run(**values):
        instance = maker.make(Config({**spec.default, **values}))
        return code_sha256(compiler.compile(instance.source, (), instance.names)), instance.workloads_key

    assert run(num_stages=1) == run(num_stages=3)
    (code, launches), (other, further) = run(B=1024), run(B=2048)
    assert code != other and launches != further


def test_commands_compile_also_where_programs_are_interpreted(folder, copying, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    done = folder.run("space", copying, "--compile", "--device", "sm_90", "--config", "num_stages=3")
    assert done.returncode == 0, done.stderr
    assert "TRITON_INTERPRET is ignored" in done.stderr


def test_a_program_that_interprets_is_told_why_nothing_is_compiled(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(CompileError, match="TRITON_INTERPRET is set"):
        cuda_compiler("sm_90", TRITON).compile("import triton\n", (), ("f()",))
