import numpy as np
import pytest

from coordinator.grouping import as_code
from federated_anon.errors import MessageRefused
from federated_anon.messages.payloads import Coded


@pytest.mark.parametrize(
    "cells", [[0, 0, 0, 1, 1], [0, 0, 0, 2, 2, 2], [0, 0, 0, -1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 2, 2, 2]]
)
def test_a_code_with_a_cell_below_k_or_without_its_mean_is_refused(cells):
    coded = Coded(np.array(cells, np.int32), np.zeros((2, 1)), np.zeros((0, 0)), np.zeros(0, np.float32))
    with pytest.raises(MessageRefused, match="at least 3 records"):
        as_code("north", coded, 3)
