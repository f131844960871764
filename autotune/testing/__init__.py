"""Contract suites, in pytest, for your own searcher or device.

In a test file:

    from autotune.testing import SearcherContract

    class TestMine(SearcherContract):
        @pytest.fixture
        def searcher(self):
            return MySearcher()

pytest then runs every test of the contract on it. `DeviceContract` tests a backend's module in the same way.
"""

from autotune.core.extras import naming_extra

with naming_extra():
    from autotune.testing.device_contract import DeviceContract
    from autotune.testing.evaluator import InProcessEvaluator
    from autotune.testing.searcher_contract import SearcherContract

__all__ = ["DeviceContract", "InProcessEvaluator", "SearcherContract"]
