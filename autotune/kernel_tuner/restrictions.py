"""Restrictions of a script as conditions of a space: expressions where they can be, else functions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_tuner import util

from autotune.core.expressions import parse, unknown_names
from autotune.core.text import hint
from autotune.errors import ExpressionError, InputError
from autotune.kernel_tuner.launch import AXES, LaunchRule
from autotune.kernel_tuner.parameters import Parameters, Params
from autotune.space.functions import Values, function_name

_MOST_THREADS = "device.max_threads_per_block"


@dataclass(frozen=True)
class Restrictions:
    """Conditions of valid configurations: expressions, which are checked much faster, and functions."""

    expressions: tuple[str, ...]
    functions: tuple[Callable[[Values], bool], ...]


def listed_restrictions(given: Any) -> list[Any]:
    """The argument `restrictions` as a list: it may be one of them, or None."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def read_restrictions(listed: Sequence[Any], parameters: Parameters, rule: LaunchRule) -> Restrictions:
    """Part restrictions into expressions and functions; raises InputError for a text that cannot be read.

    Where expressions of launches do not limit a block to what the device takes, a function does.
    """
    expressions: list[str] = []
    functions = []
    for restriction in listed:
        if _is_expression(restriction, parameters):
            expressions.append(restriction)
        else:
            functions.append(read_restriction(restriction, parameters))
    if not {f"block_{axis}" for axis in AXES} <= rule.expressions(parameters).keys():
        functions.append(block_limit(rule, parameters))
    return Restrictions(tuple(expressions), tuple(functions))


def read_restriction(restriction: Any, parameters: Parameters) -> Callable[[Values], bool]:
    """A restriction as a function, which messages name as the script does; raises InputError."""
    holds = parameters.decoding(_condition(restriction, parameters))
    holds.__qualname__ = restriction if isinstance(restriction, str) else function_name(restriction)
    return holds


def _condition(restriction: Any, parameters: Parameters) -> Callable[[Params], bool]:
    """A restriction as a function of the script's own values: of a text, a function or a constraint."""
    if isinstance(restriction, str):
        try:
            expression = parse(restriction)
        except ExpressionError as error:
            raise InputError(f"restrictions: {error}; write it as a function: lambda p: ...") from None
        if unknown := unknown_names(expression, parameters.given):
            raise InputError(f"restrictions: unknown name {unknown[0]!r}{hint(unknown[0], parameters.given)}")
        return expression.holds
    is_constraint = hasattr(restriction, "_func") or hasattr(restriction, "preProcess")
    if is_constraint or not callable(restriction):
        return lambda params: bool(util.check_restriction(restriction, dict(params)))
    names = list(inspect.signature(restriction).parameters)
    if len(names) == 1 and names[0] not in parameters.given:  # it takes a dictionary of all
        return lambda params: bool(restriction(params))
    return lambda params: bool(restriction(**params))


def block_limit(rule: LaunchRule, parameters: Parameters) -> Callable[[Values], bool]:
    """The condition that a block is not too large for the device."""

    def fits(values: Values) -> bool:
        most: int = values[_MOST_THREADS]
        return math.prod(rule.block(parameters.decode(values))) <= most

    return fits


def _is_expression(restriction: Any, parameters: Parameters) -> bool:
    """True if a space file can say it."""
    if not isinstance(restriction, str):
        return False
    try:
        names = parse(restriction).names
    except ExpressionError:
        return False
    return all(name in parameters.given and parameters.is_same(name) for name in names)
