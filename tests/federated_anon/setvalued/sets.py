"""Set-valued data for tests: strategies, and a count of combinations that shares no code with the product."""

from collections import Counter
from itertools import combinations

from hypothesis import strategies as st

from federated_anon.setvalued import Transactions


def transactions(
    min_size: int = 0, max_size: int = 60, items: int = 12, longest: int = 8
) -> st.SearchStrategy[Transactions]:
    """Random small data sets, empty records among them."""
    record = st.frozensets(st.integers(0, items - 1), max_size=longest)
    return st.lists(record, min_size=min_size, max_size=max_size).map(Transactions.of)


def combination_counts(records, m: int) -> Counter:
    """How often each combination of at most ``m`` items occurs: counted one by one."""
    counts: Counter = Counter()
    for record in records:
        for size in range(1, m + 1):
            counts.update(combinations(sorted(record), size))
    return counts


def is_km(records, k: int, m: int) -> bool:
    return all(count >= k for count in combination_counts(records, m).values())
