"""Forms of several parties: what each sends, and how they become one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from federated_anon.errors import MessageRefused
from federated_anon.setvalued.chunks import Chunk, Cluster, Disassociated
from federated_anon.setvalued.transactions import in_order


def branch_statement(study: str, holder: str, number: int, branches: bytes) -> bytes:
    """What a holder signs about its splits of one round."""
    digest = hashlib.sha256(branches).hexdigest()
    return "\x1f".join(("federated-anon branches 1", study, holder, str(number), digest)).encode()


def empty_form(k: int, m: int) -> Disassociated:
    """What leaves a holder with fewer than k people: nothing of them."""
    return Disassociated(k, m, (), ())


def without_unused(form: Disassociated) -> Disassociated:
    """The form under the names of its own items only: others are of people who take no part."""
    used = {item for cluster in form.clusters for domain in domains(cluster) for item in domain}
    kept = sorted(used)
    place = {item: number for number, item in enumerate(kept)}
    clusters = tuple(recoded(cluster, place) for cluster in form.clusters)
    return replace(form, clusters=clusters, names=tuple(form.names[item] for item in kept))


def domains(cluster: Cluster) -> list[tuple[int, ...]]:
    """The items of a cluster: its terms, and those of each chunk."""
    return [cluster.terms, *(chunk.items for chunk in cluster.chunks)]


def recoded(cluster: Cluster, place: Mapping[int, int]) -> Cluster:
    """A cluster under other codes, everything in the order that the codes give it."""
    chunks = [
        Chunk(
            tuple(sorted(place[item] for item in chunk.items)),
            tuple(sorted(tuple(sorted(place[item] for item in record)) for record in chunk.records)),
        )
        for chunk in cluster.chunks
    ]
    return Cluster(cluster.size, tuple(chunks), tuple(sorted(place[item] for item in cluster.terms)))


def side_by_side(forms: Sequence[Disassociated]) -> Disassociated:
    """Clusters of other people, under common names and in the order of their content, which does not tell whose."""
    names = in_order({name for form in forms for name in form.names})
    code = {name: number for number, name in enumerate(names)}
    clusters = [
        recoded(cluster, {item: code[name] for item, name in enumerate(form.names)})
        for form in forms
        for cluster in form.clusters
    ]
    ordered = sorted(clusters, key=lambda one: (one.size, one.terms, [(c.items, c.records) for c in one.chunks]))
    return Disassociated(forms[0].k, forms[0].m, tuple(ordered), names)


def chunk_by_chunk(forms: Mapping[str, Disassociated]) -> Disassociated:
    """Clusters of the same people: each has the chunks and terms of all holders.

    An item that several holders bring under one name is one item each: it is published as ``holder:name``.
    """
    sizes = {tuple(cluster.size for cluster in form.clusters) for form in forms.values()}
    if len(sizes) != 1:
        raise MessageRefused("the holders' clusters are not of the same people")
    shared = Counter(name for form in forms.values() for name in form.names)
    told = {
        holder: [f"{holder}:{name}" if shared[name] > 1 else name for name in form.names]
        for holder, form in forms.items()
    }
    names = in_order({name for own in told.values() for name in own})
    if len(names) < sum(map(len, told.values())):
        raise MessageRefused("items of two holders cannot be told apart by their names")
    code = {name: number for number, name in enumerate(names)}
    parts = [
        [recoded(cluster, {item: code[name] for item, name in enumerate(told[holder])}) for cluster in form.clusters]
        for holder, form in forms.items()
    ]
    clusters = tuple(_together(same) for same in zip(*parts, strict=True))
    first = next(iter(forms.values()))
    return Disassociated(first.k, first.m, clusters, names)


def _together(parts: Sequence[Cluster]) -> Cluster:
    chunks = tuple(chunk for part in parts for chunk in part.chunks)
    return Cluster(parts[0].size, chunks, tuple(sorted(item for part in parts for item in part.terms)))
