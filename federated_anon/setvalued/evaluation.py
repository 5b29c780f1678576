"""A finished run on sets against its original: what was lost, and what somebody with m items of a person can do.

All of it is measured against the original, so it is for the owner of the data. The tree edit distance must not be
published at all: it stands apart, under ``private``.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from federated_anon.errors import VerificationFailed
from federated_anon.seeds import stream
from federated_anon.setvalued.chunks import Disassociated
from federated_anon.setvalued.measures import (
    associations,
    items_kept,
    private_tree_edit_distance,
    rank_preservation,
    reidentification,
    relative_association_error,
    supports,
    top_pairs,
)
from federated_anon.setvalued.reassociation import reassociate
from federated_anon.setvalued.schema import from_json
from federated_anon.setvalued.transactions import Transactions

FORM = "disassociated.json"
TOP = 17
"""Most frequent pairs that are followed, as many as in Table 5 of Awad et al. (2020)."""
MOST_ALIGNED = 5_000_000_000
"""Pairs of records up to which the tree edit distance is computed: about half a minute of one core."""


def is_set_folder(folder: Path) -> bool:
    """Whether a run folder holds disassociated sets."""
    return (folder / FORM).is_file()


def evaluate_sets(original: Transactions, folder: Path, seed: int = 0) -> dict[str, Any]:
    """All measures of a run on sets, as plain data; one re-association is drawn by ``seed``."""
    try:
        form = from_json((folder / FORM).read_bytes())
    except OSError as error:
        raise VerificationFailed(f"'{folder / FORM}' cannot be read: {error.strerror}") from None
    drawn = reassociate(form, seed)
    top = top_pairs(original, TOP)
    found = associations(original, form, top)
    return {
        "kind": "set-valued",
        "people": form.people,
        "items_kept_percent": 100.0 * items_kept(original, form),
        "alpha_visible": _mean([one.alpha_visible for one in found]),
        "alpha_expected": _mean([one.alpha_expected for one in found]),
        "relative_association_error": {
            "visible": relative_association_error(dict(top), {one.items: one.visible for one in found}),
            "expected": relative_association_error(dict(top), {one.items: one.expected for one in found}),
            "reassociated": relative_association_error(dict(top), dict(supports(drawn, top))),
        },
        "pairs": asdict(rank_preservation(original, drawn, top, top_pairs(drawn, TOP))),
        "reidentification": _attacks(original, drawn, form, seed),
        "private": {
            "tree_edit_distance": _distance(original, drawn),
            "note": "never publish it: with all records but one, it gives the last one away",
        },
    }


def told(found: dict[str, Any]) -> dict[str, str]:
    """The main figures in words."""
    error, attack, pairs = found["relative_association_error"], found["reidentification"], found["pairs"]
    distance = found["private"]["tree_edit_distance"]
    kept = f"{found['alpha_visible']:.3f} visible, {found['alpha_expected']:.3f} expected"
    return {
        "people": str(found["people"]),
        "items kept": f"{found['items_kept_percent']:.1f} %",
        f"support kept, {TOP} top pairs": kept,
        "relative association error": f"{error['expected']:.3f} expected, {error['reassociated']:.3f} as drawn",
        **{f"pairs: {name.replace('_', ' ')}": _short(value) for name, value in pairs.items()},
        **{
            f"attack on the {name}: {key.replace('_', ' ')}": _short(value)
            for name, one in attack.items()
            for key, value in one.items()
        },
        "tree edit distance (private)": "not computed: too many records" if distance is None else str(distance),
    }


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return f"{100 * value['value']:.1f} % ({100 * value['low']:.1f} to {100 * value['high']:.1f})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 1.0


def _attacks(original: Transactions, drawn: Transactions, form: Disassociated, seed: int) -> dict[str, Any]:
    """The attack by m known items on the original, and on what is published."""
    tables = {"original": original, "reassociated": drawn}
    return {
        name: asdict(reidentification(original, table, form.m, form.k, stream(seed, "evaluate", "attack")))
        for name, table in tables.items()
    }


def _distance(original: Transactions, drawn: Transactions) -> int | None:
    """None where it would take too long."""
    if len(original) * len(drawn) > MOST_ALIGNED:
        return None
    return private_tree_edit_distance(original, drawn)
