"""autotune finds, verifies, remembers and serves the fastest configuration of a GPU kernel.

This module names what production code needs. Each name is imported on first use, so that importing the
package loads nothing else.
"""

__all__ = [
    "Argument",
    "AutotuneError",
    "Best",
    "CacheError",
    "Config",
    "DeviceInfo",
    "InputError",
    "Launch",
    "LoadedKernel",
    "Match",
    "NoConfig",
    "Report",
    "Space",
    "StaleWarning",
    "Tier",
    "best_config",
    "include_dir",
    "load_kernel",
    "opencl_devices",
    "read_trials",
    "record",
    "tune",
    "tune_all",
    "tune_sweep",
]

TYPE_CHECKING = False  # importing typing takes longer than the rest of this file
if TYPE_CHECKING:
    from autotune.api.result import Report, read_trials
    from autotune.api.space import Space
    from autotune.api.tune import tune, tune_all, tune_sweep
    from autotune.compilers.source_text import include_dir
    from autotune.core.records import Argument, Config, DeviceInfo, Launch, Match, Tier
    from autotune.core.version import __version__ as __version__
    from autotune.devices.opencl_platforms import opencl_devices
    from autotune.errors import AutotuneError, CacheError, InputError, NoConfig
    from autotune.recording.recorder import record
    from autotune.runtime.call_maker import StaleWarning
    from autotune.runtime.loaded_kernel import LoadedKernel, load_kernel
    from autotune.serving.best import Best
    from autotune.serving.lookup import best_config

_MODULES = {
    "api.result": ("Report", "read_trials"),
    "api.space": ("Space",),
    "api.tune": ("tune", "tune_all", "tune_sweep"),
    "serving.best": ("Best",),
    "errors": ("AutotuneError", "CacheError", "InputError", "NoConfig"),
    "runtime.call_maker": ("StaleWarning",),
    "runtime.loaded_kernel": ("LoadedKernel", "load_kernel"),
    "serving.lookup": ("best_config",),
    "core.version": ("__version__",),
    "core.records": ("Argument", "Config", "DeviceInfo", "Launch", "Match", "Tier"),
    "compilers.source_text": ("include_dir",),
    "devices.opencl_platforms": ("opencl_devices",),
    "recording.recorder": ("record",),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            # importlib would be loaded for this alone; best_config is to load as little as it can
            try:
                value = getattr(__import__(f"autotune.{module}", fromlist=names), name)
            except ModuleNotFoundError as error:
                from autotune.core.extras import missing_extra

                first = "search" if module.startswith("api.") else "load"
                raise missing_extra(error, first) or error from None
            globals()[name] = value
            return value
    raise AttributeError(f"module 'autotune' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
