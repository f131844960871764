"""Device names: equality of names, and the vendor and architecture that a name implies.

docs/devices.md explains the rules. Two names mean the same device if chip, units and memory are the same, in
any spelling. Form factors (SXM, PCIe, NVL), memory sizes, laptop and Ti versions, MIG slices and virtual GPUs
are different devices: their results serve each other as SAME_ARCHITECTURE, never as EXACT.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from autotune.core.frozen import dataclass, replace
from autotune.core.records import DeviceInfo
from autotune.hardware.architectures import ARCHITECTURES, NAME_WORDS, Architecture, architecture

# Words that do not distinguish devices.
BRANDS = frozenset(
    [
        "nvidia",
        "corporation",
        "tesla",
        "geforce",
        "amd",
        "radeon",
        "intel",
        "graphics",
        "gpu",
        "cpu",
        "r",
        "tm",
    ]
)
# The driver's name for each common name, both in the form that `canonical` gives.
ALIASES = {
    "h100 sxm": "80gb h100 hbm3",
    "h100 sxm5": "80gb h100 hbm3",
    "80gb h100 sxm5": "80gb h100 hbm3",
    "80gb h100 sxm": "80gb h100 hbm3",
    "h200 sxm": "h200",
    "h200 sxm5": "h200",
    "141gb h200": "h200",
    "40gb a100 sxm": "40gb a100 sxm4",
    "80gb a100 sxm": "80gb a100 sxm4",
}
# Words that decide the vendor, in a device's name or its vendor string.
VENDORS = {
    "nvidia": ("nvidia", "geforce", "tesla", "quadro", "rtx", "gtx", "grid"),
    "amd": ("amd", "radeon", "instinct", "authenticamd", "advanced micro devices", "epyc", "ryzen"),
    "intel": ("intel", "genuineintel", "xeon", "iris"),
    "apple": ("apple",),
    "arm": ("arm", "mali"),
    "qualcomm": ("qualcomm", "adreno"),
}


_ALIKE = 0.75  # wrong letters in a misspelt word: one of four, two of eight


@dataclass(frozen=True)
class Traits:
    """The properties of a device that decide whose results serve it; None where unknown."""

    kind: str | None = None
    vendor: str | None = None
    architecture: str | None = None


def name_words(name: str) -> list[str]:
    """The words of a device's name in lower case, without (R), (TM) and (C)."""
    plain = name.lower()
    for mark in ("(r)", "(tm)", "(c)"):
        plain = plain.replace(mark, " ")
    return "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in plain).split()


def canonical(name: str) -> str:
    """A name or slug without brands and with sorted words: equal for the same device.

    A name that consists of brands only keeps them.
    """
    words = name_words(name)
    plain = " ".join(sorted(word for word in words if word not in BRANDS)) or " ".join(words)
    return ALIASES.get(plain, plain)


def is_same(first: str, second: str) -> bool:
    """True if two names mean the same device."""
    return canonical(first) == canonical(second)


def misspelt(name: str, known: Iterable[str]) -> str:
    """The known name that differs in one word of letters; empty if none does. Digits tell models apart."""
    from difflib import SequenceMatcher  # only for messages

    words = name_words(name)
    for candidate in known:
        pairs = zip(words, name_words(candidate), strict=False)
        differing = [pair for pair in pairs if pair[0] != pair[1]]
        if len(words) != len(name_words(candidate)) or len(differing) != 1:
            continue
        word, meant = differing[0]
        if word.isalpha() and meant.isalpha() and SequenceMatcher(None, word, meant).ratio() >= _ALIKE:
            return candidate
    return ""


def traits_of_name(name: str) -> Traits:
    """The traits that a name implies: a slug that begins with cpu is a CPU's, every other name a GPU's."""
    words = name_words(name)
    kind = "cpu" if words and words[0] == "cpu" else "gpu"
    vendor = _vendor(name)
    architecture = next((key for key, known in NAME_WORDS.items() if {*words} & {*known.split()}), None)
    maker = "nvidia" if (architecture or "").startswith("sm_") else "amd"
    if architecture is None or kind == "cpu" or vendor not in (None, maker):
        return Traits(kind, vendor, None)
    return Traits(kind, maker, architecture)


def known_gpu(name: str) -> DeviceInfo | None:
    """A GPU that may be absent, with the limits of its architecture; None if the name implies none.

    The name is an architecture, such as `sm_90`, or a GPU's. Memory, caches and number of multiprocessors are
    those of the architecture's example.
    """
    key = name.strip().lower()
    if not is_architecture(name):
        key = traits_of_name(name).architecture or ""
    if key not in ARCHITECTURES:
        return None
    example = ARCHITECTURES[key].device
    is_example = name.strip().lower() == key or is_same(name, example.name)
    return example if is_example else replace(example, name=name, slug=slug(name))


def is_architecture(name: str) -> bool:
    """True for the name of an architecture, such as `sm_90`."""
    return name.strip().lower() in ARCHITECTURES


def gpu_architectures(names: str) -> list[Architecture]:
    """The architectures of GPUs that may be absent; raises InputError for a name that implies none.

    `names` has architectures and names of GPUs, separated by commas.
    """
    traits = {}
    for name in filter(None, map(str.strip, names.split(","))):
        device = known_gpu(name)
        where = architecture(device.architecture if device else name)
        traits[name] = replace(where, device=device or where.device)
    return list(traits.values())


@lru_cache(maxsize=1024)
def traits_of(device: DeviceInfo) -> Traits:
    """The traits of a described device, derived from its name if possible.

    OpenCL reports no architecture for GPUs. For a CPU, the model counts as architecture: two CPUs of the same
    instruction set may have little in common, and a runtime may report its own maker instead of the CPU's.
    """
    if device.kind == "cpu":
        vendor = _vendor(device.name) or _vendor(device.vendor) or device.vendor.lower()
        return Traits("cpu", vendor, canonical(device.name))
    vendor = _vendor(device.vendor) or _vendor(device.name) or device.vendor.lower()
    architecture = device.architecture
    if architecture == device.name:
        architecture = traits_of_name(device.name).architecture or architecture
    return Traits(device.kind, vendor, architecture)


def _vendor(text: str) -> str | None:
    padded = f" {' '.join(name_words(text))} "
    for vendor, marks in VENDORS.items():
        if any(f" {mark} " in padded for mark in marks):
            return vendor
    return None


def slug(name: str) -> str:
    """The folder name of a device: `NVIDIA H200` is `nvidia-h200`; (R), (TM) and (C) are dropped."""
    return "-".join(name_words(name)) or "unnamed"
