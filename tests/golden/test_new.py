"""What `autotune new` writes for two kernels, word by word, so that a change of it is seen."""

from pathlib import Path

import pytest

from autotune.compilers.kernel_source import include_dir
from autotune.scaffold import scaffold

SAMPLES = Path(__file__).parent / "new"


@pytest.mark.parametrize("source", sorted(SAMPLES.glob("*.c[lu]")), ids=lambda path: path.stem)
def test_the_files_are_as_recorded(source):
    header = (Path(include_dir()) / "portable.h").read_text()
    made = scaffold(source.name, source.stem, source.read_text(), header)
    assert made.space == source.with_suffix(".yaml").read_text()
    assert made.reference == source.with_suffix(".py").read_text()
