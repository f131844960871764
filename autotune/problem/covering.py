"""Chooses workloads by what a configuration does there.

For slow checks, these are the smallest at which it shows all its behaviour. For further checks, they have
sizes around its tiles: one less than, exactly and one more than a tile, several tiles, fewer elements than a
warp. Blocks and loop trips are told apart by how the sizes divide: by a configuration's numbers, such as the
size of a tile, by the extents of its blocks, and by products of two of these.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, permutations, product

from autotune.core.records import Config, Sizes
from autotune.problem.workload import Make, Workload, entries

_FEW = (1, 7, 31)  # small sizes: fewer elements than a warp has threads
_TIMES = (1, 2, 3, 5, 17)  # further sizes, in tiles
_CHANGED, _ALIKE = 0.7, 0.5  # shares
_BEYOND = 4  # a further size is at most so many times the space's largest
_FAR_BEYOND = 64  # times the largest: a constraint that allows such a size is no limit
_TRIED = 80  # candidates, of which a few are chosen
_MAX_BYTES, _MAX_THREADS = 2**22, 2**18  # of a workload at sizes of tiles
_LITTLE_WORK = 2**18  # of any problem: its reference is fast
_BITS_16 = 2**16  # the values of an index of 16 bits
_BEYOND_16_BITS = _BITS_16 + 2**12 + 1  # enough beyond it that data reach there, too
_MAX_LONG_BYTES, _MAX_LONG_THREADS, _LONG_WORK = 2**25, 2**25, 2**23  # of a problem with such a size
_MANY = 3  # from so many blocks on, a grid has a first, a last and others between


def covering(workloads: Sequence[Workload], config: Config) -> tuple[Workload, ...]:
    """The fewest and smallest workloads that show every kind of block and trip that all show."""
    factors = divisors(workloads, config)
    kinds = {place: _kinds(workload, factors) for place, workload in enumerate(workloads)}
    for place in sorted(kinds, key=lambda place: threads(workloads[place]), reverse=True):
        others = set().union(*(seen for other, seen in kinds.items() if other != place))
        if kinds[place] <= others:
            del kinds[place]
    return tuple(workloads[place] for place in kinds)


def threads(workload: Workload) -> int:
    """The threads of all launches of a workload."""
    return sum(launch.threads for launch in workload.launches)


def size_product(sizes: Sizes) -> int:
    """The product of sizes, which bounds what a reference does."""
    return math.prod(sizes.values())


def _kinds(workload: Workload, divisors: Sequence[int]) -> set[tuple[object, ...]]:
    """The behaviour of a configuration in a workload: its launches, and how sizes divide by each divisor."""
    launches = tuple(
        (step.entry, tuple(min(extent, _MANY) for extent in step.grid), step.block)
        for step in workload.launches
    )
    sizes = workload.problem.sizes.values()
    return {("launches", launches)} | {
        (divisor, *((min(size // divisor, 2), size % divisor == 0) for size in sizes)) for divisor in divisors
    }


class Domain:
    """The sizes that a kernel accepts, inferred from the sizes of its space."""

    def __init__(self, given: Sequence[Sizes]) -> None:
        self._smallest = {name: min(sizes[name] for sizes in given) for name in given[0]}
        self._largest = {name: max(sizes[name] for sizes in given) for name in given[0]}
        self._steps = {name: math.gcd(*(sizes[name] for sizes in given)) for name in given[0]}
        self._varied = [name for name in given[0] if len({sizes[name] for sizes in given}) > 1]
        self._equals = {  # of each, the first that always equals it
            name: next(other for other in given[0] if all(sizes[other] == sizes[name] for sizes in given))
            for name in given[0]
        }
        self._most_work = max(_LITTLE_WORK, *map(size_product, given))
        self._given = given

    def is_declared(self, sizes: Sizes) -> bool:
        """True if sizes are no larger than the space's, divide as these do, and are equal where these are."""
        return all(
            size <= self._largest[name]
            and size % self._steps[name] == 0
            and size == sizes[self._equals[name]]
            for name, size in sizes.items()
        )

    def is_affordable(self, sizes: Sizes) -> bool:
        """True if there is no more work than at the space's sizes: each of these may be large alone."""
        return size_product(sizes) <= self._most_work

    def excluding(self, sizes: Sizes) -> list[str]:
        """Constraints that the space's sizes satisfy and these do not."""
        texts = [f"{name} >= {self._smallest[name]}" for name in sizes if sizes[name] < self._smallest[name]]
        texts += [f"{name} % {self._steps[name]} == 0" for name in sizes if sizes[name] % self._steps[name]]
        texts += [f"{equal} == {name}" for name, equal in self._equals.items() if sizes[name] != sizes[equal]]
        texts += [f"{name} <= {self._largest[name]}" for name in sizes if sizes[name] > self._largest[name]]
        return texts

    def declared(self, sizes: Sizes) -> Sizes:
        """The next larger sizes that divide as the space's do, and are equal where these are."""
        whole = {name: -(-size // self._steps[name]) * self._steps[name] for name, size in sizes.items()}
        return {name: whole[self._equals[name]] for name in sizes}

    def beyond_16_bits(self, name: str, tile: int) -> Iterator[Sizes]:
        """Sizes with one of more tiles than 16 bits hold; the others are the space's smallest, or 1."""
        if self._largest[name] <= tile * _BITS_16:
            for others in (self._smallest, dict.fromkeys(self._smallest, 1)):
                yield self.declared({**others, name: tile * _BEYOND_16_BITS})

    def candidates(self, divisors: Sequence[int], draw: random.Random) -> Iterator[Sizes]:
        """Sizes of which one is 1, then random ones around tiles; half are equal where the space's are."""
        if len(self._largest) > 1:
            yield from ({**sizes, name: 1} for sizes in self._given for name in self._varied)
        near = {times * tile + step for tile in divisors for times in _TIMES for step in (-1, 0, 1)}
        near |= {*_FEW}
        choices = {
            name: sorted(size for size in near if 0 < size <= _BEYOND * largest)
            for name, largest in self._largest.items()
        }
        while True:
            drawn = dict(draw.choice(self._given))
            for name in self._varied:
                if draw.random() < _CHANGED:
                    drawn[name] = draw.choice(choices[name])
            is_alike = draw.random() < _ALIKE
            yield {name: drawn[self._equals[name] if is_alike else name] for name in drawn}


def at_tiles(
    workloads: Sequence[Workload],
    timed: Workload,
    config: Config,
    make: Callable[[Sizes, int], Workload | None],
    count: int,
) -> list[Workload]:
    """Further workloads in which a configuration behaves as in none that it is verified on.

    At most `count`, and first those with a single size of 1. `timed` is the workload of the size to tune for;
    `make` makes the workload of sizes and a number, and gives None where the configuration is not valid.
    """
    given = (*workloads, timed)
    factors = divisors(given, config)
    compiled = entries(*given)
    draw = random.Random(repr(sorted(factors)))
    domain = Domain([workload.problem.sizes for workload in given])
    candidates = domain.candidates(factors, draw)
    shown = set().union(*(_remainders(workload, factors) for workload in given))
    largest = {name: max(workload.problem.sizes[name] for workload in given) for name in timed.problem.sizes}
    shown |= set().union(*(_doublings(workload) | _single(workload) for workload in given))

    def news(workload: Workload) -> set[tuple[object, ...]]:
        beyond = {(name,) for name, size in workload.problem.sizes.items() if size > largest[name]}
        kinds = _remainders(workload, factors) | _doublings(workload) | beyond | _single(workload)
        return kinds - shown

    left: dict[str, Workload] = {}
    for number in range(_TRIED):
        sizes = next(candidates)
        workload = make(sizes, len(workloads) + 1 + number) if domain.is_affordable(sizes) else None
        is_new = all(sizes != other.problem.sizes for other in given)
        if is_new and workload is not None and _is_small(workload) and entries(workload) <= compiled:
            left.setdefault(repr(sizes), workload)
    chosen: list[Workload] = []
    while left and len(chosen) < count:
        news_by_key = {key: news(workload) for key, workload in left.items()}
        best = max(left, key=lambda key: (len(news_by_key[key] & _single(left[key])), len(news_by_key[key])))
        if not news_by_key[best]:
            break
        shown |= news_by_key[best]
        chosen.append(left.pop(best))
    return chosen


def at_limits(given: Sequence[Workload], make: Make) -> Iterator[Workload]:
    """Workloads in which one size is larger than in any given one, and as large as constraints allow."""
    domain = Domain([workload.problem.sizes for workload in given])
    least = min((workload.problem.sizes for workload in given), key=size_product)
    for name in least:
        found, largest = None, max(workload.problem.sizes[name] for workload in given)
        low, high = largest, largest * _FAR_BEYOND
        is_limited = make(domain.declared({**least, name: high})) is None
        while is_limited and high - low > 1:
            middle = (low + high) // 2
            workload = make(domain.declared({**least, name: middle}))
            low, high = (middle, high) if workload else (low, middle)
            found = workload or found
        if found is not None:
            yield found


def beyond_16_bits(
    workloads: Sequence[Workload],
    timed: Workload,
    make: Callable[[Sizes, int], Workload | None],
    tiles: Sequence[int] = (1,),
    counts: Callable[[Workload], bool] = lambda workload: True,
) -> Iterator[Workload]:
    """Workloads in which one size has more tiles than 16 bits hold, one for each size that never does.

    For each size, it is the first of the `tiles` whose workload `counts`. See `at_tiles` for the other
    arguments.
    """
    given = (*workloads, timed)
    compiled = entries(*given)
    domain = Domain([workload.problem.sizes for workload in given])
    for number, name in enumerate(timed.problem.sizes, len(workloads) + 1 + _TRIED):
        choices = (sizes for tile in tiles for sizes in domain.beyond_16_bits(name, tile))
        made = (
            make(sizes, number)
            for sizes in choices
            if domain.is_affordable(sizes) or size_product(sizes) <= _LONG_WORK
        )
        fitting = (
            workload
            for workload in made
            if workload is not None
            and workload.size_bytes <= _MAX_LONG_BYTES
            and threads(workload) <= _MAX_LONG_THREADS
            and entries(workload) <= compiled
            and counts(workload)
        )
        yield from islice(fitting, 1)


def _is_small(workload: Workload) -> bool:
    return threads(workload) <= _MAX_THREADS and workload.size_bytes <= _MAX_BYTES


def divisors(workloads: Sequence[Workload], config: Config) -> list[int]:
    """A configuration's numbers, the extents of its blocks, and products of two of these."""
    numbers = {value for value in config.values() if type(value) is int and value > 1}
    extents = {
        extent for workload in workloads for step in workload.launches for extent in step.block if extent > 1
    }
    factors = sorted(numbers | extents)
    return sorted({factor * other for factor, other in product(factors, [1, *factors])})


def _single(workload: Workload) -> set[tuple[object, ...]]:
    """The one size that is 1 beside larger ones: one row, or one column."""
    ones = [name for name, size in workload.problem.sizes.items() if size == 1]
    return {(name, "single") for name in ones} if len(ones) == 1 < len(workload.problem.sizes) else set()


def _doublings(workload: Workload) -> set[tuple[object, ...]]:
    """How often each size doubles another one: rows may be longer than any so far."""
    sizes = workload.problem.sizes
    return {
        (name, smaller, "doubled", times)
        for name, smaller in permutations(sizes, 2)
        for times in range((sizes[name] // sizes[smaller]).bit_length())
    }


def _remainders(workload: Workload, divisors: Sequence[int]) -> set[tuple[object, ...]]:
    """The remainders of each size by each divisor, and the order of the sizes."""
    sizes = workload.problem.sizes
    remainders = {
        (name, divisor, min(size // divisor, _MANY), _remainder_kind(size % divisor, divisor))
        for (name, size), divisor in product(sizes.items(), divisors)
    }
    return remainders | {(name, other, sizes[name] < sizes[other]) for name, other in product(sizes, sizes)}


def _remainder_kind(remainder: int, divisor: int) -> int:
    """0 or 1 for these remainders, 2 for the largest one, 3 for any other."""
    if remainder < 2:
        return remainder
    return 2 if remainder == divisor - 1 else 3
