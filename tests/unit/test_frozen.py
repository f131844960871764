"""Records that are cheap to declare are dataclasses for everyone else."""

import copy
import dataclasses
import pickle

import pytest

from autotune.core import frozen
from autotune.core.records import ArgumentSpec, DeviceInfo, Entry, LaunchSpec
from autotune.space.arguments import FilledArgument
from tests.cache_example import DEVICE, entry

SPEC = LaunchSpec("main", ("1",), ("32",), ("x",))


def test_they_are_made_compared_and_shown_as_dataclasses_are():
    twin = dataclasses.make_dataclass(
        "LaunchSpec",
        [(item.name, item.type, item) for item in map(copy.copy, dataclasses.fields(LaunchSpec))],
        frozen=True,
    )
    assert repr(SPEC) == repr(twin("main", ("1",), ("32",), ("x",)))
    assert LaunchSpec(entry="main", grid=("1",), block=("32",), arguments=("x",)) == SPEC
    assert hash(SPEC) == hash(dataclasses.replace(SPEC))
    assert SPEC != dataclasses.replace(SPEC, when="n > 1") == frozen.replace(SPEC, when="n > 1")
    assert twin("main", ("1",), ("32",), ("x",)) != SPEC
    assert pickle.loads(pickle.dumps(SPEC)) == copy.deepcopy(SPEC) == SPEC
    assert dataclasses.asdict(SPEC)["block"] == ("32",)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("main", ("1",), ("32",)), {}),
        (("main", ("1",), ("32",), ("x",)), {"colour": "red"}),
        (("main", ("1",), ("32",), ("x",)), {"entry": "other"}),
        (("main", ("1",), ("32",)), {"colour": "red"}),
        (range(20), {}),
    ],
)
def test_missing_unknown_and_repeated_arguments_are_refused(args, kwargs):
    with pytest.raises(TypeError, match=r"LaunchSpec has the fields entry, grid, .*; given: "):
        LaunchSpec(*args, **kwargs)


def test_a_field_can_be_neither_set_nor_deleted():
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'entry'"):
        SPEC.entry = "other"
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'entry'"):
        del SPEC.entry


def test_each_instance_has_a_default_of_its_own():
    @frozen.dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2
        near: list[int] = frozen.field(default_factory=list)

    points = [Point(x=1), Point(1, 2)]
    assert [vars(point) for point in points] == [{"x": 1, "y": 2, "near": []}] * 2
    assert points[0].near is not points[1].near


def test_fields_that_do_not_count_and_mutable_defaults():
    assert dataclasses.replace(DEVICE, limits="300 W") == DEVICE
    assert [item.name for item in frozen.fields(DeviceInfo) if not item.compare] == ["limits"]
    assert [item.name for item in dataclasses.fields(Entry)] == [item.name for item in frozen.fields(Entry)]
    assert entry(64) == entry(64) != entry(65)


def test_a_subclass_may_have_more_fields():
    argument = FilledArgument("x", "int32", "in", ("n",))
    assert frozen.replace(argument, name="y") == dataclasses.replace(argument, name="y")
    assert isinstance(argument, ArgumentSpec) and argument != ArgumentSpec("x", "int32", "in", ("n",))
