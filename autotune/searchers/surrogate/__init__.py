"""The project's own search: a model of the whole space that learns from other devices."""

from autotune.searchers.surrogate.outlook import FASTER, Outlook, outlook
from autotune.searchers.surrogate.search import SurrogateSearch

__all__ = ["FASTER", "Outlook", "SurrogateSearch", "outlook"]
