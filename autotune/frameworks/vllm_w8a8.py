"""The files of vLLM's product of two matrices of float8 with scales by block, as version 0.33 reads them."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.frameworks.config_file import Entry, Format, Shape, entry_of, in_loops, spelling


def is_tried(_shape: Shape, entry: Entry) -> bool:
    """True if the tuner tries a configuration."""
    return in_loops(entry, (64, 128))


def default(shape: Shape, stages: int) -> Entry | None:
    """The one configuration without a file, which AMD's GPUs change."""
    if shape.block is None or not shape.device.startswith("NVIDIA"):
        return None
    return entry_of((64, *shape.block, 32), 4, stages)


def _unread(_shape: Shape, architecture: str) -> str:
    if architecture in ("sm_90", "sm_100", "sm_103", "sm_120"):
        return "vLLM takes DeepGEMM or CUTLASS for this product on this GPU, unless told otherwise"
    if architecture in ("sm_75", "sm_80", "sm_86", "sm_87"):
        return "this GPU has no float8: vLLM takes Marlin"
    return ""


def _refused(shape: Shape, entry: Entry) -> Iterator[str]:
    columns = shape.sizes.get("group_k", 0)
    tile = int(entry["BLOCK_SIZE_K"])
    if columns and columns % tile:
        yield f"BLOCK_SIZE_K={tile} does not divide the block of {columns}: results are wrong"


FORMAT = Format(
    name="vllm-w8a8",
    package="vllm",
    folder="model_executor/layers/quantization/utils/configs",
    subfolder="",
    sizes=("N", "K"),
    separator=",",
    heads=(),
    asked=(),
    asked_blocks=("fp8_w8a8",),
    device=spelling,
    default=lambda shape, _: default(shape, 2),
    is_tried=is_tried,
    unread=_unread,
    refused=_refused,
)
