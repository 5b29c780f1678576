"""Methods against methods: a sweep over tables, methods, k, holders and seeds, cell by cell, and what comes of it.

``plan`` says what is to be measured, ``cell`` measures one combination, ``store`` keeps finished cells so that a sweep
goes on where it stood, ``outcome`` ranks, ``pages`` and ``pictures`` show. No Ray here: who calls spreads the cells.
"""

from federated_anon.comparison.cell import measured
from federated_anon.comparison.outcome import Standings, standings
from federated_anon.comparison.plan import CENTRAL, ORIGINAL, Cell, Sweep, planned
from federated_anon.comparison.store import Store

__all__ = ["CENTRAL", "ORIGINAL", "Cell", "Standings", "Store", "Sweep", "measured", "planned", "standings"]
