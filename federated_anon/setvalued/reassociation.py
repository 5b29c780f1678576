"""Re-association: a data set of the original's form, drawn from those that the disassociated form allows.

Awad et al., "Publishing anonymized set-valued data via disassociation towards analysis", Future Internet 12(4), 2020.
The printed wheel without replacement is a uniform random placement of sub-records on the people of a cluster; its
integers 1..100 would leave some sub-records unreachable, so the placement is drawn directly. Terms are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import numpy as np

from federated_anon.seeds import stream
from federated_anon.setvalued.chunks import Chunk, Cluster, Disassociated
from federated_anon.setvalued.partition import Record
from federated_anon.setvalued.transactions import Transactions

Mode = Literal["random", "strict"]


def reassociate(form: Disassociated, seed: int = 0, mode: Mode = "random") -> Transactions:
    """A neighbour data set; people left without items are dropped. Every occurrence in a record chunk is kept.

    ``random``: the sub-records of each chunk fall on people of their cluster uniformly. At most as many records as
    people; expected supports are those of the disassociated form. The table is *not* itself k^m-anonymous: what falls
    together by chance may occur fewer than k times (but then it is chance, and not a person).

    ``strict``: only whole classes of at least k equal records are put together, so that the table is k^m-anonymous
    within each cluster, hence as a whole. What finds no partner stands alone: there may be more records than people.
    """
    return Transactions.of_codes((record for part in parts(form, seed, mode) for record in part), form.names)


def parts(form: Disassociated, seed: int, mode: Mode) -> Iterator[list[Record]]:
    """The records of ``reassociate``, cluster by cluster."""
    rng = stream(seed, "setvalued", "reassociate", mode)
    draw = drawn_strictly if mode == "strict" else drawn
    for cluster in form.clusters:
        yield [record for record in draw(cluster, form.k, rng) if record]


def drawn(cluster: Cluster, k: int, rng: np.random.Generator) -> Iterator[Record]:
    """One record per person: the first chunk fills the first places, each later one a uniform sample of places."""
    places: list[Record] = [()] * cluster.size
    for index, chunk in enumerate(cluster.chunks):
        count = len(chunk.records)
        where = range(count) if not index else rng.permutation(cluster.size)[:count].tolist()
        for place, record in zip(where, chunk.records, strict=True):
            places[place] += record
    return iter(places)


def drawn_strictly(cluster: Cluster, k: int, rng: np.random.Generator) -> Iterator[Record]:
    """Records in classes: any combination across chunks that occurs is in a class of at least ``k``."""
    classes: Counter[Record] = Counter({(): cluster.size})
    for chunk in cluster.chunks:
        classes = merged(classes, chunk, k, rng)
    return classes.elements()


def merged(classes: Counter[Record], chunk: Chunk, k: int, rng: np.random.Generator) -> Counter[Record]:
    """Classes with the sub-records of one more chunk.

    How many of a class meet a kind of sub-record is drawn as in the random placement (multivariate hypergeometric);
    a number between 0 and k becomes k with probability number / k and else 0, which keeps its mean.
    """
    left, grown = classes.copy(), Counter[Record]()
    kinds = list(Counter(chunk.records).items())
    for index in rng.permutation(len(kinds)).tolist():
        record, alone = kinds[index]
        holders = [held for held in left if left[held]]
        met = rng.multivariate_hypergeometric([left[held] for held in holders], min(alone, sum(left.values())))
        for held, count in zip(holders, met.tolist(), strict=True):
            together = rounded(count, k, min(left[held], alone), rng) if held else 0
            grown[held + record] += together
            left[held] -= together
            alone -= together
        grown[record] += alone
        left[()] = max(left[()] - alone, 0)
    grown.update(left)
    return +grown


def rounded(count: int, k: int, most: int, rng: np.random.Generator) -> int:
    """``count``, or 0 or ``k`` in its place where it lies between them; never more than ``most``, unless 0."""
    if 0 < count < k:
        count = k if rng.random() * k < count else 0
    return count if count <= most else (most if most >= k else 0)
