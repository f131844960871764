"""The texts of `--size` and `--sweep` as sizes of problems."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from autotune.core.launch_plan import RESERVED_SIZES
from autotune.errors import InputError
from autotune.tuning.options import MAX_PROBLEMS


def parse_sizes(texts: Iterable[str]) -> dict[str, int]:
    """Parse `--size n=1000 --size m=2000`; raises InputError for anything else."""
    sizes = {}
    for text in texts:
        name, separator, number = text.partition("=")
        size = _whole_number(number) if separator and name else None
        if not size:
            meant = name if name.isidentifier() else "n"
            raise InputError(
                f"--size {text}: expected NAME=NUMBER, a number of at least 1 in digits, such as "
                f"--size {meant}=1000"
            )
        if name in RESERVED_SIZES:
            raise InputError(f"--size {text}: {name} cannot be the name of a size")
        if name in sizes:
            raise InputError(
                f"--size {text}: {name} is given twice; leave one out; for several sizes, write "
                f"--sweep {name}=10:20:x2"
            )
        sizes[name] = size
    return sizes


def parse_sweep(texts: Sequence[str], fixed: Collection[str] = ()) -> list[dict[str, int]]:
    """Parse `--sweep`: the sizes of every problem, all combinations of what is given; raises InputError.

    Each text is a range such as `n=2**10:2**30:x4`, a list such as `n=1,2,4`, or a CSV file of sizes. No
    sweep can change the sizes that are `fixed`.
    """
    problems: list[dict[str, int]] = [{}]
    for text in texts:
        points = _points_of_file(text) if "=" not in text else _points_of_text(text)
        for name in points[0]:
            if name in RESERVED_SIZES:
                raise InputError(f"--sweep {text}: {name} cannot be the name of a size")
            if name in problems[0] or name in fixed:
                raise InputError(f"--sweep {text}: {name} is in --size or another --sweep too; leave one out")
        if any(0 in point.values() for point in points):
            raise InputError(f"--sweep {text}: expected sizes of at least 1")
        if len(problems) * len(points) > MAX_PROBLEMS:
            raise InputError(f"--sweep {text}: expected at most {MAX_PROBLEMS:,} combinations of sizes")
        problems = [{**problem, **point} for problem in problems for point in points]
    return problems


def _points_of_text(text: str) -> list[dict[str, int]]:
    """The sizes of a range, to whose end the last one belongs even if no step leads to it, or of a list."""
    match = re.fullmatch(r"(\w+)=(?:([^:]+):([^:]+):([x+])([^:]+)|([^:]+))", text)
    if match is None:
        raise InputError(
            f"--sweep {text}: expected NAME=FIRST:LAST:STEP with a step that multiplies or adds, such as "
            "n=2**10:2**30:x4 or n=100:1000:+100, or a list such as n=1,2,4, or a CSV file of sizes"
        )
    if match[6]:
        sizes = [_number_of(text, part) for part in match[6].split(",")]
    else:
        first, last, step = (_number_of(text, part) for part in match.group(2, 3, 5))
        is_product = match[4] == "x"
        if last < first:
            raise InputError(f"--sweep {text}: the first size, {first:,}, is above the last one, {last:,}")
        if step < 1 + is_product:
            raise InputError(f"--sweep {text}: expected a step of at least {'x2' if is_product else '+1'}")
        sizes = []
        while first < last and len(sizes) < MAX_PROBLEMS:
            sizes.append(first)
            first = first * step if is_product else first + step
        sizes.append(last)
    return [{match[1]: size} for size in dict.fromkeys(sizes)]


def _points_of_file(text: str) -> list[dict[str, int]]:
    """The sizes of a CSV file: names in its first line, and in each further line the sizes of a problem."""
    try:
        lines = [line for line in csv.reader(Path(text).read_text("utf-8").splitlines()) if line]
    except FileNotFoundError:
        raise InputError(
            f"--sweep {text}: no such file; expected a CSV file of sizes, NAME=FIRST:LAST:STEP or n=1,2,4"
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"--sweep {text}: cannot be read as a CSV file of sizes: {error}") from None
    names = [name.strip() for name in lines[0]] if lines else []
    if len(lines) < 2 or not all(map(str.isidentifier, names)) or len({*names}) < len(names):
        raise InputError(f"--sweep {text}: expected names of sizes in the first line, such as M,N,K")
    if any(len(line) != len(names) for line in lines):
        raise InputError(f"--sweep {text}: expected {len(names)} sizes in each line")
    points = [dict(zip(names, (_number_of(text, part) for part in line), strict=True)) for line in lines[1:]]
    return list({tuple(point.items()): point for point in points}.values())


def _number_of(text: str, part: str) -> int:
    """The number in a part of a sweep; raises InputError for anything else."""
    number = _whole_number(part)
    if number is None:
        raise InputError(
            f"--sweep {text}: {part!r} is not a whole number below 10**18, such as 1000, 1_000 or 2**10"
        )
    return number


def _whole_number(text: str) -> int | None:
    """The number of a text such as `1_000_000` or `2**20`, if it is below 10**18."""
    match = re.fullmatch(r"([0-9][0-9_,]{0,22})(?:\*\*([0-9]{1,2}))?", text.strip())
    if match is None:
        return None
    number: int = int(re.sub("[_,]", "", match[1])) ** int(match[2] or 1)
    return number if number < 10**18 else None
