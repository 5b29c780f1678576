"""The truth about a holder that stands in this very process: for judging attacks on a simulated study, nothing else."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from nodes.block import Block, Records
from nodes.holder import DataHolder


def rows_in_common_order(holder: DataHolder) -> np.ndarray:
    """The row of the holder's own table behind each record, in the order in which all parties count them."""
    order = pc.sort_indices(holder._recall(Records).ids).to_numpy()
    rows: np.ndarray = order[holder._recall(Block).places]
    return rows
