"""A holder's disclosure policy as data, and the pure check ``require_permitted``. No request can loosen it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, cast

from pydantic import Field

from federated_anon.columns import Column, Role
from federated_anon.errors import Code, PolicyRefused
from federated_anon.methods import METHODS
from federated_anon.sections import Section
from federated_anon.study import Exposure, LabelSettings, Method, ReleaseSettings, Study


class Policy(Section):
    """What a holder accepts; the defaults are strict."""

    smallest_k: int = Field(default=5, ge=2)
    exposures: tuple[Exposure, ...] = ("sealed",)
    methods: tuple[Method, ...] = cast("tuple[Method, ...]", METHODS)
    never_send: tuple[str, ...] = ()
    most_rounds: int = Field(default=20, ge=0)
    minimum_overlap: int = Field(default=0, ge=0)
    one_release_per_data_version: bool = True
    most_studies: int = Field(default=1, ge=1)
    share_labels: Literal["no", "cells", "records"] = "no"
    set_trees: tuple[Literal["local", "joint"], ...] = ("local",)
    own_shuffle: bool = False
    most_epsilon: float | None = Field(default=None, gt=0, le=100)
    most_delta: float = Field(default=0.0, ge=0, lt=0.1)
    tell_rows: bool = False
    share_profile: bool = True
    largest_message: int = Field(default=256 * 2**20, ge=2**10)


def require_permitted(policy: Policy, study: Study, columns: Sequence[Column]) -> None:
    """Raise ``PolicyRefused`` unless the holder may take part; the text lists every breach, the code the first."""
    if breaches := list(_breaches(policy, study, columns)):
        text = "; ".join(message for _, message in breaches)
        raise PolicyRefused(f"the policy forbids this study: {text}", breaches[0][0])


def _breaches(policy: Policy, study: Study, columns: Sequence[Column]) -> Iterator[tuple[Code, str]]:
    if study.privacy.k < policy.smallest_k:
        yield Code.POLICY_K, f"k is {study.privacy.k}, smallest accepted is {policy.smallest_k}"
    if study.exposure not in policy.exposures:
        yield Code.POLICY_EXPOSURE, f"exposure '{study.exposure}', accepted: {', '.join(policy.exposures)}"
    if study.method not in policy.methods:
        yield Code.POLICY_METHOD, f"method '{study.method}', accepted: {', '.join(policy.methods)}"
    if study.rounds > policy.most_rounds:
        yield Code.POLICY_ROUNDS, f"{study.rounds} rounds, at most {policy.most_rounds}"
    if study.labels and study.labels.column in {column.name for column in columns}:
        yield from _label_breaches(policy.share_labels, study.labels)
    if wishes := [c.name for c in columns if c.role is Role.WISH and c.name != study.privacy.personal]:
        yield Code.POLICY_ROLE, f"wishes ({', '.join(wishes)}) that the study's [privacy] personal does not name"
    yield from _noise_breaches(policy, study.release, columns)
    yield from _set_breaches(policy, study, columns)


def _set_breaches(policy: Policy, study: Study, columns: Sequence[Column]) -> Iterator[tuple[Code, str]]:
    """Sets leave only as a study says how, and a joint tree needs this holder's word: it tells who shares an item."""
    count = sum(column.role is Role.SET for column in columns)
    if count and study.kind == "table":
        text = "set-valued columns cannot be released by a table study: drop them or list them in never_send"
        yield Code.POLICY_ROLE, text
    if study.kind == "set-valued" and count != 1:
        yield Code.POLICY_ROLE, f"a set-valued study needs exactly one set-valued column here, there are {count}"
    if study.sets and study.kind == "set-valued" and study.sets.tree not in policy.set_trees:
        yield Code.POLICY_TREE, f"a {study.sets.tree} tree, set_trees accepts: {', '.join(policy.set_trees)}"


def _noise_breaches(policy: Policy, release: ReleaseSettings, columns: Sequence[Column]) -> Iterator[tuple[Code, str]]:
    """With a budget every release has noise, and noise needs a budget and numbers with declared bounds."""
    if (policy.most_epsilon is None) != (release.noise == "none"):
        budget = (
            "there is no budget (most_epsilon)" if policy.most_epsilon is None else "there is a budget (most_epsilon)"
        )
        yield Code.POLICY_NOISE, f"[release] noise is '{release.noise}', and {budget}"
    if release.noise == "none" or policy.most_epsilon is None:
        return
    if release.epsilon > policy.most_epsilon or release.delta > policy.most_delta:
        told = f"epsilon {release.epsilon}, delta {release.delta}; at most {policy.most_epsilon}, {policy.most_delta}"
        yield Code.POLICY_NOISE, told
    if bare := [column.name for column in columns if column.role is Role.QUASI and column.bounds is None]:
        yield Code.POLICY_NOISE, f"noise needs numbers with declared bounds, these have none: {', '.join(bare)}"


def _label_breaches(allowed: str, labels: LabelSettings) -> Iterator[tuple[Code, str]]:
    """The labels may go as far as their owner says, and no farther."""
    if allowed not in (labels.share, "records"):
        told = f"labels of '{labels.column}' shared by {labels.share}, share_labels is '{allowed}'"
        yield Code.POLICY_LABELS, told


def require_columns(policy: Policy, asked: Sequence[str], offered: Sequence[str]) -> None:
    """Raise ``PolicyRefused`` if a request names a column that this holder never sends or does not have."""
    forbidden = [name for name in asked if name in policy.never_send or name not in offered]
    if forbidden:
        raise PolicyRefused(f"columns that may not be sent: {', '.join(forbidden)}", Code.POLICY_COLUMN)


def require_round(policy: Policy, study: Study, number: int) -> None:
    """Raise ``PolicyRefused`` for a round beyond what the study agreed or the policy allows."""
    if not 0 <= number < min(policy.most_rounds, study.rounds):
        raise PolicyRefused(f"round {number} is beyond the limit", Code.POLICY_ROUNDS)
