"""Finds the searches that a report shows, from the files and kernels that a reader names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.analysis.compare import (
    DeviceResult,
    KernelComparison,
    compare,
    left_out,
    require_one_kernel,
    results_of,
    select,
)
from autotune.analysis.external_results import as_results, of_same_kernel, read_external
from autotune.analysis.find_journal import find_journal
from autotune.compilers.source_text import packaged
from autotune.core.json_values import is_name
from autotune.core.packaged import packaged_folder
from autotune.core.records import Config
from autotune.core.runs_folder import RUNS, problem_in_name
from autotune.core.trials import Measurement, Rule, Trial
from autotune.diagnosis.record import diagnosis_file
from autotune.diagnosis.record import read as read_diagnosis
from autotune.errors import AutotuneError, InputError, NoConfig
from autotune.evaluation.identity import header_sizes
from autotune.evaluation.journal import JournalContent, parse_journal
from autotune.hardware.names import slug
from autotune.interop import Recording, read_recording
from autotune.interop.files import read_text
from autotune.interop.journals import is_journal
from autotune.report.search import Search
from autotune.serving.cache import read_roots
from autotune.serving.cache_reader import CacheReader
from autotune.serving.ceilings import known_ceilings
from autotune.serving.device_records import DeviceRecord, device_records, walk
from autotune.space import SpaceSpec, load_space
from autotune.strength.record import read as read_strength
from autotune.strength.record import strength_file

_Spaces = Path | Mapping[str, Path] | None
_MAX_KERNEL = 100  # letters of a kernel's name that a file may be called by


@dataclass(frozen=True)
class Gathered:
    """Everything that a report shows; `not_compared` says why there is no comparison, empty if there is."""

    searches: tuple[Search, ...]
    comparison: KernelComparison | None
    not_compared: str


def gather(names: Sequence[str], cache: Path | None = None, space: Path | None = None) -> Gathered:
    """Read what a report is asked to show.

    Args:
        names: Files with recorded results, or kernels that the cache knows or that runs/ has a journal of.
        cache: The cache to look in; None takes the usual ones.
        space: The kernel's space file, for landmarks, launches and work; None takes a packaged one.

    Raises:
        InputError: A name is neither, or a file has no trials.
        JournalError: A journal is damaged.
    """
    sources: list[Path | str] = []
    for name in names:
        path = Path(name)
        if not path.is_file() and (path.suffix or path.exists()):
            raise InputError(f"{path}: no such file; expected recorded results, such as a file of runs/")
        sources.append(path if path.is_file() else name)
    return gather_sources(sources, cache, space, RUNS)


def gather_sources(
    sources: Sequence[Path | str],
    cache: Path | None = None,
    space: _Spaces = None,
    runs: Path | None = None,
    journals: Mapping[Path, JournalContent] | None = None,
) -> Gathered:
    """Read what a report is asked to show from files, each a `Path`, and for kernels, each a text.

    Args:
        sources: What to read.
        cache: The cache to look in; None takes the usual ones.
        space: The space file, or space files by kernel, of which those that do not fit are ignored.
        runs: A folder whose newest journal of a kernel is shown before the cache; None takes none.
        journals: The files that were read before.
    """
    reader = _Reader(cache, space, runs, journals or {})
    searches: list[Search] = []
    for source in sources:
        searches += [reader.of_file(source)] if isinstance(source, Path) else reader.of_kernel(source)
    files = [source for source in sources if isinstance(source, Path)]
    comparison, why_not = _comparison(searches, files, cache, with_cache=len(files) < len(sources))
    return Gathered(tuple(searches), comparison, why_not)


@dataclass(frozen=True)
class _Reader:
    """Reads searches, and adds what the cache and space files know of them; as `gather_sources` says."""

    cache: Path | None
    space: _Spaces
    runs: Path | None
    journals: Mapping[Path, JournalContent]

    def of_file(self, path: Path) -> Search:
        """The search of a journal, or that of other recorded results."""
        found = self.journals.get(path) or _journal(path)
        if found is None:
            return self._completed(_of_recording(read_recording(path), path))
        header, last_round = found.header, found.last_round
        if not found.trials:
            raise InputError(f"{path}: holds no trial; name another journal, or search first")
        dtype = header.get("dtype")
        return self._completed(
            Search(
                kernel=str(header.get("kernel", path.stem)),
                device_name=str(header.get("device", "unknown device")),
                sizes=header_sizes(header) or {},
                dtype=dtype if isinstance(dtype, str) else None,
                data=str(header.get("data", "")),
                source=str(path),
                tried=_latest(found.trials, last_round.measurements),
                finals=last_round.measurements,
                checks=last_round.outcomes,
                is_imported="verification" not in header,
                source_sha256=str(header.get("source", "")),
                journal=path,
                stages=found.ending.stages,
                doubts=found.ending.doubts,
                explored=found.ending.explored,
                runtime=_runtime(header),
            )
        )

    def of_kernel(self, kernel: str) -> list[Search]:
        """The newest journal of a kernel, which has failures and order, and further results of the cache.

        Results that come with autotune are of other machines: unless a cache is named, they are shown only if
        there are no others.
        """
        searches: list[Search] = []
        if self.runs is not None:
            with suppress(InputError):  # there is none, or it holds no trial yet
                searches = [self.of_file(find_journal(kernel, self.runs))]
        with suppress(NoConfig) if searches else nullcontext():
            known = device_records(kernel, self.cache)
            if len(read_roots(self.cache)) > 1:
                shipped = walk(CacheReader(), [packaged_folder("cache")], kernel)
                own = [result for result in known if result not in shipped]
                known = own if own or searches else known
            shown = {_problem(search) for search in searches}
            cached = (self._of_record(result) for result in known)
            searches += [search for group in cached for search in group if _problem(search) not in shown]
        return searches

    def _of_record(self, known: DeviceRecord) -> Iterable[Search]:
        """One search for each problem; the cache keeps the fastest configurations of each."""
        for entry in known.record.entries:
            times = dict(entry.measured)
            if entry.default_time_ms is not None:
                times[known.record.default] = entry.default_time_ms
            times.pop(entry.config, None)
            yield self._completed(
                Search(
                    kernel=known.record.kernel,
                    device_name=known.device.name,
                    sizes=entry.sizes,
                    dtype=entry.dtype,
                    data=entry.data,
                    source=f"cache, {known.folder}",
                    tried=(
                        _timed(entry.config, entry.time_ms),
                        *(_timed(config, time_ms) for config, time_ms in times.items()),
                    ),
                    source_sha256=entry.provenance.source_sha256,
                    is_cached=True,
                )
            )

    def _completed(self, search: Search) -> Search:
        """With what the cache and the space file know of the same kernel, device and problem."""
        if len(search.kernel) > _MAX_KERNEL:
            return search
        names = set(search.tried[0].config)
        records: list[DeviceRecord] = []
        with suppress(NoConfig):
            records = [
                known
                for known in device_records(search.kernel, self.cache)
                if known.record.parameter_names == names
            ]
        spec = self._spec(search.kernel, names)
        of_problem = [
            (known, entry)
            for known in records
            for entry in known.record.entries
            if (entry.sizes, entry.dtype, entry.data) == (search.sizes, search.dtype, search.data)
        ]
        cpus = [
            DeviceResult(known.folder, known.device, entry)
            for known, entry in of_problem
            if known.device.kind == "cpu"
        ]
        same = [
            known
            for known in records
            if search.device_name == known.device.name or slug(search.device_name) == known.device.slug
        ]
        entries = [
            entry
            for known, entry in of_problem
            if known in same and entry.provenance.source_sha256.startswith(search.source_sha256)
        ]
        problem = problem_in_name(search.sizes, search.dtype or "", search.data)
        places = list(self._record_places(search, [known.device.slug for known in same]))
        return replace(
            search,
            device=same[0].device if same else None,
            record=(same or records)[0].record if records else None,
            entry=entries[0] if entries else None,
            measured=known_ceilings(same[0].folder, self.cache) if same else {},
            cpu=min(cpus, key=lambda cpu: cpu.entry.time_ms, default=None),
            spec=spec,
            strength=next(filter(None, (read_strength(strength_file(*place)) for place in places)), None),
            diagnosis=next(
                (
                    diagnosis
                    for place in places
                    if (diagnosis := read_diagnosis(diagnosis_file(*place))) and diagnosis.problem == problem
                ),
                None,
            ),
        )

    def _record_places(self, search: Search, slugs: Sequence[str]) -> Iterator[tuple[str, str, Path]]:
        """Where other commands keep what they found: kernel, slug of the device and folder.

        The folder is the journal's; a CPU's name is not all of its slug.
        """
        folder = search.journal.parent if search.journal is not None else self.runs
        if folder is None or not is_name(search.kernel):
            return
        own = search.journal.name.split(".")[1:2] if search.journal is not None else []
        yield from ((search.kernel, device, folder) for device in (*own, *slugs, slug(search.device_name)))

    def _spec(self, kernel: str, names: set[str]) -> SpaceSpec | None:
        """The named space file, or another of the kernel with these parameters, such as a packaged one."""
        if isinstance(self.space, Path):
            spec = load_space(self.space)
            if {parameter.name for parameter in spec.parameters} != names:
                raise InputError(f"{self.space}: its parameters are not those of the trials of {kernel}")
            return spec
        if not is_name(kernel):
            return None
        own = packaged("spaces") / f"{kernel}.yaml"
        paths = [
            path for path in ((self.space or {}).get(kernel), own) if path is not None and path.is_file()
        ]
        for path in paths:
            with suppress(InputError):
                spec = load_space(path)
                if {parameter.name for parameter in spec.parameters} == names:
                    return spec
        return None


def _journal(path: Path) -> JournalContent | None:
    """The content of a journal; None for other recorded results."""
    text = read_text(path)
    return parse_journal(text, path) if is_journal(text) else None


def _runtime(header: Mapping[str, object]) -> dict[str, str]:
    """The software that a journal's times depend on."""
    return {name: str(header[name]) for name in ("driver", "runtime", "compiler") if header.get(name)}


def _of_recording(recording: Recording, path: Path) -> Search:
    return Search(
        kernel=recording.kernel,
        device_name=recording.device,
        sizes=recording.sizes or {},
        dtype=recording.dtype,
        data="",
        source=str(path),
        tried=recording.trials,
        is_imported=True,
    )


def _latest(trials: Iterable[Trial], finals: Mapping[str, Measurement]) -> tuple[Trial, ...]:
    """One trial of each configuration: that of the last round, else the newest.

    The others are of earlier searches, for example with another driver or reference: their keys differ.
    """
    kept: dict[str, Trial] = {}
    for trial in trials:
        before = kept.get(trial.config.key)
        if before is None or before.key not in finals or trial.key in finals:
            kept.pop(trial.config.key, None)  # the order is that of the trials that are kept
            kept[trial.config.key] = trial
    return tuple(kept.values())


def _problem(search: Search) -> tuple[str, tuple[tuple[str, int], ...], str | None, str]:
    return slug(search.device_name), tuple(sorted(search.sizes.items())), search.dtype, search.data


def _timed(config: Config, time_ms: float) -> Trial:
    return Trial(config, config.key, measurement=Measurement((time_ms,), Rule.IMPORTED))


def _comparison(
    searches: Sequence[Search], files: Sequence[Path], cache: Path | None, *, with_cache: bool
) -> tuple[KernelComparison | None, str]:
    """The comparison of several devices' results, or why there is none; cached ones only `with_cache`."""
    kernels = {search.kernel for search in searches}
    if len({search.device_name for search in searches}) < 2:
        return None, "All results are of one device."
    if len(kernels) > 1:
        return None, "The results are of several kernels; name results of one kernel to compare devices."
    kernel = kernels.pop()
    try:
        shown = {search.device_name for search in searches}
        known = device_records(kernel, cache) if with_cache else []
        external = read_external(kernel, files)
        cached = results_of(result for result in known if result.device.name in shown)
        results, _ = of_same_kernel(cached, external)
        results += as_results(external, results, {}, None)
        require_one_kernel(results)
        selected = select(results, {}, None)
        missing = ", ".join(left_out(results, selected))
        if len(selected) < 2:
            return None, f"No two devices have results for the same problem; left out: {missing}."
        comparison = compare(kernel, selected)
        if len(comparison.tuned) < 2:
            return (
                None,
                f"Only one GPU has a result for the problem; `autotune compare {kernel}` shows CPUs, too.",
            )
        return comparison, f"Left out, as their problems differ: {missing}." if missing else ""
    except AutotuneError as error:
        return None, f"Not compared: {error}."
