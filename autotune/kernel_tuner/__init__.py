"""Kernel Tuner's interface to this tuner: change the import and keep the script.

The signatures and the values that are returned are those of Kernel Tuner 1.5. Everything else that a script
takes from the package, such as `kernel_tuner.util`, is Kernel Tuner's own.
"""

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from autotune.core.extras import naming_extra

with naming_extra():
    import kernel_tuner

    from autotune.kernel_tuner.interface import run_kernel, tune_kernel

__all__ = ["run_kernel", "tune_kernel"]


def __getattr__(name: str) -> Any:
    if name == "strategies":  # scripts name `strategies.minimize` without an import of it
        return _strategies()
    if not hasattr(kernel_tuner, name) and find_spec(f"kernel_tuner.{name}") is not None:
        return import_module(f"kernel_tuner.{name}")
    return getattr(kernel_tuner, name)


def _strategies() -> Any:
    """The package of strategies with its modules imported, as far as what they need is installed."""
    package = import_module("kernel_tuner.strategies")
    for module in iter_modules(package.__path__):
        with suppress(ImportError):
            import_module(f"{package.__name__}.{module.name}")
    return package
