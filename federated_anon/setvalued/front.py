"""The one guarded way from transactions to their disassociated form."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from federated_anon.errors import GuaranteeBroken, SettingsRefused
from federated_anon.seeds import stream
from federated_anon.setvalued import ants, flow
from federated_anon.setvalued.chunks import Disassociated, disassociated
from federated_anon.setvalued.partition import Rows, as_rows, even_parts, horizontal, joined
from federated_anon.setvalued.rules import Holdings, Rule, coded
from federated_anon.setvalued.safety import require_covered, suppressed
from federated_anon.setvalued.transactions import Transactions
from federated_anon.setvalued.verifier import require_disassociated

Method = Literal["ants", "flow"]
METHODS = ("ants", "flow")


def disassociate(
    transactions: Transactions,
    k: int,
    m: int,
    delta: int,
    min_size: int | None = None,
    rules: Sequence[Collection[object]] = (),
    beta: float = 0.6,
    method: Method = "ants",
    seed: int = 0,
    suppress: bool = False,
) -> Disassociated:
    """Disassociate transactions: any ``m`` items that somebody knows of a person fit at least ``k`` people.

    Clusters have ``min_size`` (default: half of ``delta``, at least k) to ``delta`` people. Records that contain one of
    the ``rules`` are gathered first, so that ``beta`` of each rule's support stays together. ``suppress`` turns items
    into terms where a cluster is open to the cover problem. The result is checked by the independent verifier: what
    breaks its promise raises ``GuaranteeBroken``.
    """
    least = max(k, delta // 2) if min_size is None else min_size
    require_settings(k, m, delta, least, beta, method)
    known = coded(rules, transactions.names)
    if len(transactions) < k:
        raise GuaranteeBroken(f"k = {k} people are needed, the data has {len(transactions)}")
    people = in_content_order(transactions)
    form = disassociated(people, clustered(people, k, delta, least, known, beta, method, seed), k, m, known)
    form = suppressed(form) if suppress else form
    require_disassociated(form)
    if suppress:
        require_covered(form)
    return form


def in_content_order(transactions: Transactions) -> Transactions:
    """The records by their content, so that nothing downstream depends on the order in which people came."""
    records = list(transactions)
    return transactions.select(sorted(range(len(records)), key=records.__getitem__))


def require_settings(k: int, m: int, delta: int, min_size: int, beta: float = 0.6, method: str = "ants") -> None:
    """Raise ``SettingsRefused`` with every fault of the settings."""
    faults = []
    if k < 2:
        faults.append(f"k must be at least 2, got {k}")
    if m < 1:
        faults.append(f"m must be at least 1, got {m}")
    if delta < k:
        faults.append(f"delta must be at least k = {k}, since no cluster may have fewer people; got {delta}")
    elif not k <= min_size <= delta:
        faults.append(f"min_size must be from k = {k} to delta = {delta}, got {min_size}")
    if not 0 <= beta <= 1:
        faults.append(f"beta must be from 0 to 1, got {beta}")
    if method not in METHODS:
        faults.append(f"method must be {' or '.join(METHODS)}, got '{method}'")
    if faults:
        raise SettingsRefused("disassociation", faults)


def clustered(
    transactions: Transactions,
    k: int,
    delta: int,
    min_size: int,
    rules: Sequence[Rule] = (),
    beta: float = 0.6,
    method: Method = "ants",
    seed: int = 0,
) -> list[Rows]:
    """Clusters of all records: those of the rules first, then the others by their frequent items.

    Records of a rule's cluster below k join the others; if the others are fewer than k, they join the last cluster.
    """
    if not rules:
        return horizontal(transactions, delta, min_size)
    holdings = Holdings.of(transactions, rules, beta, k)
    gathered = gathered_rows(holdings, k, method, seed)
    whole = [cluster for cluster in gathered if len(cluster) >= k]
    inside = {row for cluster in whole for row in cluster}
    others = [row for row in range(len(transactions)) if row not in inside]
    parts = [part for cluster in whole for part in rule_parts(transactions, cluster, delta)]
    rest = [rows.tolist() for rows in horizontal(transactions, delta, min_size, others)]
    return as_rows(joined([*parts, *rest], k, delta))


def gathered_rows(holdings: Holdings, k: int, method: Method, seed: int) -> list[list[int]]:
    """The records of each rule's cluster, by ants or by flow."""
    if method == "flow":
        return flow.gather(holdings)
    return ants.gather(holdings, k, stream(seed, "setvalued", "ants"))


def rule_parts(transactions: Transactions, cluster: list[int], delta: int) -> list[list[int]]:
    """A rule's cluster in even parts of at most ``delta``, records that begin alike side by side."""
    return even_parts(sorted(cluster, key=lambda row: (transactions.record(row), row)), delta)
