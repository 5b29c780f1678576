"""BMS1 against the figures of Awad et al., Future Internet 12(4), 2020, Tables 5 and 6 and section 5.2."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from federated_anon.setvalued import Transactions, disassociate, disassociated, horizontal, reassociate, require_km
from federated_anon.setvalued.measures import rank_preservation, supports, top_pairs

SHARED = Path(os.environ.get("FEDERATED_ANON_SHARED", Path(__file__).parents[2].parent / "shared"))
PAIRS = [1204, 916, 877, 771, 738, 722, 631, 621, 615, 615, 590, 576, 571, 552, 509, 506, 496]
SIZE = 53_555


@pytest.fixture(scope="module")
def bms1() -> Transactions:
    path = SHARED / "data" / "bms1.txt.gz"
    if not path.exists():
        pytest.skip("published data sets are not beside this project")
    with gzip.open(path, "rt") as file:
        return Transactions.of(line.split() for line in file)


def test_original_counts_are_the_published_ones(bms1):
    assert (len(bms1), len(bms1.names), len(bms1.items)) == (59_602, 497, 149_639)
    assert list(top_pairs(bms1, 17).values()) == PAIRS


def test_as_printed_the_size_is_near_the_published_one(bms1):
    settings = [(2, 20), (3, 40), (4, 60)]
    sizes = [len(reassociate(disassociated(bms1, horizontal(bms1, d, 1), k, k), 0)) for k, d in settings]
    assert np.mean(sizes) == pytest.approx(SIZE, rel=0.02)


def test_defaults_keep_what_they_should(bms1):
    form = disassociate(bms1, 3, 2, 40)
    assert min(cluster.size for cluster in form.clusters) == 20
    assert form.kept / len(bms1.items) >= 0.72
    table, top = reassociate(form, 0), top_pairs(bms1, 17)
    after = supports(table, top)
    assert np.mean([after[pair] / count for pair, count in top.items()]) >= 0.90
    assert rank_preservation(bms1, table, top, top_pairs(table, 17)).staying >= 16


def test_the_strict_table_of_published_data_is_km(bms1):
    require_km(reassociate(disassociate(bms1, 3, 2, 40), 0, "strict"), 3, 2)
