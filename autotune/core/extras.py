"""The extra that brings each optional package, and one line in place of an import that fails without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from autotune.errors import MissingExtra

# The top modules that autotune imports, by the extra in pyproject.toml that installs them.
EXTRAS = {
    "search": (
        *("argcomplete", "ml_dtypes", "numpy", "pyopencl", "rich", "scipy", "threadpoolctl"),
        *("tree_sitter", "tree_sitter_cuda", "yaml"),
    ),
    "load": ("ml_dtypes", "numpy", "pyopencl", "tree_sitter", "tree_sitter_cuda"),
    "report": ("matplotlib", "sklearn"),
    "kernel-tuner": ("kernel_tuner",),
    "optuna": ("optuna",),
    "cuda": ("cuda", "pynvml"),
    "pycuda": ("pycuda",),
    "triton": ("triton",),
    "cluster": ("dask", "dask_jobqueue", "distributed"),
}


@contextmanager
def naming_extra(preferred: str = "search") -> Iterator[None]:
    """Raise MissingExtra in place of an import that fails in the block, if an extra brings the module.

    `first` is the extra to name where several bring it.
    """
    try:
        yield
    except ImportError as error:
        raise missing_extra(error, preferred) or error from None


def missing_extra(error: ImportError, preferred: str = "search") -> MissingExtra | None:
    """The error in one line with what to install, as `naming_extra`; None if no extra brings that module."""
    top = (error.name or "").partition(".")[0]
    extra = next((name for name in (preferred, *EXTRAS) if top in EXTRAS[name]), None)
    return None if extra is None else MissingExtra(top, extra)
