"""What decides that an outcome is known already."""

from autotune.compilers.source_text import read_source
from autotune.evaluation.instance import InstanceMaker, environment
from autotune.space import bind, load_space, problem_of
from tests.space_example import GPU, YAML, write_space


def test_the_outcome_of_another_compiler_is_not_known(tmp_path):
    spec = load_space(write_space(tmp_path, YAML))
    space = bind(spec, GPU, problem_of(spec, GPU))
    source = read_source(spec.source)

    def key(compiler):
        return (
            InstanceMaker(space, source, "cuda", environment(space.device, compiler)).make(spec.default).key
        )

    assert key("NVRTC 13.0.48") == key("NVRTC 13.0.48") != key("NVRTC 13.0.88")


def test_configurations_that_launch_alike_share_their_problems_and_so_travel_once(tmp_path):
    spec = load_space(write_space(tmp_path, YAML))
    space = bind(spec, GPU, problem_of(spec, GPU))
    maker = InstanceMaker(space, read_source(spec.source), "cuda", environment(space.device, "NVRTC 13.0.48"))
    made = [maker.make(config) for config in space]
    workloads = [one.workload for one in made]
    assert (
        len({id(one) for one in workloads}) == len({one.identity_text for one in workloads}) < len(workloads)
    )
