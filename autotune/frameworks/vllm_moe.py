"""The files of vLLM's fused MoE kernel in Triton, as version 0.33 reads them."""

from __future__ import annotations

from autotune.frameworks.config_file import Entry, Format, Shape, entry_of, in_loops, spelling

_FLOAT8 = ("fp8_w8a8", "fp8_w8a16")


def _device(name: str) -> str:
    """All variants of the H200 read the same files."""
    found = spelling(name)
    return "NVIDIA_H200" if "H200" in found.split("_") else found


def _default(shape: Shape, tokens: int) -> Entry | None:
    if not shape.device.startswith("NVIDIA") or shape.quantization not in ("", "fp8_w8a8", "float32"):
        return None
    if shape.block and shape.quantization == "fp8_w8a8":
        rows, columns = shape.block
        is_small = tokens <= 8 and rows % 64 == 0
        tile = (16 if tokens <= 64 else 64, 64 if is_small else rows, columns)
        group, warps, stages = 1 if tokens <= 16 else 32, 4, 4 if is_small and tokens <= 4 else 3
    else:
        height = next((size for most, size in ((32, 16), (96, 32), (512, 64)) if tokens <= most), 128)
        is_wide = shape.quantization == "fp8_w8a8" or tokens <= 64
        tile = (height, 64 if tokens <= 64 else 128, 128 if is_wide else 64)
        group = 16 if tokens // shape.sizes["E"] > 128 else 1
        warps, stages = 4 if tokens <= 128 else 8, 4 if tokens <= 32 else 3
    return entry_of((*tile, group), warps, stages)


def _is_tried(shape: Shape, entry: Entry) -> bool:
    """With blocks the tuner wants whole ones in a tile, although the kernel needs none."""
    rows, columns = shape.block or (1, 1)
    whole = not (int(entry["BLOCK_SIZE_N"]) % rows or int(entry["BLOCK_SIZE_K"]) % columns)
    return in_loops(entry) and whole


def _launched(shape: Shape, entry: Entry) -> Entry:
    """A step over K is not longer than a block of scales."""
    if shape.block is None:
        return entry
    return {**entry, "BLOCK_SIZE_K": min(int(entry["BLOCK_SIZE_K"]), *shape.block)}


def _unread(shape: Shape, architecture: str) -> str:
    if shape.quantization in ("int4_w4a16", "int8_w8a16"):
        return "vLLM takes Marlin for these weights, unless told otherwise"
    if architecture in ("sm_100", "sm_103"):
        return "vLLM takes FlashInfer or DeepGEMM on this GPU, unless told otherwise"
    if architecture == "sm_90" and shape.quantization == "fp8_w8a8" and not shape.block:
        return "vLLM takes CUTLASS for fp8 without blocks on this GPU, unless told otherwise"
    if architecture in ("sm_75", "sm_80", "sm_86", "sm_87") and shape.quantization in _FLOAT8:
        return "this GPU has no float8: vLLM takes Marlin"
    return ""


FORMAT = Format(
    name="vllm-moe",
    package="vllm",
    folder="model_executor/layers/fused_moe/configs",
    subfolder="",
    sizes=("E", "N"),
    separator=",",
    heads=("triton_version",),
    asked=("", "float32", "int4_w4a16", "int8_w8a16", *_FLOAT8),
    asked_blocks=_FLOAT8,
    device=_device,
    default=_default,
    is_tried=_is_tried,
    unread=_unread,
    launched=_launched,
)
