"""The study file (TOML): what all parties agree on. Where each holder runs is beside it, not part of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from federated_anon.addresses import Address
from federated_anon.errors import SettingsRefused
from federated_anon.methods import ALIASES, PRESETS, MethodName, Preset, resolved
from federated_anon.sections import Section, checked, read_toml

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Method = Annotated[MethodName, BeforeValidator(resolved)]
Model = Literal["som", "kmeans", "gmm"]
Exposure = Literal["open", "sealed"]


class Privacy(Section):
    """What every group of the release must keep; ``personal`` names a column of wishes for a k of one's own."""

    k: int = Field(ge=2)
    l: int | None = Field(default=None, ge=2)  # noqa: E741  (the literature's own name)
    diversity: Literal["distinct", "entropy"] = "distinct"
    t: float | None = Field(default=None, gt=0, le=1)
    personal: str | None = Field(default=None, min_length=1)


class MapSettings(Section):
    """The common grid of the local maps; without rows and cols it has about ``scale`` sqrt(N) units.

    ``model`` is what holders train on it, ``models`` what single holders train instead;
    ``bandwidth`` is the rule of the densities that stand in place of maps in ``kde``.
    """

    rows: int | None = Field(default=None, ge=1, le=512)
    cols: int | None = Field(default=None, ge=1, le=512)
    scale: float = Field(default=5.0, gt=0, le=50)
    passes: int = Field(default=12, ge=1, le=200)
    bandwidth: Literal["silverman", "scott", "isj"] = "isj"
    model: Model = "som"
    models: Mapping[Name, Model] = {}

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.rows is None) != (self.cols is None):
            raise ValueError("rows and cols are given together or not at all")
        return self


class Collaboration(Section):
    """How strongly holders shape each other's maps and codes.

    ``rounds`` of gated agreement (default: the method's), the largest link ``strength``, how maps are aligned,
    and whether partners' units serve as side information. In sealed exposure, ``winner``: whether the coordinator
    sees the gains by which it names who splits a group, or only who wins.
    """

    rounds: int | None = Field(default=None, ge=0, le=50)
    strength: float = Field(default=1.0, gt=0, le=10)
    radius: float = Field(default=0.7, gt=0, le=50)
    align: Literal["lead", "match", "none"] | None = None
    side_information: bool | None = None
    cells: bool | None = None
    winner: Literal["gain", "secure"] = "gain"


class LabelSettings(Section):
    """Which column holds the labels of the ``++`` methods, and how far they go.

    ``cells``: each record has the most frequent label of its unit at the labels' owner, at least k records;
    ``records``: its own label. The owner's policy must allow it; coordinator and partners see what is shared.
    """

    column: str = Field(min_length=1)
    share: Literal["cells", "records"] = "cells"


class Alignment(Section):
    """How records are aligned, and the fewest people all holders must have in common.

    ``hmac``: pseudonyms under a key of the holders, fast; ``ecdh``: points that every holder blinds, so that not even
    a holder together with the coordinator can try out ids.
    """

    method: Literal["hmac", "ecdh"] = "hmac"
    minimum_overlap: int = Field(default=0, ge=0)


class Evaluation(Section):
    """What the report tells of the loss: every column's, or one total of which no holder's part is known."""

    losses: Literal["columns", "total"] = "columns"


class ReleaseSettings(Section):
    """Noise on numeric representatives: each holder spends ``epsilon``, and with Gaussian noise ``delta``."""

    noise: Literal["none", "laplace", "gaussian"] = "none"
    epsilon: float = Field(default=0.0, ge=0, le=100)
    delta: float = Field(default=0.0, ge=0, lt=0.1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.noise == "none") != (self.epsilon == 0) or 0 < self.epsilon < 1e-4:
            raise ValueError("noise 'laplace' or 'gaussian' and an epsilon of at least 0.0001 go together")
        if (self.noise == "gaussian") != (self.delta > 0) or 0 < self.delta < 1e-15:
            raise ValueError("noise 'gaussian' and a delta of at least 1e-15 go together")
        return self


class SetSettings(Section):
    """How sets are disassociated: any ``m`` items known of a person fit at least k people.

    Clusters have ``min_size`` (half of ``delta``, at least k) to ``delta`` people. In a set-valued study holders have
    other ``people`` or other ``items`` of the same people; a ``joint`` tree tells all holders who share items.
    """

    m: int = Field(default=2, ge=1, le=8)
    delta: int = Field(default=40, ge=2, le=10**6)
    min_size: int | None = Field(default=None, ge=2)
    split: Literal["people", "items"] = "people"
    tree: Literal["local", "joint"] = "local"

    def least(self, k: int) -> int:
        """People in a cluster, at least."""
        return max(k, self.delta // 2) if self.min_size is None else self.min_size

    def faults(self, k: int) -> list[str]:
        """All that does not go together."""
        faults = [f"delta must be at least k = {k}, got {self.delta}"] if self.delta < k else []
        if self.min_size is not None and not k <= self.min_size <= max(k, self.delta):
            faults.append(f"min_size must be from k = {k} to delta = {self.delta}, got {self.min_size}")
        if self.split == "items" and self.tree == "local":
            faults.append(
                "split 'items' needs tree 'joint': chunks of a cluster must be about the same people. Holders that do "
                "not allow it can each publish their own items, unlinked (federated-anon disassociate)"
            )
        if self.split == "people" and self.tree == "joint":
            faults.append("split 'people' needs no joint tree: each holder disassociates its own people")
        return faults


class SealedSettings(Section):
    """How holders find splits in sealed exposure: along directions of their records, or by super-clusters of a map."""

    proposer: Literal["directions", "map"] = "directions"


class Study(Section):
    """One run's definition, agreed by all parties; ``digest`` names it in every message."""

    name: Name
    holders: tuple[Name, ...] = Field(min_length=1, max_length=64)
    method: Method = "best"
    exposure: Exposure = "sealed"
    seed: int = Field(default=0, ge=0, lt=2**63)
    privacy: Privacy
    map: MapSettings = MapSettings()
    collaboration: Collaboration = Collaboration()
    alignment: Alignment = Alignment()
    evaluation: Evaluation = Evaluation()
    release: ReleaseSettings = ReleaseSettings()
    sealed: SealedSettings = SealedSettings()
    labels: LabelSettings | None = None
    kind: Literal["table", "set-valued"] = "table"
    sets: SetSettings | None = None

    @model_validator(mode="after")
    def _sets_fit(self) -> Self:
        faults = self.sets.faults(self.privacy.k) if self.sets else []
        if self.kind == "set-valued" and self.sets is None:
            faults.append("a set-valued study says how: m, delta, split, tree")
        if self.kind == "set-valued" and (self.privacy.l is not None or self.privacy.t is not None):
            faults.append("l and t are about sensitive columns of a table; a set-valued study promises k and m")
        if self.kind == "set-valued" and self.privacy.personal:
            faults.append("personal k is about groups of a table")
        if self.sets and self.kind == "table":
            faults.append('belongs to a study of kind = "set-valued"; a table study releases no sets')
        if faults:
            raise ValueError("[sets] " + "; ".join(faults))
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.holders)) != len(self.holders):
            raise ValueError("holders: every name may stand there once only")
        if self.exposure == "sealed" and self.method != "best":
            raise ValueError(f"method '{self.method}' shows activations of records, so it needs exposure 'open'")
        if self.collaboration.winner == "secure" and not (self.exposure == "sealed" and 2 <= len(self.holders) <= 16):
            raise ValueError("collaboration: winner 'secure' needs exposure 'sealed' and 2 to 16 holders")
        if self.alignment.method == "ecdh" and len(self.holders) < 2:
            raise ValueError("alignment: 'ecdh' needs at least 2 holders")
        if self.evaluation.losses == "total" and len(self.holders) < 3:
            raise ValueError("evaluation: with fewer than 3 holders a total tells each the other's loss")
        if self.preset.labels and self.labels is None:
            raise ValueError(f"method '{self.method}' learns from labels: name their column, [labels] column")
        if self.preset.density and (self.rounds or self.align != "none"):
            raise ValueError(f"method '{self.method}' has no maps: [collaboration] rounds and align do not apply")
        if strangers := sorted(set(self.map.models) - set(self.holders)):
            raise ValueError(f"map.models names unknown holders: {', '.join(strangers)}")
        if self.labels is not None and not self.preset.labels:
            raise ValueError(f"method '{self.method}' uses no labels: drop [labels], or take a method with '++'")
        return self

    @property
    def preset(self) -> Preset:
        """The strategies behind the method's name."""
        return PRESETS[self.method]

    def model_of(self, holder: str) -> str:
        """The local model that a holder trains."""
        return self.map.models.get(holder, self.map.model)

    @property
    def rounds(self) -> int:
        """Rounds of gated agreement: the study's own number, or the method's."""
        chosen = self.collaboration.rounds
        return self.preset.rounds if chosen is None else chosen

    @property
    def align(self) -> str:
        """How maps are aligned: as the study says, or as the method does."""
        return self.collaboration.align or self.preset.align

    @property
    def uses_side_information(self) -> bool:
        """Whether partners' units improve each other's codes."""
        chosen = self.collaboration.side_information
        return self.preset.side_information if chosen is None else chosen

    @property
    def uses_cells(self) -> bool:
        """Whether units are split into cells of k to 2k-1 records before they leave."""
        chosen = self.collaboration.cells
        return self.preset.cells if chosen is None else chosen

    @property
    def text(self) -> str:
        """The study as canonical JSON: the bytes that all parties digest."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """SHA-256 of ``text``."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def to_toml(self) -> str:
        """The study as resolved, with every default written out."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    @classmethod
    def from_text(cls, text: str) -> Study:
        """The study behind ``text``; raises ``SettingsRefused``."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise SettingsRefused("study", ["is not JSON"]) from None
        if not isinstance(content, dict):
            raise SettingsRefused("study", ["is not an object"])
        return checked(cls, content, "study")


class Place(Section):
    """Where a holder is: its settings file, and on a cluster the Ray resource of its node; or its service's address."""

    settings: str = ""
    resource: str | None = None
    address: Address | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.settings) == (self.address is not None):
            raise ValueError("exactly one of 'settings' (a file) and 'address' (host:port of its service) is needed")
        if self.address is not None and self.resource is not None:
            raise ValueError("'resource' is of a Ray cluster; a service at an 'address' has none")
        return self


class StudyFile(Study):
    """A study file as written: the study and, in ``[deployment]``, where each holder runs."""

    deployment: Mapping[str, Place] = {}
    _asked: str = PrivateAttr(default="")

    @property
    def alias(self) -> str:
        """The name that the file gives the method, where it is another than the method's own; else empty."""
        return self._asked if self._asked in ALIASES else ""

    @model_validator(mode="after")
    def _known_holders(self) -> Self:
        if strangers := sorted(set(self.deployment) - set(self.holders)):
            raise ValueError(f"deployment names unknown holders: {', '.join(strangers)}")
        if self.addresses and len(self.addresses) < len(self.deployment):
            raise ValueError("deployment: either every holder has an 'address', or every one has 'settings'")
        return self

    @property
    def addresses(self) -> dict[str, str]:
        """Where holders serve that run in organisations of their own; empty if settings files are named instead."""
        return {name: place.address for name, place in self.deployment.items() if place.address}

    @property
    def study(self) -> Study:
        """The agreed part alone."""
        return Study.from_text(json.dumps(self.model_dump(mode="json", exclude={"deployment"})))


def load_study(path: Path | str) -> StudyFile:
    """Read and check a study file; all faults come in one ``SettingsRefused``."""
    return study_file(read_toml(Path(path)), str(path))


def study_file(content: dict[str, Any], where: str) -> StudyFile:
    """The study file with this content; it remembers which name its method was given."""
    made = checked(StudyFile, content, where)
    made._asked = content.get("method", "")
    return made
