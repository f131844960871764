"""What a configuration must pass before it is stored: other schedules, and the tools of a sanitizer.

A race often gives the right result, because threads happen to run in a good order. So the configuration is
built again with threads and blocks in other orders (kernels/perturb.h) and verified; the binary that is
timed and served is always the one without changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

from autotune.compilers.kernel_source import perturbed
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Failure, Status, Verdict
from autotune.evaluation.compiler_pool import Compilation
from autotune.evaluation.device_process import verify_once
from autotune.evaluation.instance import KernelInstance
from autotune.evaluation.sanitizer import TOOLS, Run
from autotune.evaluation.work_item import ProblemInstance
from autotune.tuning.context import TuningContext

SCHEDULES = (1, 2)  # seeds: one odd and one even give the two orders of perturb.h
MAX_S = 10.0  # of one run with another schedule
_DIALECTS = ("cuda", "opencl")
_FINDINGS = (Status.WRONG_RESULT, Status.OUT_OF_BOUNDS, Status.CRASHED)


def check_configurations(context: TuningContext, configs: Sequence[Config]) -> dict[Config, Failure]:
    """Run configurations with other schedules and under the sanitizer; return the failures."""
    instances = {config: context.maker.make(config) for config in configs}
    failures = with_other_schedules(context, instances)
    left = {config: instance for config, instance in instances.items() if config not in failures}
    return failures | sanitized(context, left)


def checks_text(context: TuningContext) -> str:
    """What `check_configurations` does on this device, for the provenance of results."""
    schedules = f"{len(SCHEDULES)} schedules" if context.task.dialect in _DIALECTS else "no schedules"
    if context.skips_sanitizer:
        return f"{schedules}, --no-sanitizer"
    return ", ".join([schedules, *(TOOLS if context.sanitizer else ["no sanitizer"])])


def _problems(instance: KernelInstance) -> tuple[ProblemInstance, ...]:
    return instance.checks or (instance.problem,)


def with_other_schedules(
    context: TuningContext, instances: dict[Config, KernelInstance]
) -> dict[Config, Failure]:
    """The first failure of each configuration with another schedule.

    A build that the compiler refuses, or that does not start or end, says nothing about the configuration:
    the changes may be the cause.
    """
    if context.task.dialect not in _DIALECTS:
        return {}
    builds = [(config, seed) for seed in SCHEDULES for config in instances]
    compilations = [_submit(context, instances[config], seed) for config, seed in builds]
    failures: dict[Config, Failure] = {}
    for done, ((config, seed), compilation) in enumerate(zip(builds, compilations, strict=True), 1):
        context.observer.stage(Stage("last round: other schedules", done, len(builds)))
        binary = compilation.result()
        if config in failures or isinstance(binary, Failure):
            continue
        for problem in _problems(instances[config]):
            verdict: Verdict | Failure = context.worker.prepare(problem) or context.worker.run(
                verify_once, binary, problem, timeout_s=min(MAX_S, context.timeout_s)
            )
            failure = verdict.failure if isinstance(verdict, Verdict) else verdict
            if failure is None:
                continue
            context.worker.close()  # it may have written anywhere
            if failure.status in _FINDINGS and not failure.by_machine:
                failures[config] = replace(failure, detail=f"with schedule {seed}: {failure.detail}")
            break
    return failures


def _submit(context: TuningContext, instance: KernelInstance, seed: int) -> Future[Compilation]:
    return context.pool.submit(perturbed(instance.source, seed), instance.options, instance.names)


def sanitized(context: TuningContext, instances: dict[Config, KernelInstance]) -> dict[Config, Failure]:
    """What the sanitizer finds; nothing without one, or at sizes too large for it."""
    configs = [config for config, instance in instances.items() if instance.checks]
    if context.sanitizer is None or not configs:
        return {}
    context.observer.stage(Stage("last round: compute-sanitizer"))
    compilations = [
        context.pool.submit(instances[config].source, instances[config].options, instances[config].names)
        for config in configs
    ]
    runs: list[Run] = []
    compiled = []
    for config, compilation in zip(configs, compilations, strict=True):
        binary = compilation.result()
        if not isinstance(binary, Failure):
            compiled.append(config)
            runs.append((binary, instances[config].checks))
    return {compiled[place]: failure for place, failure in context.sanitizer.check(runs).items()}
