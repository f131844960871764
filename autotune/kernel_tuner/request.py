"""A script's request as a space, checked in full before anything is compiled."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kernel_tuner import util

from autotune.api.space import Space
from autotune.compilers.source_text import SourceText, source_of_text
from autotune.core.launch_plan import is_entry, is_option
from autotune.core.records import Config
from autotune.errors import InputError
from autotune.kernel_tuner.answer import AnswerCheck, read_answer
from autotune.kernel_tuner.arguments import KernelArguments, read_arguments
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.launch import LaunchRule, launch_specs, read_launch_rule, sizes_of
from autotune.kernel_tuner.observers import Observers, read_observers
from autotune.kernel_tuner.parameters import Parameters, Params, device_settings, read_parameters
from autotune.kernel_tuner.restrictions import Restrictions, listed_restrictions, read_restrictions
from autotune.problem.stored_inputs import content_sha256
from autotune.space.functions import Functions, function_name
from autotune.space.spec import Constraint, SpaceSpec

_DIALECTS = {"OPENCL": "opencl", "CUDA": "cuda", "CUPY": "cuda", "NVCUDA": "cuda", "PYCUDA": "cuda"}
RTOL = "1e-05"  # that of numpy.allclose, which Kernel Tuner compares with


@dataclass(frozen=True)
class TuningRequest:
    """One kernel with its parameters and arguments, read and checked."""

    call: KernelCall
    parameters: Parameters
    arguments: KernelArguments
    observers: Observers
    rule: LaunchRule
    restrictions: Restrictions
    answer: AnswerCheck
    dialect: str

    @cached_property
    def space(self) -> Space:
        """The space."""
        return Space.of(self._spec, self._first_source)

    @property
    def device(self) -> str:
        """The device's address: a backend has the name of its dialect."""
        return f"{self.dialect}:{self.call.device}"

    @property
    def digest(self) -> str:
        """The hash of all that the trials depend on: that of an earlier call finds its journal."""
        call, spec = self.call, self._spec
        identity = (
            self._first_source.text,
            self.parameters.given,
            self.arguments.specs,
            [*spec.functions.hashes.values(), *self.answer.hashes],
            repr(_without_functions(listed_restrictions(call.restrictions))),
            spec.sizes["default"],
            call.atol,
            _without_functions(call.defines),
            *([_function_text(call.verify)] if call.verify else []),  # verdicts of an earlier one do not hold
        )
        return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]

    @cached_property
    def _first_source(self) -> SourceText:
        """The source of the first configuration, with the hash of the one that loaders read."""
        name = self._source_name
        shown = source_of_text(self._full_text(self.parameters.first, name), name)
        return replace(shown, sha256=self._script_source.sha256)

    @cached_property
    def _script_source(self) -> SourceText:
        """The source that the script gave, without the definitions of Kernel Tuner."""
        return source_of_text(_source_text(self.call.kernel_source, self.parameters.first), self._source_name)

    def _full_text(self, params: Params, name: str, mark: str = "") -> str:
        """The source with the definitions of Kernel Tuner; `name` and `mark` as in `source_of_text`."""
        source = source_of_text(_source_text(self.call.kernel_source, params), name, mark)
        numbers = {name: int(value) if isinstance(value, bool) else value for name, value in params.items()}
        shape = (self.rule.grid(params), self.rule.block(params), self.rule.block_names)
        how = (self.dialect.upper(), self.call.defines)
        try:
            _, text = util.prepare_kernel_string("", source.text, numbers, *shape, *how)
        except ValueError as error:
            raise InputError(f"defines: {error}") from None
        return str(text)

    @property
    def _source_name(self) -> str:
        """The file that the script gave, or a name for its text."""
        given = self.call.kernel_source
        if isinstance(given, Path) or (isinstance(given, str) and util.looks_like_a_filename(given)):
            return str(given)
        return f"{self.call.kernel_name}{'.cl' if self.dialect == 'opencl' else '.cu'}"

    @cached_property
    def _spec(self) -> SpaceSpec:
        call, parameters, dialect = self.call, self.parameters, self.dialect
        conditions = self.restrictions.expressions
        largest = max((array.size for array in self.arguments.arrays.values()), default=1)
        return SpaceSpec(
            kernel=re.sub(r"\W+", "_", call.kernel_name).strip("_"),
            sizes={"default": sizes_of(call.problem_size) or {"n": largest}},
            parameters=parameters.listed,
            default=Config({parameter.name: parameter.values[0] for parameter in parameters.listed}),
            path=Path(f"tune_kernel({call.kernel_name!r})"),
            sha256=hashlib.sha256(repr((parameters.given, list(conditions))).encode()).hexdigest(),
            dialect=dialect,
            source=self._script_source.path,
            reference=Path("answer"),
            constraints=tuple(Constraint(condition, 1) for condition in conditions),
            arguments=self.arguments.specs,
            launch=launch_specs(call, self.arguments, self._expressions),
            compiler_options={dialect: _compiler_options(call.compiler_options)},
            rtol=RTOL,
            atol=repr(float(call.atol)),
            functions=self._functions,
            device=device_settings(parameters),
        )

    @cached_property
    def _expressions(self) -> dict[str, str]:
        """The values of launches that need no function."""
        return self.rule.expressions(self.parameters)

    @property
    def _functions(self) -> Functions:
        """The parts of the space that this process computes."""
        parameters, arguments = self.parameters, self.arguments
        answer, shown = self.answer, self._first_source
        computed = self.rule.values() | {"passed": arguments.number_passed}
        computed = {name: text for name, text in computed.items() if name not in self._expressions}
        return Functions(
            reference=lambda _inputs, _sizes: answer.expected,
            inputs=lambda _sizes, _rng: arguments.arrays,
            hashes={name: content_sha256(array) for name, array in arguments.arrays.items()},
            constraints=self.restrictions.functions,
            values={name: parameters.decoding(compute) for name, compute in computed.items()},
            source=parameters.decoding(lambda params: self._full_text(params, str(shown.path), shown.mark)),
            verify=answer.judge,
            verified=answer.judged,
        )


def read_request(call: KernelCall) -> TuningRequest:
    """Read what a script gives, and make a space of it; raises InputError that says what to change."""
    parameters = read_parameters(call.tune_params)
    text = _source_text(call.kernel_source, parameters.first)
    dialect = _dialect_of(call, text)
    _check_kernel(call, dialect)
    arguments = read_arguments(call.arguments, call.kernel_name, text, call.cmem_args, parameters)
    observers = read_observers(call.observers)
    rule = read_launch_rule(call, parameters.first)
    return TuningRequest(
        call=call,
        parameters=parameters,
        arguments=arguments,
        observers=observers,
        rule=rule,
        restrictions=read_restrictions(listed_restrictions(call.restrictions), parameters, rule),
        answer=read_answer(call, arguments, parameters, observers),
        dialect=dialect,
    )


def _without_functions(given: Any) -> Any:
    """A list or dictionary with functions by their names: texts of functions differ from run to run."""
    if isinstance(given, Mapping):
        return {name: _without_functions(part) for name, part in given.items()}
    if isinstance(given, list):
        return [_without_functions(part) for part in given]
    return function_name(given) if callable(given) else given


def _function_text(function: Callable[..., Any]) -> str:
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


def _source_text(kernel_source: Any, params: Params) -> str:
    """The source as a text: of a file, of a function, or as it is; raises InputError."""
    if isinstance(kernel_source, list | tuple):
        raise InputError(
            "kernel_source: expected the kernel's own source, found a list; host code is not run"
        )
    try:
        return str(util.get_kernel_string(kernel_source, params))
    except OSError as error:
        raise InputError(f"kernel_source: {kernel_source}: cannot be read: {error.strerror}") from None
    except TypeError:
        raise InputError("kernel_source: expected a text, a path or a function that returns a text") from None


def _dialect_of(call: KernelCall, text: str) -> str:
    """The dialect of a source, by `lang` or by its words; raises InputError."""
    if call.lang is None:
        if "__kernel" in text:
            return "opencl"
        if "__global__" in text:
            return "cuda"
        raise InputError(
            'lang: neither __kernel nor __global__ is in the source; give lang="OpenCL" or "CUDA"'
        )
    if call.lang.upper() not in _DIALECTS:
        raise InputError(
            f"lang {call.lang!r} is not supported: kernels of OpenCL and CUDA are; use kernel_tuner for it"
        )
    return _DIALECTS[call.lang.upper()]


def _compiler_options(given: Sequence[str] | None) -> dict[str, str]:
    """Options of the compiler as a space has them; raises InputError for those that name a file."""
    options: dict[str, str] = {}
    for option in given or ():
        flag, _, value = option.partition("=")
        if not is_option(flag) or (value and not is_option(f"-{value}")):
            raise InputError(f"compiler_options: {option!r} is not supported; give plain options such as -O3")
        options[flag] = repr(value) if value else "True"
    return options
