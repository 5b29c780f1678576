"""The disassociated form as JSON: deterministic bytes, one cluster per line; docs/setvalued.md describes it."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from federated_anon.errors import DataRefused
from federated_anon.setvalued.chunks import Chunk, Cluster, Disassociated

FORMAT = "federated-anon/disassociated"
VERSION = 1

Code = Annotated[int, Field(ge=0, lt=2**31)]
Positive = Annotated[int, Field(ge=1, lt=2**31)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ChunkFile(_Strict):
    """A chunk: its items, and each kind of sub-record with the number of people who have it."""

    items: list[Code]
    records: list[list[Code]]
    counts: list[Positive]


class ClusterFile(_Strict):
    """A cluster: people, record chunks, terms."""

    size: Positive
    chunks: list[ChunkFile]
    terms: list[Code]


class FormFile(_Strict):
    """The whole file."""

    format: Literal["federated-anon/disassociated"]
    version: Literal[1]
    k: Positive
    m: Positive
    items: list[str]
    clusters: list[ClusterFile]


def to_json(form: Disassociated) -> bytes:
    """The file of a disassociated form."""
    head = {"format": FORMAT, "version": VERSION, "k": form.k, "m": form.m, "items": list(form.names)}
    opening = json.dumps(head, ensure_ascii=False)[:-1]
    lines = ",\n".join(json.dumps(_cluster(cluster), separators=(",", ":")) for cluster in form.clusters)
    return f'{opening}, "clusters": [\n{lines}\n]}}\n'.encode()


def from_json(content: bytes) -> Disassociated:
    """A disassociated form from its file; ``DataRefused`` if the file does not follow the schema.

    What the form promises is not checked here: see ``require_disassociated``.
    """
    try:
        told = FormFile.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise DataRefused(f"not a disassociated form: {first['msg']} ({where or 'whole file'})") from None
    if any(len(chunk.records) != len(chunk.counts) for cluster in told.clusters for chunk in cluster.chunks):
        raise DataRefused("not a disassociated form: a chunk needs one count for each kind of sub-record")
    if any(sum(chunk.counts) > cluster.size for cluster in told.clusters for chunk in cluster.chunks):
        raise DataRefused("not a disassociated form: a chunk has more sub-records than its cluster has people")
    return Disassociated(told.k, told.m, tuple(map(_read, told.clusters)), tuple(told.items))


def _cluster(cluster: Cluster) -> dict[str, object]:
    chunks = []
    for chunk in cluster.chunks:
        kinds = [(record, sum(1 for _ in same)) for record, same in groupby(chunk.records)]
        records, counts = [record for record, _ in kinds], [count for _, count in kinds]
        chunks.append({"items": chunk.items, "records": records, "counts": counts})
    return {"size": cluster.size, "chunks": chunks, "terms": cluster.terms}


def _read(told: ClusterFile) -> Cluster:
    chunks = tuple(
        Chunk(
            tuple(chunk.items),
            tuple(tuple(r) for r, count in zip(chunk.records, chunk.counts, strict=True) for _ in range(count)),
        )
        for chunk in told.chunks
    )
    return Cluster(told.size, chunks, tuple(told.terms))
