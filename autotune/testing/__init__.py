"""Contract suites for people who write their own searcher or device; they need pytest.

In a test file of yours:

    from autotune.testing import SearcherContract

    class TestMine(SearcherContract):
        @pytest.fixture
        def searcher(self):
            return MySearcher()

pytest then runs every test of the contract on it. `DeviceContract` takes a backend's module in the same way.
"""

from autotune.testing.device_contract import DeviceContract
from autotune.testing.evaluator import InProcessEvaluator
from autotune.testing.searcher_contract import SearcherContract

__all__ = ["DeviceContract", "InProcessEvaluator", "SearcherContract"]
