"""`autotune new` for many kinds of source: the default of the space compiles, or one line says why."""

from argparse import Namespace
from pathlib import Path

import pytest

from autotune.cli import new
from autotune.compilers.binary_cache import BinaryCache, CachedCompiler, default_folder
from autotune.compilers.cuda_headers import find_header
from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.resource_usage import read_resources
from autotune.compilers.source_text import read_source, render
from autotune.errors import InputError
from autotune.hardware.architectures import architecture
from autotune.space import bind, lint_source, load_space, problem_of

pytest.importorskip("cuda.bindings.nvrtc")

FOLDER = Path(__file__).parents[1] / "golden" / "strange"
REFUSED = {
    "pointer_to_pointers": "float **rows: autotune passes plain arrays and numbers only",
    "texture": "image is a texture",
    "unknown_function": "transform: f is a function, and the source has no structure that could be passed",
}
NEEDED = {
    "bfloat16": "cuda_bf16.h",
    "complex": "cuComplex.h",
    "cub_block": "cub/cub.cuh",
    "cub_choice": "cub/cub.cuh",
    "cub_warp": "cub/cub.cuh",
    "groups": "cooperative_groups.h",
    "half": "cuda_fp16.h",
    "tensor_cores": "mma.h",
}
CUDA = sorted(path.stem for path in FOLDER.glob("*.cu"))


def space_of(folder, file):
    (folder / file).write_text((FOLDER / file).read_text())
    asked = {"kernel": folder / file, "entry": None, "include": [], "define": [], "time": 60.0}
    new.run(Namespace(**asked, quiet=True, verbose=False))
    (path,) = folder.glob("*.yaml")
    spec = load_space(path)
    device = architecture("sm_90").device
    return bind(spec, device, problem_of(spec, device))


@pytest.mark.parametrize("name", [name for name in CUDA if name not in REFUSED])
def test_the_default_of_a_new_space_compiles(name, tmp_path):
    if name in NEEDED and find_header(NEEDED[name]) is None:
        pytest.skip(f"{NEEDED[name]} is not installed")
    space = space_of(tmp_path, f"{name}.cu")
    default = space.spec.default
    launches = space.launches(default)
    found = lint_source(space, read_source(space.spec.source).text)
    assert [one for one in found if one.kind == "signature"] == []
    source = render(read_source(space.spec.source), space.macros(default))
    names = space.symbol_names(launches)
    compiler = CachedCompiler(cuda_compiler("sm_90"), BinaryCache(default_folder()))  # `new` has compiled it
    binary = compiler.compile(source, space.options(default, "cuda"), names)
    kernels = read_resources(binary.data)
    assert all(binary.symbol(step.entry) in kernels for step in launches)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_tuned_is_refused_in_one_line(name, tmp_path):
    with pytest.raises(InputError, match=REFUSED[name].replace("*", r"\*")) as error:
        space_of(tmp_path, f"{name}.cu")
    assert "\n" not in str(error.value)


def test_an_argument_may_be_called_like_an_operator(tmp_path):
    space = space_of(tmp_path, "or.cl")
    assert [argument.name for argument in space.spec.arguments] == ["x", "or", "n"]
