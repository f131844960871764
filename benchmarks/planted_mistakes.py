"""How many planted mistakes the checks of `autotune space` find without compiling or running anything.

    python benchmarks/planted_mistakes.py [--only KIND...] [--clean SPACE...]

planted_mistakes.yaml has small kernels that are right, and one mistake of each kind in each of them. A
mistake is found if the kernel with it has a finding that the right kernel lacks, or if its space is refused.
Findings about the right kernels and about the spaces after `--clean` are false alarms, except those that only
say which sizes checks may miss.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from autotune.errors import AutotuneError
from autotune.space import constraint_report, lint
from autotune.tuning.task import Target, count_space

MISTAKES = Path(__file__).with_suffix(".yaml")
GPU, CPU = "sm_90", "opencl:0"  # that spaces are counted for: nothing runs there


@dataclass(frozen=True)
class Kernel:
    """A kernel's source and its space, both as texts."""

    name: str
    file: str
    source: str
    space: str

    def write(self, folder: Path) -> Path:
        """Write both, with a reference, and return the path of the space."""
        (folder / self.file).write_text(self.source)
        (folder / "reference.py").write_text("def reference(inputs, sizes):\n    return {}\n")
        head = f"schema: 1\nkernel: {self.name}\nsource: {self.file}\nreference: reference.py\n"
        path = folder / f"{self.name}.yaml"
        path.write_text(head + self.space)
        return path


def kernels() -> Iterator[tuple[Kernel, dict[str, list[str]]]]:
    """The right kernels, and the edits that make mistakes by their kind."""
    every: dict[str, dict[str, Any]] = yaml.safe_load(MISTAKES.read_text())
    for name, one in every.items():
        yield Kernel(name, one["file"], one["source"], one["space"]), one["mistakes"]


def planted(kernel: Kernel, edit: Sequence[str]) -> Kernel:
    """A kernel with a mistake; raises ValueError if an old text does not occur exactly once."""
    where, *texts = edit
    text = kernel.source if where == "source" else kernel.space
    for old, new in zip(texts[::2], texts[1::2], strict=True):
        if text.count(old) != 1:
            raise ValueError(f"{kernel.name}: {old!r} occurs {text.count(old)} times in its {where}")
        text = text.replace(old, new)
    changed = {"source": kernel.source, "space": kernel.space} | {where: text}
    return Kernel(kernel.name, kernel.file, **changed)


def findings(space: Path) -> dict[tuple[str, str], str]:
    """The findings about a space by kind and subject, as `autotune space` prints them."""
    device = CPU if "dialect: opencl\n" in space.read_text() else GPU
    try:
        bound, source = count_space(Target(space, device))
    except AutotuneError as error:
        return {("refused", ""): " ".join(str(error).split())}
    found = lint(bound, source.text, constraint_report(bound)).mistakes
    return {(one.kind, one.subject): one.placed for one in found if not one.is_about_checks}


def _findings(kernel: Kernel) -> dict[tuple[str, str], str]:
    with tempfile.TemporaryDirectory() as folder:
        space = kernel.write(Path(folder))
        return {key: text.replace(f"{folder}/", "") for key, text in findings(space).items()}


def main() -> None:
    """Look for each mistake, and print what was found by kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="KIND", help="kinds of mistakes (default: all)")
    parser.add_argument("--clean", nargs="+", type=Path, default=[], metavar="SPACE")
    parsed = parser.parse_args()
    found: dict[str, list[bool]] = defaultdict(list)
    false = [(one, text) for one in parsed.clean for text in findings(one).values()]
    for kernel, mistakes in kernels():
        before = _findings(kernel)
        false += [(Path(kernel.name), text) for text in before.values()]
        for kind, edit in mistakes.items():
            if parsed.only and kind not in parsed.only:
                continue
            said = [text for key, text in _findings(planted(kernel, edit)).items() if key not in before]
            found[kind].append(bool(said))
            print(f"{kind}, {kernel.name}: {'; '.join(said) or 'MISSED'}")
    print("\n| kind | planted | found |\n|---|---:|---:|")
    for kind, each in found.items():
        print(f"| {kind} | {len(each)} | {sum(each)} |")
    together = [one for each in found.values() for one in each]
    print(f"| together | {len(together)} | {sum(together)} |\n")
    for place, text in false:
        print(f"false alarm, {place}: {text}")
    print(f"{len(false)} findings about {len(parsed.clean)} clean spaces and the right kernels")


if __name__ == "__main__":
    main()
