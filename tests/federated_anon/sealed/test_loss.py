"""Loss of three holders that see a third of the columns each, against MDAV on the whole table."""

from pathlib import Path

import numpy as np
import pytest

from federated_anon.microaggregation import MDAV, information_loss
from federated_anon.sealed import sealed_groups
from tests.federated_anon.sealed.tables import dealt_as_simulated, standardised

MOST = {
    "census": {3: 1.21, 5: 1.17, 10: 1.10},
    "tarragona": {3: 1.01, 5: 1.08, 10: 1.02},
    "eia": {3: 1.20, 5: 0.82, 10: 0.92},
    "yeast": {3: 1.12, 5: 1.09, 10: 1.01},
}


@pytest.mark.parametrize("name", MOST)
def test_sealed_groups_lose_little_more_than_mdav(name: str, shared_data: Path) -> None:
    table = standardised(shared_data, name)
    for k, most in MOST[name].items():
        losses = [
            information_loss(
                table, sealed_groups(dealt_as_simulated(table, seed), k, (seed, 10 + seed, 20 + seed)).labels
            )
            for seed in range(5)
        ]
        assert np.mean(losses) <= most * information_loss(table, MDAV(k).fit(table).labels_), f"k={k}"
