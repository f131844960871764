"""The default search: a surrogate model of the whole space that learns from other devices and problems."""

from autotune.searchers.surrogate.pooled_search import PooledSearch
from autotune.searchers.surrogate.pooled_trials import PooledTrials
from autotune.searchers.surrogate.search import SurrogateSearch
from autotune.searchers.surrogate.stopping import stopping_estimate

__all__ = ["PooledSearch", "PooledTrials", "SurrogateSearch", "stopping_estimate"]
