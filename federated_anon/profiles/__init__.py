"""What a holder may tell of its own columns beside the release: counts of at least k people, rounded figures."""

from federated_anon.profiles.bins import Bins, column_bins
from federated_anon.profiles.profile import After, Before, profile_of, unit_heights
from federated_anon.profiles.told import ColumnProfile, Correlations, Linked, Profile

__all__ = [
    "After",
    "Before",
    "Bins",
    "ColumnProfile",
    "Correlations",
    "Linked",
    "Profile",
    "column_bins",
    "profile_of",
    "unit_heights",
]
