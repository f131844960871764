"""`show` agrees with the result: the last round's time counts, and its fastest comes first, marked."""

import json


def test_the_last_round_counts_and_its_fastest_comes_before_faster_times_of_the_search(folder):
    folder.write("""\
import os
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    with open("runs.txt", "a") as file:
        file.write("x")
    is_late = os.path.getsize("runs.txt") > 300
    return 2.0 - A / 10 if not is_late else 5.0 + A / 10
""")
    result = folder.search("--engine", "exhaustive")
    shown = folder.run("show", result["journal"], "--limit", "2", "--json")
    first, second = json.loads(shown.stdout)
    assert first["config"] == result["config"] and first["detail"] == "the fastest of the last round"
    assert sorted(first["measurement"]["samples_ms"])[6] == result["time_ms"]
    assert max(second["measurement"]["samples_ms"]) < result["time_ms"]
