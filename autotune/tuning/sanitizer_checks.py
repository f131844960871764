"""Checks of a winner under sanitizers, which find errors that no result shows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

from autotune.checks.host_sanitizer import HOST_TOOLS, HostSanitizer, UnparsedEnd, find_host_sanitizer, judged
from autotune.core.outcomes import PASSED, Outcomes, Unchecked
from autotune.evaluation.instance import KernelInstance
from autotune.processes.deadline import Deadline
from autotune.tuning.check_outcomes import OutcomesByConfig
from autotune.tuning.context import Builds, TuningContext

SANITIZERS = "under sanitizers"
LOOPS = "second iterations of loops"  # a check under the sanitizers of the CPU


def sanitizers(context: TuningContext) -> str | None:
    """The sanitizers of a search with their versions, for its journal; None if it leaves them out."""
    if context.processes.skips_sanitizers:
        return None
    tools = (host_sanitizer(context), context.processes.sanitizer)
    return ", ".join(tool.version for tool in tools if tool is not None)


def host_sanitizer(context: TuningContext) -> HostSanitizer | None:
    """The sanitizers of the CPU; None without g++, for other sources than C, or if left out."""
    if not context.task.is_c or context.processes.skips_sanitizers:
        return None
    return find_host_sanitizer(context.processes.binaries)


def under_host_sanitizer(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcomes of the host compiler's sanitizers on the CPU."""
    at_once = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(at_once, thread_name_prefix="sanitizer of the CPU") as threads:
        runs = {
            config: threads.submit(check_on_host, context, built.instance, deadline)
            for config, built in builds.items()
        }
        return {config: run.result() for config, run in runs.items()}


def check_on_host(context: TuningContext, instance: KernelInstance, deadline: Deadline) -> Outcomes:
    """The outcomes of one configuration under the CPU's sanitizers, at sizes that it can run."""
    host = host_sanitizer(context)
    if host is None or deadline.is_over:
        return {}
    small = context.further_sizes.small(instance)
    outcome = host.check(instance.source, small.verified, deadline, small.further)
    if isinstance(outcome, UnparsedEnd) and instance.config != context.default.config:
        default = context.default
        of_default = context.further_sizes.small(default)
        outcome = judged(
            outcome, host.check(default.source, of_default.verified, deadline, of_default.further)
        )
    lacking = Unchecked("no size is known at which the CPU can run a second iteration of every loop")
    loops = PASSED if small.is_whole else lacking
    return {**dict.fromkeys(HOST_TOOLS, outcome), LOOPS: loops}


def sanitizer_processes(context: TuningContext) -> AbstractContextManager[None]:
    """The processes of the device's sanitizer, which stand by during the block."""
    return context.processes.sanitizer.standing_by() if context.processes.sanitizer else nullcontext()


def under_device_sanitizer(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcomes under the device's sanitizer; none without one, or at sizes too large for it."""
    checked = {config: built for config, built in builds.items() if built.instance.verify_workloads}
    if context.processes.sanitizer is None or not checked:
        return {}
    small = {config: context.further_sizes.small(built.instance) for config, built in checked.items()}
    runs = [
        (built.binary, (*small[config].verified, *small[config].further)) for config, built in checked.items()
    ]
    return dict(zip(checked, context.processes.sanitizer.check(runs, deadline), strict=True))
