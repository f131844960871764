"""How well configurations carry over to a GPU that nothing is known of, by rule.

    python benchmarks/carry_over.py FOLDER

FOLDER has a folder per kernel with a recording of a whole space per GPU, `<GPU>_T4.json.gz`. Each GPU is left
out in turn. A rule sees what a search would have left of the others: the best, the 32 next, and how the other
GPUs' bests did; "least sum" and "adopt" see all that was recorded. Its choice is then looked up in the
recording of the GPU that was left out: a share is that GPU's best time over the choice's, 0
where it fails.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from statistics import mean

from replay import load, priors_for, replay

from autotune.analysis.external_results import unknown_device
from autotune.core.records import (
    ADOPTION,
    Config,
    DeviceInfo,
    Entry,
    KernelRecord,
    Parameter,
    Provenance,
    Tier,
)
from autotune.hardware.names import slug, traits_of_name
from autotune.interop import read_recording
from autotune.searchers import make_searcher
from autotune.searchers.base import PriorResults
from autotune.serving import cache
from autotune.serving.lookup import best_config
from autotune.tuning.cache_entry import MAX_MEASURED

RUNS = 10  # of an adoption, next to the default
PROBLEM = {"n": 1}  # each kernel is recorded for one problem only


@dataclass(frozen=True)
class Recorded:
    """Every time of one kernel on one GPU, in ms."""

    gpu: str
    parameters: tuple[Parameter, ...]
    times_ms: Mapping[Config, float]

    @cached_property
    def best(self) -> Config:
        """The fastest configuration."""
        return min(self.times_ms, key=self.times_ms.__getitem__)

    def share(self, config: Config) -> float:
        """How much of the best's speed a configuration reaches."""
        return self.times_ms[self.best] / self.times_ms[config] if config in self.times_ms else 0.0


@dataclass(frozen=True)
class LeftOut:
    """One GPU to find a configuration for, the other GPUs, and a cache with their results."""

    kernel: str
    target: Recorded
    others: tuple[Recorded, ...]
    cache: Path
    priors: tuple[PriorResults, ...]  # everything that was recorded on the others
    file: Path  # the target's recording


@dataclass(frozen=True)
class Outcome:
    """What a rule reached on the target, and the slowdown that it had predicted: half way, and at most."""

    share: float
    expected_slowdown: float | None = None
    slowdown_at_most: float | None = None

    @property
    def covered(self) -> bool:
        """Whether the slowdown was no worse than predicted."""
        return bool(self.slowdown_at_most and self.share * self.slowdown_at_most >= 1)


def fastest_record(case: LeftOut) -> Outcome:
    """The best of the GPU with the fastest best."""
    source = min(case.others, key=lambda other: other.times_ms[other.best])
    return Outcome(case.target.share(source.best))


def least_sum(case: LeftOut) -> Outcome:
    """The least sum of relative times over the others, of all that ran on every one of them."""
    common = set.intersection(*(set(other.times_ms) for other in case.others))
    return Outcome(
        case.target.share(
            min(common, key=lambda config: sum(1 / other.share(config) for other in case.others))
        )
    )


def top_5(case: LeftOut) -> Outcome:
    """The best of the five fastest of each other GPU, all of them run."""
    tried = [
        config
        for other in case.others
        for config in sorted(other.times_ms, key=other.times_ms.__getitem__)[:5]
    ]
    return Outcome(max(map(case.target.share, tried)))


def tiers(case: LeftOut) -> Outcome:
    """What `best_config` serves by the GPU's name."""
    best = best_config(case.kernel, case.target.gpu, cache=case.cache, min_match=Tier.PORTABLE, n=1)
    return Outcome(case.target.share(best.config), best.expected_slowdown, best.slowdown_at_most)


def adopt(case: LeftOut) -> Outcome:
    """The best of the runs that `autotune search --engine adopt` would make besides the default."""
    return _adopted(case, case.priors)


def adopt_from_a_cache(case: LeftOut) -> Outcome:
    """The same where nothing but caches is left of the other GPUs' searches."""

    def kept(prior: PriorResults, gpu: str) -> PriorResults:
        path = cache.record_path(str(case.cache), slug(gpu), case.kernel)
        (entry,) = cache.read_record(path).entries
        return replace(prior, results=tuple(row for row in prior.results if row[0] in entry.relative_times))

    priors = zip(case.priors, case.others, strict=True)
    return _adopted(case, [kept(prior, other.gpu) for prior, other in priors])


def _adopted(case: LeftOut, priors: Sequence[PriorResults]) -> Outcome:
    target = load(case.file)
    run = replay(target, make_searcher(ADOPTION, priors=priors), budget=RUNS, seed=0)
    return Outcome(max(case.target.share(target.space.config(row)) for row in run.rows))


RULES: dict[str, tuple[str, Callable[[LeftOut], Outcome]]] = {
    "fastest foreign record": ("0", fastest_record),
    "least sum of relative times": ("0", least_sum),
    "tiers of best_config": ("0", tiers),
    "top 5 of each other GPU": ("10", top_5),
    "adopt, from caches": ("10", adopt_from_a_cache),
    "adopt": ("10", adopt),
}


def cases(folder: Path, scratch: Path) -> Iterator[LeftOut]:
    """Every GPU of every kernel, left out once."""
    for kernel in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(kernel.glob("*_T4.json*"))
        recorded = [_read(file) for file in files]
        replayed = [load(file) for file in files]
        for target, file, searched in zip(recorded, files, replayed, strict=True):
            others = tuple(one for one in recorded if one is not target)
            root = scratch / kernel.name / target.gpu
            for other in others:
                _store(root, kernel.name, other, [one.best for one in others])
            yield LeftOut(kernel.name, target, others, root, priors_for(searched, replayed, 0), file)


def _read(file: Path) -> Recorded:
    recording = read_recording(file)
    times_ms = {item.config: item.time_ms for item in recording.trials if item.time_ms is not None}
    return Recorded(file.name.split("_")[0], recording.parameters, times_ms)


def _store(root: Path, kernel: str, recorded: Recorded, bests: list[Config]) -> None:
    """Write what a search of the whole space leaves behind."""
    ranked = sorted(recorded.times_ms.items(), key=itemgetter(1))
    rows = [row for place, row in enumerate(ranked) if place <= MAX_MEASURED or row[0] in bests]
    (config, time_ms), *measured = rows
    now = datetime.now(UTC).isoformat(timespec="seconds")
    provenance = Provenance(now, "", "", "", "", "", "", "recorded", 0, len(ranked), len(ranked), "recorded")
    entry = Entry(
        PROBLEM, "float32", config, time_ms, (time_ms, time_ms), None, (), provenance, tuple(measured)
    )
    record = KernelRecord(
        kernel, ("float32",), recorded.parameters, (), {}, (), (), {}, default=config, entries=(entry,)
    )
    cache.store(root, _device(recorded.gpu), record)


def _device(gpu: str) -> DeviceInfo:
    """A GPU of that name; what a recording does not say of it plays no part, for there are no constraints."""
    traits = traits_of_name(gpu)
    return replace(
        unknown_device(gpu, slug(gpu)),
        vendor=traits.vendor or gpu,
        architecture=traits.architecture or gpu,
    )


def table(found: Mapping[str, Mapping[str, list[Outcome]]]) -> str:
    """Markdown: a row per rule, mean and worst share per kernel, how often the predicted slowdown held."""
    kernels = list(next(iter(found.values())))
    head = ["rule", "runs", *(f"{kernel}, mean / worst %" for kernel in kernels), "predicted slowdown held"]
    lines = [head, ["---"] * len(head)]
    for name, by_kernel in found.items():
        shares = [[100 * outcome.share for outcome in by_kernel[kernel]] for kernel in kernels]
        predicted = [
            outcome for outcomes in by_kernel.values() for outcome in outcomes if outcome.slowdown_at_most
        ]
        held = f"{sum(outcome.covered for outcome in predicted)} of {len(predicted)}" if predicted else "-"
        cells = [f"{mean(values):.1f} / {min(values):.1f}" for values in shares]
        lines.append([name, RULES[name][0], *cells, held])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folders of recordings, one per kernel")
    parser.add_argument("--json", action="store_true", help="print every outcome as JSON")
    arguments = parser.parse_args()
    found: dict[str, dict[str, list[Outcome]]] = {name: {} for name in RULES}
    gpus: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases(arguments.folder, Path(scratch)):
            gpus.setdefault(case.kernel, []).append(case.target.gpu)
            for name, (_, rule) in RULES.items():
                found[name].setdefault(case.kernel, []).append(rule(case))
    if arguments.json:
        plain = {
            name: {
                kernel: {gpu: asdict(outcome) for gpu, outcome in zip(gpus[kernel], outcomes, strict=True)}
                for kernel, outcomes in by_kernel.items()
            }
            for name, by_kernel in found.items()
        }
        print(json.dumps(plain, indent=2))
        return
    print(table(found))


if __name__ == "__main__":
    main()
