"""The references and routings of examples/frameworks, against plain loops at small sizes."""

from pathlib import Path

import numpy as np
import pytest

from autotune.problem.reference import load_function

FOLDER = Path(__file__).parents[2] / "examples" / "frameworks"
HEIGHTS = (8, 16, 32, 64, 128, 256)
FEW = {"M": 1, "E": 16, "N": 40, "K": 72, "top_k": 3, "group_n": 32, "group_k": 32}
MANY = FEW | {"M": 37, "E": 5}


def function(file, name):
    return load_function(FOLDER / file, name, "a function")


def blocks(scales, row, width, sizes):
    """The scale of each element of a row of a matrix, from those of its blocks."""
    return np.array([scales[row // sizes["group_n"], k // sizes["group_k"]] for k in range(width)])


@pytest.mark.parametrize("places", [[0, 39, 40, 77, 119], range(119, -1, -1)], ids=["few", "all"])
def test_the_product_is_that_of_scaled_elements(places):
    sizes, rng = {"M": 3, "N": 40, "K": 72, "group_n": 32, "group_k": 32}, np.random.default_rng(0)
    given = {"A": rng.normal(size=(3, 72)), "As": rng.random((3, 3))}
    given |= {"B": rng.normal(size=(40, 72)), "Bs": rng.random((2, 3))}
    right = [given["B"][n] * blocks(given["Bs"], n, 72, sizes) for n in range(40)]
    left = [given["A"][m] * [given["As"][m, k // 32] for k in range(72)] for m in range(3)]
    places = np.array(places)
    found = function("w8a8.py", "reference")(given, sizes, {"C": places})["C"]
    assert np.allclose(found, (np.array(left) @ np.array(right).T).ravel()[places])


def routed(sizes, data="uniform", seed=0):
    return function("moe.py", "inputs")(sizes, np.random.default_rng(seed), data)


def moe(sizes, data):
    rng, rows = np.random.default_rng(1), sizes["M"] * sizes["top_k"]
    e, n, k = (sizes[name] for name in "ENK")
    return routed(sizes, data) | {
        "x": rng.normal(size=(sizes["M"], k)),
        "x_scale": rng.random((sizes["M"], 3)),
        "w13": rng.normal(size=(e, 2 * n, k)),
        "w13_scale": rng.random((e, 3, 3)),
        "h": rng.normal(size=(rows, n)),
        "h_scale": rng.random((rows, 2)),
        "w2": rng.normal(size=(e, k, n)),
        "w2_scale": rng.random((e, 3, 2)),
        "topk_weights": rng.random(rows),
    }


@pytest.mark.parametrize("data", ["uniform", "zipf", "one_hot"])
@pytest.mark.parametrize("sizes", [FEW, MANY], ids=["few", "many"])
def test_both_products_of_a_moe_layer_are_those_of_each_rows_expert(sizes, data):
    given, rows = moe(sizes, data), sizes["M"] * sizes["top_k"]
    expert = function("moe.py", "route")(sizes, np.random.default_rng(0), data).ravel()
    gate_up, down = np.empty((rows, 2 * sizes["N"])), np.empty((rows, sizes["K"]))
    for row in range(rows):
        for out, left, scale, name, weight in (
            (gate_up, given["x"][row // 3], given["x_scale"][row // 3], "w13", 1),
            (down, given["h"][row], given["h_scale"][row], "w2", given["topk_weights"][row]),
        ):
            one = left * [scale[k // 32] for k in range(len(left))]
            for n, line in enumerate(given[name][expert[row]]):
                scales = blocks(given[f"{name}_scale"][expert[row]], n, len(line), sizes)
                out[row, n] = one @ (line * scales) * weight
    every = {"gate_up": np.arange(gate_up.size), "down": np.arange(down.size)}
    found = function("moe.py", "reference")(given, sizes, every)
    assert np.allclose(found["gate_up"], gate_up.ravel()) and np.allclose(found["down"], down.ravel())


@pytest.mark.parametrize("data", ["uniform", "zipf", "one_hot"])
@pytest.mark.parametrize("sizes", [FEW, MANY], ids=["few", "many"])
def test_magnitudes_of_a_moe_layer_are_the_reference_of_absolute_values_to_the_last_bit(sizes, data):
    given, rows = moe(sizes, data), sizes["M"] * sizes["top_k"]
    given["topk_weights"] -= 0.5
    given = {name: values for name, values in given.items() if name != "w2_scale"}  # without, as for bfloat16
    places = {"gate_up": np.arange(0, rows * 80, 7), "down": np.arange(0, rows * 72, 5)}
    found = function("moe.py", "magnitude")(given, sizes, places)
    positive = {name: np.abs(values) for name, values in given.items()}
    expected = function("moe.py", "reference")(positive, sizes, places)
    assert {name: values.tolist() for name, values in found.items()} == {
        name: values.tolist() for name, values in expected.items()
    }


@pytest.mark.parametrize("data", ["uniform", "zipf", "one_hot"])
@pytest.mark.parametrize("sizes", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("part", range(6))
def test_every_row_is_in_one_block_of_its_expert_whatever_the_tiles_height(sizes, data, part):
    rows, height = sizes["M"] * sizes["top_k"], HEIGHTS[part]
    expert = function("moe.py", "route")(sizes, np.random.default_rng(0), data).ravel()
    given = routed(sizes, data)
    slot = len(given["all_tokens"]) // 6
    tokens = given["all_tokens"][part * slot :][:slot]
    experts = given["all_experts"][part * slot :][:slot]
    padded = given["all_counts"][4 * part]
    assert slot % 4 == 0 and padded % height == 0
    assert list(given["row_experts"]) == list(expert) and given["row_counts"][4 * part] == rows * height
    assert padded <= rows + sizes["E"] * (height - 1) <= slot
    assert sorted(tokens[:padded][tokens[:padded] < rows]) == list(range(rows))
    for place in np.flatnonzero(tokens[:padded] < rows):
        assert experts[place // height] == expert[tokens[place]]
    assert set(tokens[padded:]) <= {rows}


def test_tokens_have_different_experts_and_skewed_routings_prefer_some():
    sizes = {"M": 2000, "E": 16, "top_k": 4}
    shares = {}
    for data in ("uniform", "zipf", "one_hot"):
        found = function("moe.py", "route")(sizes, np.random.default_rng(0), data)
        assert all(len(set(row)) == 4 for row in found.tolist())
        shares[data] = np.bincount(found.ravel(), minlength=16).max() / found.size
    assert shares["uniform"] < 0.08 < shares["zipf"] < 0.25 == shares["one_hot"]
