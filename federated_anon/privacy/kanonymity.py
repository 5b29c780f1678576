"""k-anonymity: every combination of quasi-identifiers that occurs, occurs at least k times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from federated_anon.arrays import Labels
from federated_anon.errors import DataRefused, GuaranteeBroken
from federated_anon.tally import plain


def equivalence_classes(table: pa.Table, quasi: Sequence[str]) -> Labels:
    """(n,): the class of each record, records of one class being alike in every named column.

    Missing is a value like any other: two missing values are alike, a missing and a present one are not.
    Classes are counted from 0 in order of first appearance. Without columns, all records are one class.
    Samarati & Sweeney (1998), SRI-CSL-98-04.
    """
    if unknown := [name for name in quasi if name not in table.column_names]:
        raise DataRefused(f"no column {', '.join(map(repr, unknown))}; known: {', '.join(table.column_names)}")
    return joint_labels([_codes(table.column(name), name) for name in quasi], len(table))


def joint_labels(codes: Sequence[Labels], records: int) -> Labels:
    """(n,): one label per combination of codes, dense, counted from 0 in order of first appearance.

    Labels are made dense again after every column, so that products stay below ``records`` squared: no
    number of columns overflows.
    """
    labels: Labels = np.zeros(records, dtype=np.int64)
    for code in codes:
        if len(code) != records:
            raise DataRefused(f"columns of {records} records are needed, got one of {len(code)}")
        dense = _dense(pa.array(np.asarray(code)))
        labels = _dense(pa.array(labels * (int(dense.max(initial=0)) + 1) + dense))
    return labels


def smallest_class(labels: Labels) -> int:
    """Records in the smallest class; 0 for a table without records."""
    _, counts = np.unique(labels, return_counts=True)
    return int(counts.min(initial=len(labels)))


def require_k(labels: Labels, k: int) -> None:
    """Raise ``GuaranteeBroken`` unless there are records and every class holds at least ``k`` of them."""
    if (smallest := smallest_class(labels)) < k:
        raise GuaranteeBroken(f"k-anonymity: every group needs {k} records, the smallest has {smallest}")


def _codes(column: pa.ChunkedArray, name: str) -> Labels:
    """One column as dense codes, missing included."""
    if pt.is_nested(column.type):
        raise DataRefused(f"column '{name}' holds {column.type}: nested values are not quasi-identifiers")
    return _dense(plain(column))


def _dense(values: pa.Array) -> Labels:
    """Codes from 0 in order of first appearance."""
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
