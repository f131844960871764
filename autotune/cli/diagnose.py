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
    with opt.open_task(parsed) as (task, progress):
        config, origin = opt.chosen_config(parsed, task)
        with open_diagnosis(task, options, progress) as context:
            diagnosis = diagnose(context, config, origin, cache=parsed.cache, with_transfers=parsed.transfers)
    keep(diagnosis, task.space.problem.data, diagnosis_file(task.spec.kernel, task.device.slug))
    emit(diagnosis_json(diagnosis) if parsed.json else diagnosis_text(diagnosis))


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """The verdict, then the evidence, one kind per line, then remedies and what trials say of them."""
    from autotune.diagnosis.bound import WHAT_HELPS

    problem = problem_text(diagnosis.sizes, diagnosis.dtype)
    return "\n".join(
        [
            f"{diagnosis.kernel} on {diagnosis.device}, {problem}, {diagnosis.origin}:",
            f"  {diagnosis.config}",
            f"verdict    {diagnosis.bound}: {diagnosis.reason}",
            f"time       {diagnosis.time_ms:.4g} ms",
            *_evidence(diagnosis),
            *([f"helps      {WHAT_HELPS[diagnosis.bound]}"] if diagnosis.bound in WHAT_HELPS else []),
            *(f"change     {line}" for line in diagnosis.advice),
            *(f"missing    {line}" for line in diagnosis.missing),
        ]
    )


def _evidence(diagnosis: Diagnosis) -> Iterator[str]:
    from autotune.diagnosis.bottleneck import overlap
    from autotune.diagnosis.foretold import foretold_text
    from autotune.diagnosis.resource_use import use_text

    yield from (f"use        {use_text(use)}" for use in diagnosis.uses)
    if diagnosis.launch_ms is not None:
        yield f"launches   {diagnosis.launches}; empty ones take {diagnosis.launch_ms:.4g} ms"
    if diagnosis.transfer_ms is not None:
        yield f"transfers  {diagnosis.transfer_ms:.4g} ms to and from pageable memory of the host"
    occupancy = diagnosis.occupancy
    if occupancy is not None:
        yield (
            f"occupancy  {occupancy.share:.0%}, limited by {occupancy.limit}; "
            f"{diagnosis.resident_warps} warps on a multiprocessor"
        )
    if diagnosis.ladder:
        steps = ", ".join(f"{step.occupancy:.0%} {step.time_ms:.4g} ms" for step in diagnosis.ladder)
        yield f"ladder     {steps}"
    for name, time_ms in diagnosis.variants_ms.items():
        yield f"variant    {name}: {time_ms:.4g} ms ({time_ms / diagnosis.time_ms:.0%})"
    yield from (f"foretold   {foretold_text(forecast, diagnosis.time_ms)}" for forecast in diagnosis.foretold)
    overlapped = overlap(diagnosis.time_ms, diagnosis.variants_ms)
    if overlapped is not None:
        yield f"overlap    {overlapped:.0%} of the shorter variant's time overlaps the other"
    in_flight = (diagnosis.littles_law, diagnosis.arithmetic_in_flight)
    yield from (f"in flight  {law}" for law in in_flight if law is not None)
    counts = diagnosis.counts
    if counts is not None:
        yield (
            f"executed   {counts.instructions:,.0f} warp instructions with {counts.active_lanes:.1f} active "
            f"threads, {counts.sectors:,.0f} sectors ({counts.sector_use:.0%} of their bytes requested), "
            f"{counts.shared_passes:,.0f} shared-memory passes ({counts.conflict_degree:.2f} times the "
            f"least possible), {counts.atomics:,.0f} atomics, {counts.barriers:,.0f} barriers"
        )
    if diagnosis.hardware_counters:
        yield counters_text(diagnosis.hardware_counters)
    code = diagnosis.machine_code
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
            yield "unrolling  none: the code stays the same when unrolling is forbidden"


def diagnosis_json(diagnosis: Diagnosis) -> dict[str, Any]:
    from autotune.diagnosis.bottleneck import overlap
    from autotune.diagnosis.bound import WHAT_HELPS

    code = diagnosis.machine_code
    bits = {f"{kind} {width}": count for (kind, width), count in code.access_bits.items()} if code else {}
    return {
        **asdict(replace(diagnosis, uses=(), machine_code=None, config=Config({}))),
        "config": dict(diagnosis.config),
        "overlap": overlap(diagnosis.time_ms, diagnosis.variants_ms),
        "helps": WHAT_HELPS.get(diagnosis.bound),
        "uses": [{**asdict(use), "share": use.share} for use in diagnosis.uses],
        "machine_code": {**asdict(replace(code, access_bits={})), "access_bits": bits} if code else None,
    }
