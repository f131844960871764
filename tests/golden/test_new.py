"""What `autotune new` writes for some kernels, word by word, so that a change of it is seen."""

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.scaffold import scaffold
from autotune.scaffold.triton import scaffold_triton
from autotune.space import load_space

SAMPLES = Path(__file__).parent / "new"


@pytest.mark.parametrize("source", sorted(SAMPLES.glob("*.c[lu]")), ids=lambda path: path.stem)
def test_the_files_are_as_recorded(source):
    made = scaffold(source.name, source.stem, source.read_text())
    assert made.space == source.with_suffix(".yaml").read_text()
    assert made.reference == source.with_suffix(".py").read_text()


def test_the_files_for_a_kernel_in_triton_are_as_recorded():
    source = Path(__file__).parent / "triton" / "tiles.py"
    made = scaffold_triton(source, "tiles")
    assert made.space == source.with_suffix(".yaml").read_text()
    assert made.reference == source.with_name("tiles_reference.py").read_text()
    spec = load_space(source.with_suffix(".yaml"))
    assert [landmark.config for landmark in spec.landmarks] == made.guess.kernel.configs
    with pytest.raises(InputError, match="called 'other'; it has product"):
        scaffold_triton(source, "tiles", "other")


def test_a_kernel_in_triton_without_a_list_gets_usual_values(tmp_path):
    source = tmp_path / "add.py"
    source.write_text(
        "import triton\nimport triton.language as tl\n@triton.jit\n"
        "def add(x_ptr, y_ptr, alpha, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    tl.store(y_ptr + at, alpha * tl.load(x_ptr + at, mask=at < n), mask=at < n)\n"
    )
    made = scaffold_triton(source, "add")
    (tmp_path / "add.yaml").write_text(made.space)
    (tmp_path / "add_reference.py").write_text(made.reference)
    spec = load_space(tmp_path / "add.yaml")
    assert made.guess.kernel.roles == {"x_ptr": "in", "y_ptr": "out"}
    assert {one.name for one in spec.parameters} == {"BLOCK", "num_warps"}
    assert [(one.name, one.dtype) for one in spec.arguments if one.value] == [
        ("alpha", "float32"),
        ("n", "int32"),
    ]
    assert spec.launch[0].grid == ("ceil_div(n, BLOCK)",)


def test_arrays_behind_descriptors_and_functions_of_a_kernel_are_told(tmp_path):
    source = tmp_path / "copy.py"
    source.write_text(
        "import triton\nimport triton.language as tl\n@triton.jit\ndef place(step, BLOCK: tl.constexpr):\n"
        "    return step * BLOCK\n@triton.jit\ndef copied(x, y, n, BLOCK: tl.constexpr):\n"
        "    source = tl.make_tensor_descriptor(x, [n], [1], [BLOCK])\n"
        "    target = tl.make_tensor_descriptor(y, [n], [1], [BLOCK])\n"
        "    at = place(tl.program_id(0), BLOCK)\n    target.store([at], source.load([at]))\n"
    )
    made = scaffold_triton(source, "copy")
    assert (made.guess.kernel.entry, made.guess.kernel.roles) == ("copied", {"x": "in", "y": "out"})
