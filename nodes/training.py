"""What a holder computes on its block: its map, candidates of a collaboration, its code and the code's correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.cells import make_cells
from federated_anon.errors import MessageRefused
from federated_anon.kde import recoded
from federated_anon.messages.codec import decode_payload
from federated_anon.messages.payloads import Coded, Collaborate, Corrected, TrainMap
from federated_anon.microaggregation import JointCells, merge_small_units
from federated_anon.microaggregation.units import dissolve
from federated_anon.models import LocalModel, Prototypes, fitted
from federated_anon.seeds import stream, stream_seed
from federated_anon.side import Code, correct, encode_block
from federated_anon.side.code import features_before, features_beside, plain_code, rebuild_codes
from federated_anon.side.features import SideFeatures
from federated_anon.som import (
    Grid,
    collaborative_update,
    davies_bouldin,
    lead_codebook,
)
from federated_anon.study import Study
from nodes.veil import gives_away

LEAD_RADIUS = 1.5
MOST_UNITS = 512 * 512


@dataclass(frozen=True, slots=True)
class LocalMap:
    """A trained model on the grid, the unit of each record (none below k), and how good it is.

    ``spread`` is the sum of squared distances of the records to their prototypes.
    """

    grid: Grid
    model: LocalModel
    units: Labels
    davies_bouldin: float
    spread: float

    @property
    def codebook(self) -> Codebook:
        """The prototypes of all units."""
        return self.model.codebook


@dataclass(frozen=True, slots=True)
class LocalCode:
    """The holder's code as it left, and the features whose coefficients left with it."""

    code: Code
    features: tuple[SideFeatures, ...] = ()

    @property
    def payload(self) -> Coded:
        """The code as a message."""
        code = self.code
        return Coded(code.cells.astype(np.int32), code.prototypes, code.coefficients, code.strength)


def trained(points: Points, request: TrainMap, study: Study, holder: str) -> LocalMap:
    """The local map on the study's grid, started from the lead's activations if there are any."""
    if not (0 < request.rows <= 512 and 0 < request.cols <= 512):
        raise MessageRefused("a grid has 1 to 512 rows and columns")
    grid = Grid(request.rows, request.cols)
    if study.preset.density:
        return _density_cells(points, grid, study, holder)
    lead = None
    if len(request.lead):
        _require_units(request.lead, grid, len(points))
        lead = lead_codebook(points, request.lead, grid), LEAD_RADIUS
    rng = stream(study.seed, "map", holder)
    found = fitted(study.model_of(holder), points, grid, study.map.passes, rng, lead)
    return _judged(points, grid, found, study.privacy.k)


def candidate(points: Points, current: LocalMap, request: Collaborate, study: Study) -> LocalMap:
    """The map that the partners' activations would make of the current one."""
    strengths = [float(min(link, study.collaboration.strength)) for link in request.strengths]
    if len(request.units) != len(strengths) or not all(link >= 0 for link in strengths):
        raise MessageRefused("every partner has one strength, and none is negative")
    for units in request.units:
        _require_units(units, current.grid, len(points))
    codebook = collaborative_update(
        points,
        current.units,
        list(request.units),
        strengths,
        current.grid,
        study.collaboration.radius,
        current.codebook,
    )
    return _judged(points, current.grid, current.model.moved(codebook), study.privacy.k)


def renumbered(current: LocalMap, order: Labels) -> LocalMap:
    """The same map under other unit numbers: unit u becomes ``order[u]``."""
    if not np.array_equal(np.sort(order), np.arange(current.grid.units)):
        raise MessageRefused("the order is not a permutation of the units")
    return replace(current, model=current.model.renumbered(order), units=order[current.units])


def coded(points: Points, current: LocalMap, partners: Sequence[Code], study: Study, holder: str) -> LocalCode:
    """The block's code: cells of at least k records, on what the partners' codes leave unexplained."""

    def partition(values: Points, least: int) -> Labels:
        units = current.units if values is points else _residual_units(values, current.grid, least, study, holder)
        if study.uses_cells:
            return make_cells(values, units, least, stream_seed(study.seed, "cells", holder))
        return np.unique(merge_small_units(values, units, _means(values, units), least), return_inverse=True)[1]

    if np.ptp(points, axis=0).max() == 0:
        return LocalCode(plain_code(points, np.zeros(len(points), dtype=np.int64), study.privacy.k))
    if not study.uses_side_information:
        return LocalCode(plain_code(points, partition(points, study.privacy.k), study.privacy.k))
    code = encode_block(points, partners, study.privacy.k, partition)
    features = _predictors(code, partners)
    if gives_away(code.cells, features, study.privacy.k):
        return LocalCode(plain_code(points, partition(points, study.privacy.k), study.privacy.k))
    return LocalCode(code, features)


def corrected(points: Points, own: LocalCode, codes: Sequence[Code], place: int) -> tuple[LocalCode, Corrected]:
    """What the codes of all partners improve, empty where it would not help; and all that has left then."""
    if codes[place].cells.tobytes() != own.payload.cells.tobytes():
        raise MessageRefused("the own code came back changed")
    every = [*codes[:place], own.code, *codes[place + 1 :]]
    found = correct(points, every, place)
    beside = features_beside(every, rebuild_codes(every), place)
    if found is None or beside is None or gives_away(own.code.cells, (*own.features, beside), own.code.k):
        return own, Corrected(np.zeros((0, 0)), np.zeros(0, dtype=np.float32))
    return LocalCode(own.code, (*own.features, beside)), Corrected(found.coefficients, found.strength)


def opened_codes(contents: Sequence[bytes], records: int, k: int) -> list[Code]:
    """Partners' codes as relayed, after a look at their shape."""
    return [as_code(decode_payload(content, Coded), records, k) for content in contents]


def as_code(coded: Coded, records: int, k: int) -> Code:
    """A code as received; refuses one that cannot be."""
    cells = coded.cells
    fits = len(cells) == records and cells.min() >= 0 and cells.max() < records
    fits = fits and len(coded.prototypes) == cells.max() + 1 and np.bincount(cells).min() >= k
    whole = len(coded.strength) == (records if len(coded.coefficients) else 0)
    whole = whole and bool(((coded.strength >= 0) & (coded.strength <= 1)).all())
    finite = all(np.isfinite(a).all() for a in (coded.prototypes, coded.coefficients, coded.strength))
    if not (fits and whole and finite):
        raise MessageRefused("a partner's code does not fit the records")
    return Code(k, cells, coded.prototypes, coded.coefficients, coded.strength)


def _predictors(code: Code, partners: Sequence[Code]) -> tuple[SideFeatures, ...]:
    """The features that a conditional code leans on."""
    found = features_before(partners, rebuild_codes(partners), code.k) if code.is_conditional else None
    return () if found is None else (found,)


def _judged(points: Points, grid: Grid, model: LocalModel, k: int) -> LocalMap:
    units = np.array(model.assign(points), dtype=np.int64)
    dissolve(np.asarray(points, dtype=float), units, np.ascontiguousarray(model.codebook, dtype=float), k)
    return measured(points, grid, model, units)


def measured(points: Points, grid: Grid, model: LocalModel, units: Labels) -> LocalMap:
    """The model with these units, and how good it is."""
    codebook = model.codebook
    gaps = points - codebook[units]
    spread = float(np.einsum("ij,ij->", gaps, gaps))
    return LocalMap(grid, model, units, davies_bouldin(points, units, codebook), spread)


def _density_cells(points: Points, grid: Grid, study: Study, holder: str) -> LocalMap:
    """In place of a map: the combinations of cells of the columns' densities, merged until none is below k."""
    k, least = study.privacy.k, study.privacy.k
    found = recoded(points, k, study.map.bandwidth).values
    seed = stream_seed(study.seed, "density", holder)
    while (units := JointCells(least, seed=seed).fit(found).labels_).max() >= grid.units:
        least = min(2 * least, len(points))
    codebook = np.zeros((grid.units, points.shape[1]))
    codebook[: units.max() + 1] = _means(points, units)
    return measured(points, grid, Prototypes(codebook), units)


def _residual_units(values: Points, grid: Grid, least: int, study: Study, holder: str) -> Labels:
    rng = stream(study.seed, "residual", holder)
    found = fitted(study.model_of(holder), values, grid, study.map.passes, rng)
    return merge_small_units(values, found.assign(values), found.codebook, least)


def _means(values: Points, units: Labels) -> Codebook:
    """(units, d): the mean of each unit's records; zeros where it has none."""
    count = np.maximum(np.bincount(units), 1)[:, None]
    return np.stack([np.bincount(units, column) for column in values.T], axis=1) / count


def _require_units(units: Labels, grid: Grid, records: int) -> None:
    if len(units) != records or units.min() < 0 or units.max() >= grid.units:
        raise MessageRefused("activations do not fit the grid and the records")
