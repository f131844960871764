"""Routing and reference of a fused MoE layer: both products, a sample of the elements, in float64."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEIGHTS = (8, 16, 32, 64, 128, 256)  # of tiles: the arrays have a part for each
RECORDED = Path(__file__).with_name("routing.npy")  # experts of each token, shape (tokens, top_k)

Array = NDArray[Any]


def inputs(sizes: Mapping[str, int], rng: np.random.Generator, data: str) -> dict[str, Array]:
    """Rows sorted by expert, each expert's padded to whole tiles, for every height of a tile."""
    flat = route(sizes, rng, data).reshape(-1)
    slot = -(-(len(flat) + 255 * sizes["E"]) // 4) * 4
    tokens, experts = (np.full((len(HEIGHTS), slot), fill, np.int32) for fill in (len(flat), 0))
    counts, row_counts = (np.zeros((len(HEIGHTS), 4), np.int32) for _ in range(2))
    order = np.argsort(flat, kind="stable")
    first = np.searchsorted(flat[order], np.arange(sizes["E"]))
    for part, height in enumerate(HEIGHTS):
        blocks = -(-np.bincount(flat, minlength=sizes["E"]) // height)
        starts = np.cumsum(blocks) - blocks
        tokens[part, starts[flat[order]] * height + np.arange(len(flat)) - first[flat[order]]] = order
        experts[part, : blocks.sum()] = np.repeat(np.arange(sizes["E"]), blocks)
        counts[part, 0] = blocks.sum() * height
        row_counts[part, 0] = len(flat) * height  # vLLM gives each of a few rows a block
    found = {"all_tokens": tokens.ravel(), "all_experts": experts.ravel(), "all_counts": counts.ravel()}
    return found | {"row_experts": flat.astype(np.int32), "row_counts": row_counts.ravel()}


def route(sizes: Mapping[str, int], rng: np.random.Generator, data: str) -> Array:
    """Different experts for each token; all tokens have the same ones where data is one_hot."""
    tokens, count, chosen = sizes["M"], sizes["E"], sizes["top_k"]
    if data == "one_hot":
        return np.tile(np.arange(chosen), (tokens, 1))
    if data == "recorded":
        found = np.load(RECORDED)
        assert found.shape[1] == chosen and found.max() < count, f"{RECORDED}: other top_k or E"
        return found[rng.integers(0, len(found), tokens)]
    weights = 1 / np.arange(1, count + 1) ** 1.2 if data == "zipf" else np.ones(count)
    keys = rng.exponential(size=(tokens, count)) / rng.permutation(weights)  # least: a weighted choice
    return np.argsort(keys, axis=1)[:, :chosen]


def reference(
    inputs: Mapping[str, Array], sizes: Mapping[str, int], indices: Mapping[str, Array]
) -> dict[str, Array]:
    """Elements of a token times its expert's weights; the second product times the routing's weight."""
    return products(inputs, sizes, indices, np.asarray)


def magnitude(
    inputs: Mapping[str, Array], sizes: Mapping[str, int], indices: Mapping[str, Array]
) -> dict[str, Array]:
    """The same elements of absolute values, of no more rows than these need: most weights are not used."""
    return products(inputs, sizes, indices, np.abs)


def products(
    inputs: Mapping[str, Array],
    sizes: Mapping[str, int],
    indices: Mapping[str, Array],
    of: Callable[[Array], Array],
) -> dict[str, Array]:
    """Elements of both products of `of` the activations, the weights and the routing's weights."""
    found = {}
    both = (("gate_up", "x", "w13", 2 * sizes["N"]), ("down", "h", "w2", sizes["K"]))
    for name, left, right, width in both:
        rows, columns = np.divmod(np.asarray(indices[name]), width)
        values = np.empty(len(rows))
        for row in np.unique(rows):
            mine = rows == row
            place = row // sizes["top_k"] if left == "x" else row
            one = of(scaled(inputs[left][place], inputs.get(f"{left}_scale", {}), place, sizes))
            chosen = columns[mine]
            other = inputs[right][inputs["row_experts"][row]][chosen].astype(np.float64)
            if f"{right}_scale" in inputs:
                scales = inputs[f"{right}_scale"][inputs["row_experts"][row]][chosen // sizes["group_n"]]
                other *= np.repeat(scales, sizes["group_k"], axis=1)[:, : other.shape[1]]
            values[mine] = of(other) @ one * (of(inputs["topk_weights"][row]) if name == "down" else 1)
        found[name] = values
    return found


def scaled(values: Array, scales: Any, row: int, sizes: Mapping[str, int]) -> Array:
    """A row of activations times the scales of its blocks, if it has some."""
    if len(scales) == 0:
        return values.astype(np.float64)
    return values.astype(np.float64) * np.repeat(scales[row], sizes["group_k"])[: len(values)]
