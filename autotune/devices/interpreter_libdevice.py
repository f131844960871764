"""Functions of libdevice in numpy, for Triton's interpreter, which does not have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray


def lend_libdevice() -> None:
    """Have kernels call these functions; Triton checks types and shapes as for a GPU."""
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as typed
    from triton.runtime.interpreter import interpreter_builder, interpreter_semantic

    interpreter_builder.create_extern_elementwise = _computed
    for name in vars(libdevice).keys() & vars(typed).keys():
        if callable(function := getattr(typed, name)):
            for module in (libdevice, typed):
                setattr(module, name, partial(function, _semantic=interpreter_semantic))


def _computed(
    library: str, path: str, symbol: str, arguments: Sequence[Any], kind: Any, is_pure: bool
) -> Any:
    """The result of a function of libdevice; raises NotImplementedError for a function that is not here."""
    from triton.runtime.interpreter import TensorHandle

    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    function = _FUNCTIONS.get(name) or _FUNCTIONS.get(name.removesuffix("f"))
    if function is None:
        raise NotImplementedError(
            f"Triton's interpreter does not have {symbol} of libdevice: "
            "check the kernel on a GPU, or use functions of tl"
        )
    element = kind.scalar
    dtype = {"fp32": "float32", "fp64": "float64"}.get(element.name, element.name)
    with np.errstate(all="ignore"):
        values = function(*(one.data for one in arguments))
    return TensorHandle(values.astype(dtype), element)


def _rounded(values: NDArray[Any]) -> NDArray[Any]:
    """To the nearest whole number, halves away from 0."""
    whole: NDArray[Any] = np.trunc(values)
    rounded: NDArray[Any] = np.where(np.abs(values - whole) < 0.5, whole, whole + np.copysign(1, values))
    return rounded


_SAME = """ceil floor trunc rint sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh
hypot copysign fmod"""
_FUNCTIONS: Mapping[str, Callable[..., NDArray[Any]]] = {
    **{name: getattr(np, name) for name in _SAME.split()},
    **{
        f"a{name}": getattr(np, f"arc{name}")
        for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2")
    },
    **{name: np.vectorize(getattr(math, name), otypes=[np.float64]) for name in ("erf", "erfc")},
    "abs": np.abs,
    "exp10": lambda values: np.power(10, values, dtype=values.dtype),
    "fabs": np.abs,
    "fdivide": np.divide,
    "finite": np.isfinite,
    "isfinited": np.isfinite,
    "isinf": np.isinf,
    "isinfd": np.isinf,
    "isnan": np.isnan,
    "isnand": np.isnan,
    "llrint": np.rint,
    "llround": _rounded,
    "nearbyint": np.rint,
    "pow": np.power,
    "round": _rounded,
    "rsqrt": lambda values: 1 / np.sqrt(values),
}
