"""A script's request as a space, checked in full before anything is compiled."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from autotune.api.space import Space
from autotune.compilers.kernel_source import SourceText, source_of_text
from autotune.core.launch_plan import is_entry
from autotune.core.records import Config
from autotune.errors import InputError
from autotune.kernel_tuner.answer import Answer, read_answer
from autotune.kernel_tuner.arguments import KernelArguments, read_arguments
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.launch import AXES, LaunchRule, launch_specs, read_launch_rule
from autotune.kernel_tuner.observers import Observers, read_observers
from autotune.kernel_tuner.parameters import Parameters, device_settings, read_parameters
from autotune.kernel_tuner.restrictions import (
    Restrictions,
    block_limit,
    listed_restrictions,
    read_restrictions,
)
from autotune.kernel_tuner.source import ScriptSource, compiler_options, dialect_of, source_text
from autotune.problem.stored_inputs import content_sha256
from autotune.space.functions import Functions, function_name
from autotune.space.recorded import bare_spec
from autotune.space.spec import Constraint, SpaceSpec

RTOL = "1e-05"  # that of numpy.allclose, which Kernel Tuner compares with


@dataclass(frozen=True)
class Request:
    """One kernel with its parameters and arguments."""

    space: Space
    parameters: Parameters
    arguments: KernelArguments
    observers: Observers
    device: str
    digest: str  # of all that the trials depend on


@dataclass(frozen=True)
class _Parts:
    """The parts of a script's request, read and checked."""

    parameters: Parameters
    arguments: KernelArguments
    observers: Observers
    rule: LaunchRule
    restrictions: Restrictions
    block_limit: Restrictions
    answer: Answer
    source: ScriptSource


def read_request(call: KernelCall) -> Request:
    """Make a space of what a script gives; raises InputError that says what to change."""
    parts = _read_parts(call)
    dialect = parts.source.dialect
    name = f"{call.kernel_name}{'.cl' if dialect == 'opencl' else '.cu'}"
    shown = source_of_text(parts.source.text(parts.parameters.first, name), name)
    spec = _spec(call, parts, shown)
    return Request(
        space=Space.of(spec, shown),
        parameters=parts.parameters,
        arguments=parts.arguments,
        observers=parts.observers,
        device=f"{dialect}:{call.device}",  # a backend has the name of its dialect
        digest=_digest(call, parts, spec, shown),
    )


def _read_parts(call: KernelCall) -> _Parts:
    parameters = read_parameters(call.tune_params)
    text = source_text(call.kernel_source, parameters.first)
    dialect = dialect_of(call, text)
    _check_kernel(call, dialect)
    arguments = read_arguments(call.arguments, call.kernel_name, text, call.cmem_args, parameters)
    observers = read_observers(call.observers)
    rule = read_launch_rule(call, parameters.first)
    return _Parts(
        parameters=parameters,
        arguments=arguments,
        observers=observers,
        rule=rule,
        restrictions=read_restrictions(listed_restrictions(call.restrictions), parameters),
        block_limit=block_limit(rule, parameters),
        answer=read_answer(call, arguments, parameters, observers),
        source=ScriptSource(call.kernel_source, dialect, call.defines, rule),
    )


def _spec(call: KernelCall, parts: _Parts, shown: SourceText) -> SpaceSpec:
    """The space; `shown` is the source of the first configuration."""
    parameters, dialect = parts.parameters, parts.source.dialect
    conditions = parts.restrictions.expressions
    default = Config({one.name: one.values[0] for one in parameters.listed})
    kernel = re.sub(r"\W+", "_", call.kernel_name).strip("_")
    return replace(
        bare_spec(kernel, parameters.listed, default, _sizes(call.problem_size, parts.arguments)),
        path=Path(f"tune_kernel({call.kernel_name!r})"),
        sha256=hashlib.sha256(repr((parameters.given, list(conditions))).encode()).hexdigest(),
        dialect=dialect,
        source=shown.path,
        reference=Path("answer"),
        constraints=tuple(Constraint(one, 1) for one in (*conditions, *parts.block_limit.expressions)),
        arguments=parts.arguments.specs,
        launch=launch_specs(call, parts.arguments),
        compiler_options={dialect: compiler_options(call.compiler_options)},
        rtol=RTOL,
        atol=repr(float(call.atol)),
        functions=_functions(parts, shown),
        device=device_settings(parameters),
    )


def _functions(parts: _Parts, shown: SourceText) -> Functions:
    """The parts of the space that this process computes; `shown` is as above."""
    parameters, arguments, answer = parts.parameters, parts.arguments, parts.answer
    computed = parts.rule.values() | {"passed": arguments.number_passed}
    return Functions(
        reference=lambda _inputs, _sizes: answer.expected,
        inputs=lambda _sizes, _rng: arguments.arrays,
        hashes={name: content_sha256(array) for name, array in arguments.arrays.items()},
        constraints=(*parts.restrictions.functions, *parts.block_limit.functions),
        values={name: parameters.decoding(compute) for name, compute in computed.items()},
        source=parameters.decoding(lambda params: parts.source.text(params, str(shown.path), shown.mark)),
        verify=answer.judge,
        verified=answer.judged,
    )


def _digest(call: KernelCall, parts: _Parts, spec: SpaceSpec, shown: SourceText) -> str:
    """The hash of all that the trials depend on: that of an earlier call finds its journal."""
    identity = (
        shown.sha256,
        parts.parameters.given,
        parts.arguments.specs,
        [*spec.functions.hashes.values(), *parts.answer.hashes],
        repr(_without_functions(listed_restrictions(call.restrictions))),
        spec.sizes["default"],
        call.atol,
        _without_functions(call.defines),
        *([_source(call.verify)] if call.verify else []),  # verdicts of an earlier one do not hold
    )
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


def _without_functions(given: Any) -> Any:
    """A list or dictionary with functions by their names: texts of functions differ from run to run."""
    if isinstance(given, Mapping):
        return {name: _without_functions(one) for name, one in given.items()}
    if isinstance(given, list):
        return [_without_functions(one) for one in given]
    return function_name(given) if callable(given) else given


def _source(function: Callable[..., Any]) -> str:
    """The source of a function, or its name where there is none."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return function_name(function)


def _check_kernel(call: KernelCall, dialect: str) -> None:
    """Raise InputError for what cannot be a kernel's name, and for constants that its language lacks."""
    if not is_entry(call.kernel_name):
        raise InputError(f"kernel_name {call.kernel_name!r}: expected a name, such as sum or sum<float>")
    if call.cmem_args and dialect != "cuda":
        raise InputError(
            "cmem_args: only CUDA has them; pass the array as a `__constant` argument of the kernel"
        )


def _sizes(problem_size: Any, arguments: KernelArguments) -> dict[str, int]:
    """The problem's sizes where they are numbers, else that of the largest array."""
    listed = problem_size if isinstance(problem_size, tuple | list) else (problem_size,)
    if all(isinstance(size, int | np.integer) for size in listed):
        return {axis: int(size) for axis, size in zip(AXES, listed, strict=False)}
    return {"n": max((array.size for array in arguments.arrays.values()), default=1)}
