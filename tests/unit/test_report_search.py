"""What a search's last lines say of doubtful times."""

import pytest

from autotune.report.search import shifted
from autotune.trials import Measurement


@pytest.mark.parametrize(
    ("best", "default", "told"),
    [
        ((1.0, 1.1), (4.0, 4.0), []),
        ((1.0, 2.0), (4.0, 8.4), ["beware  the last round took 2 times the search's times"]),
        ((2.0, 1.0), (8.0, 5.0), ["beware  the last round took 0.62 times the search's times"]),
        ((1.0, 2.0), (4.0, 4.1), []),  # the best was the luckiest, the device the same
        ((1.0, 2.0), (4.0, 2.0), []),  # contradictory
        ((1.0, 2.0), (None, 4.0), []),
    ],
)
def test_a_last_round_on_another_device_than_the_search_is_told(best, default, told):
    pairs = [(before, Measurement((after,), "finals")) for before, after in (best, default)]
    assert [line.split(":")[0] for line in shifted(pairs)] == told
