"""Verifies the arrays after a run by the script's `answer`, or by its `verify`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.records import Config
from autotune.errors import InputError
from autotune.kernel_tuner.arguments import KernelArguments, elements, is_of_device, on_host
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.observers import Observers
from autotune.kernel_tuner.parameters import Parameters
from autotune.problem.stored_inputs import content_sha256

Judge = Callable[[Config, Mapping[str, NDArray[Any]]], Any]


@dataclass(frozen=True)
class AnswerCheck:
    """The verification of a run."""

    hashes: tuple[str, ...]  # of the arrays of the script's answer
    expected: Mapping[str, NDArray[Any]]  # that the device's process compares with; empty with a `judge`
    judge: Judge | None  # of a configuration's arrays, in this process; None without need
    judged: tuple[str, ...] | None  # the arrays that it takes; None for all


def read_answer(
    call: KernelCall, arguments: KernelArguments, parameters: Parameters, observers: Observers
) -> AnswerCheck:
    """Find out how to verify; raises InputError where the answer does not fit the arguments."""
    given = _on_host(call.answer)
    if call.verify is None and given is not None and len(given) != len(arguments.listed):
        raise InputError(
            f"answer: expected {len(arguments.listed)} elements (None for an input), found {len(given)}"
        )
    judge = _judge(call, given, arguments, parameters, observers)
    return AnswerCheck(
        hashes=tuple(content_sha256(np.asarray(array)) for array in given or () if array is not None),
        expected={} if judge else _expected(given, arguments),
        judge=judge,
        judged=_judged(given, arguments),
    )


def _on_host(answer: Sequence[Any] | None) -> Sequence[Any] | None:
    """An answer with the arrays of cupy and torch in the host's memory."""
    if not isinstance(answer, Sequence):
        return answer
    return [on_host(value) if is_of_device(value) else value for value in answer]


def _expected(answer: Sequence[Any] | None, arguments: KernelArguments) -> dict[str, NDArray[Any]]:
    if answer is None:
        return {}
    expected = {}
    for value, argument in zip(answer, arguments.listed, strict=True):
        if value is None:
            continue
        name = argument.names[0]
        if name not in arguments.arrays:
            raise InputError(f"answer: {name} is a scalar; expected None")
        array = arguments.arrays[name]
        wanted = elements(value, f"answer: {name}") if isinstance(value, np.ndarray) else np.asarray(value)
        if wanted.size != array.size:
            raise InputError(f"answer: {wanted.size} elements for {name}, which has {array.size}")
        expected[name] = wanted.astype(array.dtype)
    return expected


def _judged(answer: Sequence[Any] | None, arguments: KernelArguments) -> tuple[str, ...] | None:
    """The arrays with an answer; all without one, and where a `verify` takes one of another form."""
    if answer is None or len(answer) != len(arguments.listed):
        return None
    pairs = zip(answer, arguments.listed, strict=True)
    return tuple(name for value, argument in pairs if value is not None for name in argument.names)


def _judge(
    call: KernelCall,
    answer: Sequence[Any] | None,
    arguments: KernelArguments,
    parameters: Parameters,
    observers: Observers,
) -> Judge | None:
    """The script's own `verify`; with observers of outputs it is they, as in Kernel Tuner.

    An answer is compared here as well where a Tunable chooses what it is compared with.
    """
    verify, atol = call.verify, call.atol
    has_choice = answer is not None and len(arguments.passed) > 1
    if verify is None and not observers.outputs and not has_choice:
        return None
    takes_atol = verify is not None and "atol" in inspect.signature(verify).parameters

    def judge(config: Config, arrays: Mapping[str, NDArray[Any]]) -> Any:
        outputs = arguments.outputs(arrays, parameters.decode(config))
        observers.see(config.key, answer, outputs)
        if verify is not None:
            return verify(answer, outputs, atol=atol) if takes_atol else verify(answer, outputs)
        return bool(observers.outputs) or _is_close(answer or (), outputs, atol)

    judge.__qualname__ = getattr(verify, "__qualname__", "answer")
    return judge


def _is_close(answer: Sequence[Any], outputs: Sequence[Any], atol: float) -> bool:
    pairs = [(value, output) for value, output in zip(answer, outputs, strict=True) if value is not None]
    return all(np.allclose(np.ravel(value), np.ravel(output), atol=atol) for value, output in pairs)
