"""The cover problem: chunks that leave no room for k people with items of two chunks.

Whoever knows that nobody's set is empty knows that sub-records and terms *cover* all people of a cluster. With ``c``
people, ``r_j`` sub-records in chunk ``j`` and ``t`` terms of support below k, at most ``u = t (k - 1)`` people are
covered by terms alone. Items known of a person lie in up to ``h = min(m, chunks)`` chunks; if k people have all of
them, at most ``k + sum_j r_j - h k`` people are covered by chunks. So an original exists in which k people fit just if

    sum_j r_j + u >= c + k (h - 1).

This is the size condition of Terrovitis et al. (VLDB 2012) with the number of terms taken into account. Barakat et al.
(SECRYPT 2016) named the problem; Awad et al. (arXiv 1904.03112) proposed partial suppression as the cure. Where sets
may be empty, anybody can be without items, and nothing needs to be suppressed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from federated_anon.errors import GuaranteeBroken
from federated_anon.setvalued.chunks import Cluster, Disassociated, chunk_of


def shortage(cluster: Cluster, k: int, m: int) -> int:
    """People by which a cluster misses the condition above; 0 if it holds, or if no combination spans two chunks."""
    spanned = min(m, len(cluster.chunks))
    if spanned < 2:
        return 0
    filled = sum(len(chunk.records) for chunk in cluster.chunks) + len(cluster.terms) * (k - 1)
    return max(cluster.size + k * (spanned - 1) - filled, 0)


def exposed(form: Disassociated) -> list[int]:
    """The clusters in which covering everybody leaves fewer than k people for some combination."""
    return [index for index, cluster in enumerate(form.clusters) if shortage(cluster, form.k, form.m)]


def require_covered(form: Disassociated) -> None:
    """Raise ``GuaranteeBroken`` unless every cluster leaves room for k people with any items of its chunks."""
    if found := exposed(form):
        raise GuaranteeBroken(
            f"cover problem: {len(found)} clusters leave no room for {form.k} people, such as {found[0]}"
        )


def suppressed(form: Disassociated) -> Disassociated:
    """Partial suppression: in exposed clusters, and there alone, the rarest items become terms until all is covered.

    Chunks only lose items, so they stay k^m-anonymous.
    """
    return replace(form, clusters=tuple(_covered(cluster, form.k, form.m) for cluster in form.clusters))


def _covered(cluster: Cluster, k: int, m: int) -> Cluster:
    while shortage(cluster, k, m):
        counts = Counter(item for chunk in cluster.chunks for record in chunk.records for item in record)
        cluster = _without(cluster, min(counts, key=lambda item: (counts[item], item)))
    return cluster


def _without(cluster: Cluster, item: int) -> Cluster:
    """The cluster with one item of a chunk among its terms; a chunk left without items is gone."""
    thinner = [chunk_of(chunk.records, set(chunk.items) - {item}) for chunk in cluster.chunks]
    terms = tuple(sorted((*cluster.terms, item)))
    return Cluster(cluster.size, tuple(chunk for chunk in thinner if chunk.items), terms)
