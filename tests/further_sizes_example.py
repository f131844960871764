"""For tests of the sizes that a last round adds: those of a small kernel, and its default's instance."""

import yaml

from autotune.compilers.source_text import read_source
from autotune.evaluation.instance import InstanceMaker
from autotune.space import bind, load_space, problem_of
from autotune.tuning.further_sizes import FurtherSizes
from tests.space_example import GPU


def sizes_and_instance(folder, name, source, space):
    """Write a kernel with its space, and return its further sizes and the instance of its default."""
    (folder / yaml.safe_load(space)["source"]).write_text(source)
    (folder / f"{name}.py").write_text("def reference(inputs, sizes):\n    return {}\n")
    (folder / f"{name}.yaml").write_text(space)
    return sizes_of(load_space(folder / f"{name}.yaml"))


def sizes_of(spec):
    """The further sizes of a space on a GPU, and the instance of its default."""
    bound = bind(spec, GPU, problem_of(spec, GPU))
    maker = InstanceMaker(bound, read_source(spec.source), spec.dialect, {})
    return FurtherSizes(maker), maker.make(spec.default)
