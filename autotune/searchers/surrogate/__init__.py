"""The default search: a surrogate model of the whole space that learns from other devices."""

from autotune.searchers.surrogate.search import SurrogateSearch
from autotune.searchers.surrogate.stopping import stopping_estimate

__all__ = ["SurrogateSearch", "stopping_estimate"]
