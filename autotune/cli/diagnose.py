"""Find out what bounds a configuration: memory, arithmetic, latency, divergence, launches and so on.

The configuration is verified and timed. Then it runs again with counters in it, at lower occupancy, without
its arithmetic or its memory accesses, and as empty launches; no profiler is needed. A report of the kernel
shows the latest verdict.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from autotune.cli import options as opt
from autotune.cli.device_use import counters_text
from autotune.cli.output import emit
from autotune.core.records import Config
from autotune.core.text import problem_text
from autotune.core.trials import Budget

if TYPE_CHECKING:
    from autotune.diagnosis.diagnose import Diagnosis

EXAMPLE = "autotune diagnose spaces/reduce.yaml --landmark reduce4_interleaved"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_target(parser)
    opt.add_choice(parser, "diagnose")
    parser.add_argument(
        "--transfers",
        action="store_true",
        help="judge a call whose inputs come from the host and whose results go back",
    )
    opt.add_run(parser)
    opt.add_cache(parser, "where to look for the tuned best and for ceilings")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.diagnosis.diagnose import diagnose, open_diagnosis
    from autotune.diagnosis.record import diagnosis_file, keep

    options = opt.run_options(parsed, budget=Budget())
    with opt.opened_task(parsed) as (task, progress):
        config, origin = opt.chosen_config(parsed, task)
        with open_diagnosis(task, options, progress) as context:
            found = diagnose(context, config, origin, cache=parsed.cache, with_transfers=parsed.transfers)
    keep(found, task.space.problem.data, diagnosis_file(task.spec.kernel, task.device.slug))
    emit(diagnosis_json(found) if parsed.json else diagnosis_text(found))


def diagnosis_text(found: Diagnosis) -> str:
    """The verdict, then the evidence, one kind per line, then remedies and what trials say of them."""
    from autotune.diagnosis.bound import WHAT_HELPS

    return "\n".join(
        [
            f"{found.kernel} on {found.device}, {problem_text(found.sizes, found.dtype)}, {found.origin}:",
            f"  {found.config}",
            f"verdict    {found.bound}: {found.reason}",
            f"time       {found.time_ms:.4g} ms",
            *_evidence(found),
            *([f"helps      {WHAT_HELPS[found.bound]}"] if found.bound in WHAT_HELPS else []),
            *(f"change     {line}" for line in found.advice),
            *(f"missing    {line}" for line in found.missing),
        ]
    )


def _evidence(found: Diagnosis) -> Iterator[str]:
    from autotune.diagnosis.bottleneck import overlap
    from autotune.diagnosis.foretold import foretold_text
    from autotune.diagnosis.resource_use import use_text

    yield from (f"use        {use_text(use)}" for use in found.uses)
    if found.launch_ms is not None:
        yield f"launches   {found.launches}; empty ones take {found.launch_ms:.4g} ms"
    if found.transfer_ms is not None:
        yield f"transfers  {found.transfer_ms:.4g} ms to and from pageable memory of the host"
    held = found.occupancy
    if held is not None:
        yield (
            f"occupancy  {held.share:.0%}, limited by {held.limit}; "
            f"{found.resident_warps} warps on a multiprocessor"
        )
    if found.ladder:
        steps = ", ".join(f"{step.occupancy:.0%} {step.time_ms:.4g} ms" for step in found.ladder)
        yield f"ladder     {steps}"
    for name, time_ms in found.variants_ms.items():
        yield f"variant    {name}: {time_ms:.4g} ms ({time_ms / found.time_ms:.0%})"
    yield from (f"foretold   {foretold_text(one, found.time_ms)}" for one in found.foretold)
    overlapped = overlap(found.time_ms, found.variants_ms)
    if overlapped is not None:
        yield f"overlap    {overlapped:.0%} of the shorter variant's time overlaps the other"
    if found.littles_law is not None:
        yield f"in flight  {found.littles_law}"
    if found.arithmetic_in_flight is not None:
        yield f"in flight  {found.arithmetic_in_flight}"
    counts = found.counts
    if counts is not None:
        yield (
            f"executed   {counts.instructions:,.0f} instructions of warps, with {counts.active_lanes:.1f} "
            f"threads active, {counts.sectors:,.0f} sectors ({counts.sector_use:.0%} of their bytes asked "
            f"for), {counts.shared_passes:,.0f} passes of shared memory ({counts.conflict_degree:.2f} times "
            f"the least), {counts.atomics:,.0f} atomics, {counts.barriers:,.0f} barriers"
        )
    if found.hardware_counters:
        yield counters_text(found.hardware_counters)
    code = found.machine_code
    if code is not None:
        kinds = ", ".join(f"{count} {kind}" for kind, count in code.kinds.items())
        loop = ", ".join(f"{count} {kind}" for kind, count in code.loop_kinds.items())
        bits = ", ".join(
            f"{kind} of {width} bits: {count}" for (kind, width), count in code.access_bits.items()
        )
        yield f"code       {code.instructions} instructions: {kinds}"
        if loop:
            yield f"loop       {loop}"
        if bits:
            yield f"accesses   {bits}"
        if code.is_unrolled is False:
            yield "unrolling  none: the code is the same where no loop is to be unrolled"


def diagnosis_json(found: Diagnosis) -> dict[str, Any]:
    from autotune.diagnosis.bottleneck import overlap
    from autotune.diagnosis.bound import WHAT_HELPS

    code = found.machine_code
    bits = {f"{kind} {width}": count for (kind, width), count in code.access_bits.items()} if code else {}
    return {
        **asdict(replace(found, uses=(), machine_code=None, config=Config({}))),
        "config": dict(found.config),
        "overlap": overlap(found.time_ms, found.variants_ms),
        "helps": WHAT_HELPS.get(found.bound),
        "uses": [{**asdict(use), "share": use.share} for use in found.uses],
        "machine_code": {**asdict(replace(code, access_bits={})), "access_bits": bits} if code else None,
    }
