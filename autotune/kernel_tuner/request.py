"""What a script asks for, as a space: checked in full before anything is compiled."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from autotune.api.space import Space
from autotune.compilers.kernel_source import SourceText, source_of_text
from autotune.core.launch_plan import is_entry
from autotune.core.records import Config
from autotune.errors import InputError
from autotune.evaluation.stored_inputs import content_sha256
from autotune.kernel_tuner.answer import read_answer
from autotune.kernel_tuner.arguments import KernelArguments, read_arguments
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.launch import AXES, launch_specs, read_launch_rule
from autotune.kernel_tuner.observers import Observers, read_observers
from autotune.kernel_tuner.parameters import Parameters, device_settings, read_parameters
from autotune.kernel_tuner.restrictions import block_limit, listed_restrictions, read_restrictions
from autotune.kernel_tuner.source import ScriptSource, compiler_options, dialect_of, source_text
from autotune.space.functions import Functions, function_name
from autotune.space.recorded import bare_spec
from autotune.space.spec import Constraint

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


def read_request(call: KernelCall) -> Request:
    """Make a space of what a script gives; raises InputError that says what to change."""
    parameters = read_parameters(call.tune_params)
    text = source_text(call.kernel_source, parameters.first)
    dialect = dialect_of(call, text)
    _check_kernel(call, dialect)
    arguments = read_arguments(call.arguments, call.kernel_name, text, call.cmem_args, parameters)
    observers = read_observers(call.observers)
    rule = read_launch_rule(call, parameters.first)
    listed = listed_restrictions(call.restrictions)
    restrictions, limit = read_restrictions(listed, parameters), block_limit(rule, parameters)
    answer = read_answer(call, arguments, parameters, observers)
    source = ScriptSource(call.kernel_source, dialect, call.defines, rule)
    sizes = _sizes(call.problem_size, arguments)
    computed = rule.values() | {"passed": arguments.number_passed}
    functions = Functions(
        reference=lambda _inputs, _sizes: answer.expected,
        inputs=lambda _sizes, _rng: arguments.arrays,
        hashes={name: content_sha256(array) for name, array in arguments.arrays.items()},
        constraints=(*restrictions.functions, *limit.functions),
        values={name: parameters.decoding(compute) for name, compute in computed.items()},
        source=parameters.decoding(source.text),
        verify=answer.judge,
        verified=answer.judged,
    )
    shown = _shown(call, source, parameters)
    default = Config({one.name: one.values[0] for one in parameters.listed})
    spec = replace(
        bare_spec(re.sub(r"\W+", "_", call.kernel_name).strip("_"), parameters.listed, default, sizes),
        path=Path(f"tune_kernel({call.kernel_name!r})"),
        sha256=hashlib.sha256(repr((parameters.given, list(restrictions.expressions))).encode()).hexdigest(),
        dialect=dialect,
        source=shown.path,
        reference=Path("answer"),
        constraints=tuple(Constraint(one, 1) for one in (*restrictions.expressions, *limit.expressions)),
        arguments=arguments.specs,
        launch=launch_specs(call, arguments),
        compiler_options={dialect: compiler_options(call.compiler_options)},
        rtol=RTOL,
        atol=repr(float(call.atol)),
        functions=functions,
        device=device_settings(parameters),
    )
    contents = [*functions.hashes.values(), *answer.hashes]
    identity = (
        *(shown.sha256, parameters.given, arguments.specs, contents),
        *(repr(_without_functions(listed)), sizes, call.atol, _without_functions(call.defines)),
    )
    return Request(
        space=Space.of(spec, shown),
        parameters=parameters,
        arguments=arguments,
        observers=observers,
        device=f"{'opencl' if dialect == 'opencl' else 'cuda'}:{call.device}",
        digest=hashlib.sha256(repr(identity).encode()).hexdigest()[:16],
    )


def _without_functions(given: Any) -> Any:
    """A list or dictionary with functions by their names: texts of functions differ from run to run."""
    if isinstance(given, Mapping):
        return {name: _without_functions(one) for name, one in given.items()}
    if isinstance(given, list):
        return [_without_functions(one) for one in given]
    return function_name(given) if callable(given) else given


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


def _shown(call: KernelCall, source: ScriptSource, parameters: Parameters) -> SourceText:
    """The source of the first configuration, which stands for all."""
    suffix = ".cl" if source.dialect == "opencl" else ".cu"
    return source_of_text(source.text(parameters.first), f"{call.kernel_name}{suffix}")
