"""What tests of all kernels try of each space: its default, its landmarks, and a random share of the rest."""

import random
from collections.abc import Iterator

from autotune.model import Config, DeviceInfo
from autotune.space import Space, SpaceSpec, bind, problem_of

RANDOM_CONFIGURATIONS = 100


def sampled(spec: SpaceSpec, device: DeviceInfo) -> Iterator[tuple[Space, list[Config]]]:
    """For each element type the bound space and what to try, the same in every run.

    Landmarks that the device cannot run are left out; the random ones are shared out among the types.
    """
    share = RANDOM_CONFIGURATIONS // len(spec.dtypes)
    for dtype in spec.dtypes:
        space = bind(spec, device, problem_of(spec, device, dtype=dtype))
        generator = random.Random(f"{spec.kernel} {device.architecture} {dtype}")
        rows = generator.sample(range(len(space)), min(share, len(space)))
        landmarks = [landmark.config for landmark in spec.landmarks if landmark.config in space]
        yield space, list(dict.fromkeys([spec.default, *landmarks, *map(space.config, rows)]))
