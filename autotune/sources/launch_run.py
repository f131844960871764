"""What runs of a kernel on indices alone have in common: memories, steps, and what was found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from autotune.sources.thread_values import Bools, Ints, Value

_LANES_PER_STEP = 8192  # threads for which a step takes about twice as long


class OutOfSteps(Exception):
    """A run takes more steps than it is given."""


class NotUnderstood(Exception):
    """A function has what only a compiler understands."""


@dataclass(eq=False)
class FollowedArray:
    """An array."""

    name: str
    size: int | None  # in bytes; None if it is unknown
    unit: int  # the bytes of an element
    kind: str  # argument, block or thread, which share it
    read: Bools | None = None  # the elements that threads may have read; None where nobody asks
    written: Bools | None = None  # those that they may have written
    is_lost: bool = False  # any of them may have been, too
    is_overwritten: bool = False  # programs of one launch in Triton surely write the same element

    def reached(self) -> Bools:
        """The elements that threads may have read or written, as far as they are followed."""
        assert self.read is not None and self.written is not None
        return self.read | self.written


class Mask(NamedTuple):
    """The threads that surely run a statement, and those that may."""

    sure: Bools
    may: Bools


@dataclass(frozen=True)
class Beyond:
    """An access beyond the end of an array, or before its begin."""

    memory: FollowedArray
    element: int
    elements: int
    is_written: bool
    who: str  # the thread, or in Triton the program
    together: int = 1  # the elements of a vector that begins within the array


@dataclass(frozen=True)
class Divergent:
    """A barrier that one thread of a block reaches, and the other does not."""

    thread: tuple[int, int, int]
    other: tuple[int, int, int]
    block: tuple[int, int, int]


@dataclass(frozen=True)
class OddTile:
    """A tile whose length is no power of two: Triton does not compile it."""

    length: int


@dataclass
class Steps:
    """The steps that runs may take together."""

    left: float

    def pay(self, lanes: int) -> None:
        """Take one step; raises OutOfSteps after the last."""
        self.left -= 1 + lanes / _LANES_PER_STEP
        if self.left < 0:
            raise OutOfSteps


class LaunchRun(ABC):
    """A run of one launch."""

    def __init__(self, steps: Steps) -> None:
        self.found: dict[tuple[int, str], Beyond | Divergent | OddTile] = {}  # the first at each place
        # the array of each access, where in it threads surely are, and False where some places are unknown
        self.reached: list[tuple[str, bytes, bool]] = []
        self.is_whole = True  # False once something may have reached arrays that it could not follow
        self._steps = steps
        self._at = 0  # the place in the source

    @abstractmethod
    def _who(self, lane: int) -> str:
        """Who makes an access, in a message."""

    def _reach(
        self,
        memory: FollowedArray,
        offset: Value,
        mask: Mask,
        item: int,
        unit: int,
        *,
        is_read: bool,
        is_written: bool,
    ) -> Ints:
        """Note an access to items at offsets, and give the elements that are reached, as far as known.

        Offsets, the item's size and that of an element, `unit`, count alike: in bytes or in elements.
        """
        places, sure, may = np.broadcast_arrays(offset.data, *mask)
        known, is_known = offset.known, bool(offset.known.all())  # most offsets are known everywhere
        there = sure if is_known else sure & known
        if memory.kind == "argument":
            is_exact = is_known or np.array_equal(there, sure)
            self.reached.append((memory.name, places[there].tobytes(), is_exact))
        if memory.size is None or not item:
            memory.is_lost = True
            return np.zeros(0, np.int64)
        size = memory.size // memory.unit * unit
        is_beyond = (places < 0) | (places > size - item)
        if (bad := (there & is_beyond).ravel()).any():
            lane = int(bad.argmax())
            first = int(places.flat[lane])
            element = (first if first < 0 else first + item - 1) // unit
            together = item // unit if 0 <= first < size else 1
            beyond = Beyond(memory, element, size // unit, is_written, self._who(lane), together)
            self.found.setdefault((self._at, memory.name), beyond)
        is_open = is_beyond if is_known else is_beyond | ~known
        memory.is_lost |= bool((may & is_open).any())
        inside: Ints = places[may & ~is_open] // unit
        for reached, is_asked in ((memory.read, is_read), (memory.written, is_written)):
            if reached is not None and is_asked:
                for further in range(max(1, item // unit)):
                    reached[inside + further] = True
        return inside
