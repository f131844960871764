"""Damage done to valid files, at random but by seed: types, deletions, numbers, depth, texts, bits."""

import copy
import json
import random
from typing import Any

NAN, INFINITY = float("nan"), float("inf")
NASTY: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**31,
        2**63,
        -(2**63) - 1,
        10**400,
        0.5,
        -0.0,
        1e308,
        NAN,
        INFINITY,
        -INFINITY,
    ),
    *(
        "",
        " ",
        "../../x",
        "/etc/passwd",
        "a\0b",
        "\ud800",
        "A\n#define main evil",
        "é",
        "1A",
        "x" * 5000,
        "%s",
    ),
    *(
        "time",
        "A",
        "1" * 50,
        "2 ** 1023",
        "9**9**9",
        "(" * 500,
        "__import__('os')",
        "device",
        "\x1b[2J",
        "[1]*9",
    ),
    *([], {}, [[]], [None], {"": 0}, {"../n": 1}, [[1, 2], [3]], {"a": {"b": {"c": []}}}, [1] * 1000),
)
HUGE = "7" * 5000


def damaged_json(random_: random.Random, value: Any) -> str:
    """The text of a JSON value with one to three mutations of its tree, and at times one of its text."""
    tree = copy.deepcopy(value)
    for _ in range(random_.randint(1, 3)):
        tree = _mutated(random_, tree)
    text = json.dumps(tree)
    return damaged_text(random_, text) if random_.random() < 0.25 else text


def _mutated(random_: random.Random, tree: Any) -> Any:
    places = list(_places(tree))
    if not places:
        return copy.deepcopy(random_.choice(NASTY))
    holder, key = random_.choice(places)
    match random_.randrange(8):
        case 0:
            del holder[key]
        case 1:
            holder[key] = holder.copy()
        case 2:
            other, place = random_.choice(places)
            holder[key] = copy.deepcopy(other[place])
        case 3 if isinstance(holder, dict):
            holder[str(random_.choice(NASTY))] = holder.pop(key)
        case 4:
            for _ in range(random_.choice((3, 100))):
                holder[key] = [holder[key]]
        case 5 if isinstance(holder, list):
            holder.extend(copy.deepcopy(holder) * random_.choice((1, 3)))
        case _:
            holder[key] = copy.deepcopy(random_.choice(NASTY))
    return tree


def _places(tree: Any) -> Any:
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, item in pairs:
        yield tree, key
        yield from _places(item)


def damaged_text(random_: random.Random, text: str) -> str:
    """A text that was cut, doubled, flipped or stuffed somewhere."""
    start, end = sorted((random_.randrange(len(text) + 1), random_.randrange(len(text) + 1)))
    short = min(end, start + 40)
    stuffing = random_.choice(
        (*map(str, NASTY[:30]), HUGE, "[" * 20_000, '{"a":' * 5000, "1_" * 10_000 + "x", "&a [*a]")
    )
    match random_.randrange(7):
        case 0:
            return text[:start]
        case 1:
            return text[:start] + text[short:]
        case 2:
            return text[:short] + text[start:short] + text[short:]
        case 3:
            return (
                text[:start] + chr(ord(text[start]) ^ 1 << random_.randrange(7)) + text[start + 1 :]
                if start < len(text)
                else text
            )
        case 4:
            lines = text.splitlines(keepends=True)
            lines.insert(random_.randrange(len(lines) + 1), random_.choice(lines or [""]))
            return "".join(lines)
        case 5:
            lines = text.splitlines(keepends=True)
            random_.shuffle(lines)
            return "".join(lines)
        case _:
            return text[:start] + stuffing + text[short:]


def damaged_yaml(random_: random.Random, text: str) -> str:
    """The text of a space file with one to three words, lines or letters changed."""
    for _ in range(random_.randint(1, 3)):
        if random_.random() < 0.4:
            text = damaged_text(random_, text)
            continue
        words = text.split(" ")
        value = random_.choice(
            (*NASTY, HUGE, "9" * 400, "A + B <= 2**1023", "log2(0)", "1 / 0", "&a [*a]", "!!python/object:x")
        )
        words[random_.randrange(len(words))] = value if isinstance(value, str) else json.dumps(value)
        text = " ".join(words)
    return text
