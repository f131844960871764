"""Uniting what several machines found out: sets of results, so that no order and no repetition matters.

For one problem on one device model all results are kept; which of them is served is decided by the whole set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from autotune.cache_format import device_text, entry_text, record_text
from autotune.model import DeviceInfo, Entry, KernelRecord, ProblemKey

_WRONG = ("wrong_result", "out_of_bounds")


def merge_records(records: Sequence[KernelRecord], *, by_time: bool = True) -> KernelRecord:
    """One record of a kernel on a device, from at least one.

    What is no result comes from the record with the newest one. `by_time` is False where results were
    not searched for their time.
    """
    base = max(records, key=lambda record: (_newest(record), record_text(replace(record, entries=()))))
    found: dict[ProblemKey, dict[str, Entry]] = {}
    for record in records:
        for entry in record.entries:
            results = found.setdefault(entry.problem, {})
            for result in (replace(entry, rivals=()), *entry.rivals):
                results[entry_text(result)] = result
    return replace(base, entries=tuple(_united(found[problem], by_time) for problem in sorted(found)))


def merge_devices(devices: Iterable[DeviceInfo]) -> DeviceInfo:
    """One of several descriptions of a device model: that of the newest driver and runtime."""
    return max(
        devices, key=lambda device: (_version(device.driver), _version(device.runtime), device_text(device))
    )


def merge_rows(rows: Iterable[str]) -> list[str]:
    """Rows of journals with the same header, each once, in an order that the rows themselves decide.

    A journal's later row counts. Of a configuration that was tried more than once that is one that computed
    something wrong, else one that worked, with the most samples.
    """
    return sorted(set(rows), key=_row_order)


def _united(results: dict[str, Entry], by_time: bool) -> Entry:
    """The result that is served, with all others as its rivals."""
    served = _better_verified(results, by_time)
    rivals = tuple(results[text] for text in sorted(results) if text != served)
    return replace(results[served], rivals=rivals)


def _better_verified(results: dict[str, Entry], by_time: bool) -> str:
    """A search's before a probe's, the newest source's before an older one's, then the fastest.

    Of those that the measurements cannot tell from the fastest it is the one from the most trials.
    """
    texts = [text for text in results if not results[text].provenance.is_probe] or list(results)

    def age(text: str) -> tuple[str, str]:
        return results[text].provenance.tuned_at, text

    source = results[max(texts, key=age)].provenance.source_sha256
    texts = [text for text in texts if results[text].provenance.source_sha256 == source]
    if by_time:
        lead = results[min(texts, key=lambda text: (results[text].time_ms, text))]
        texts = [text for text in texts if results[text].interval_ms[0] <= lead.interval_ms[1]]
    return max(texts, key=lambda text: (results[text].provenance.trials, *age(text)))


def _newest(record: KernelRecord) -> str:
    results = [result for entry in record.entries for result in (entry, *entry.rivals)]
    return max((result.provenance.tuned_at for result in results), default="")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _row_order(row: str) -> tuple[bool, str, int, int, str]:
    data = json.loads(row)
    if "trial" not in data:
        return True, "", 0, 0, row
    trial = data["trial"]
    rank = 2 if trial["status"] in _WRONG else int(trial["status"] == "ok")
    samples = len((trial.get("measurement") or {}).get("samples_ms", ()))
    return False, str(trial["key"]), rank, samples, row
