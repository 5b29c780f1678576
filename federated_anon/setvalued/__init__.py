"""Set-valued data (places, purchases, diagnoses): k^m-anonymity by disassociation, and re-association for analysis."""

from __future__ import annotations

from federated_anon.setvalued.chunks import Chunk, Cluster, Disassociated, disassociated, vertical
from federated_anon.setvalued.front import disassociate
from federated_anon.setvalued.partition import horizontal
from federated_anon.setvalued.reassociation import reassociate
from federated_anon.setvalued.safety import exposed, require_covered, suppressed
from federated_anon.setvalued.schema import from_json, to_json
from federated_anon.setvalued.transactions import Transactions
from federated_anon.setvalued.verifier import require_disassociated, require_km

__all__ = [
    "Chunk",
    "Cluster",
    "Disassociated",
    "Transactions",
    "disassociate",
    "disassociated",
    "exposed",
    "from_json",
    "horizontal",
    "reassociate",
    "require_covered",
    "require_disassociated",
    "require_km",
    "suppressed",
    "to_json",
    "vertical",
]
