"""Side information: what is sent rebuilds the code, weighs no record above 1/k, and is used only where it pays."""

import time

import numpy as np
import pytest

from federated_anon.bridges import bridges
from federated_anon.errors import DataRefused
from federated_anon.microaggregation import MDAV, UnitGroups
from federated_anon.side import Correction, correct, encode_block, rebuild
from federated_anon.side.code import features_before, features_beside, plain_code, rebuild_codes
from federated_anon.side.conditional import fit_before
from federated_anon.side.features import most_features
from federated_anon.side.ridge import regress
from federated_anon.som import Grid


def blocks(n=600, noise=0.3, seed=0, holders=3, columns=3):
    """Columns of several holders that share two hidden causes."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    made = [hidden @ rng.normal(size=(2, columns)) + noise * rng.normal(size=(n, columns)) for _ in range(holders)]
    return [(block - block.mean(axis=0)) / block.std(axis=0) for block in made]


def coarse(points, least):
    return UnitGroups(least, grid=Grid(2, 4), split=False).fit(points).labels_


def fine(points, least):
    return MDAV(least).fit(points).labels_


def published(tables, k, partition):
    codes = []
    for points in tables:
        codes.append(encode_block(points, codes, k, partition))
    return codes, [correct(points, codes, place) for place, points in enumerate(tables)]


def loss(tables, rebuilt):
    return sum(float(((points - code) ** 2).sum()) for points, code in zip(tables, rebuilt, strict=True))


def averaging(cells):
    same = (cells[:, None] == cells).astype(float)
    return same / same.sum(axis=1)


def influences(points, codes, corrections, place):
    """(n, n): how the code moves with the values, cells, penalties and strengths held; it is a linear map."""
    own, n = codes[place], len(points)
    predicted = np.zeros((n, n))
    if own.is_conditional:
        fit = fit_before(points, codes[:place], own.k)
        features = fit.features.rows(slice(0, n))
        predicted = own.strength[:, None].astype(float) * (features @ fit.inverse @ features.T)
    moved = predicted + averaging(own.cells) @ (np.eye(n) - predicted)
    if corrections[place] is not None:
        base = rebuild_codes(codes)
        fit = regress(features_beside(codes, base, place), points - base[place], len(own.prototypes))
        features = fit.features.rows(slice(0, n))
        strength = corrections[place].strength[:, None].astype(float)
        moved = moved + strength * (features @ fit.inverse @ features.T @ (np.eye(n) - moved))
    return moved


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("partition", [coarse, fine])
@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_no_record_moves_its_own_code_by_more_than_one_kth(k, partition, noise):
    tables = blocks(noise=noise)
    codes, corrections = published(tables, k, partition)
    for place, (points, code) in enumerate(zip(tables, rebuild(codes, corrections), strict=True)):
        moved = influences(points, codes, corrections, place)
        np.testing.assert_allclose(moved @ points, code, atol=1e-9)
        assert np.abs(np.diag(moved)).max() <= 1 / k + 1e-9


@pytest.mark.parametrize("partition", [coarse, fine])
def test_cells_of_every_code_hold_k_records_and_prototypes_are_their_means(partition):
    tables = blocks()
    codes, _ = published(tables, 4, partition)
    for place, (points, code) in enumerate(zip(tables, codes, strict=True)):
        assert np.bincount(code.cells).min() >= 4 + code.is_conditional
        base = rebuild_codes(codes[: place + 1])[-1]
        gaps = np.stack([np.bincount(code.cells, column) for column in (points - base).T])
        np.testing.assert_allclose(gaps, 0, atol=1e-9)


def test_coarse_codes_of_related_columns_gain_from_side_information():
    tables = blocks()
    codes, corrections = published(tables, 3, coarse)
    alone = [plain_code(points, coarse(points, 3), 3) for points in tables]
    assert [code.is_conditional for code in codes] == [False, True, True]
    assert loss(tables, rebuild(codes)) < 0.8 * loss(tables, rebuild(alone))
    assert loss(tables, rebuild(codes, corrections)) < loss(tables, rebuild(codes))


def test_unrelated_columns_refuse_side_information():
    tables = blocks(noise=50.0)
    codes, corrections = published(tables, 3, coarse)
    assert not any(code.is_conditional for code in codes)
    assert corrections == [None] * 3


def test_cells_of_exactly_k_leave_no_room_for_a_correction():
    tables = blocks(n=600)
    codes = [plain_code(points, fine(points, 3), 3) for points in tables]
    assert [correct(points, codes, place) for place, points in enumerate(tables)] == [None] * 3


def test_few_features_leave_what_the_sums_leave_open():
    """With sums of cells, of groups, and all coefficients known, only the bridges are determined."""
    tables = blocks(n=240)
    codes = [plain_code(points, fine(points, 3), 3) for points in tables]
    groups = UnitGroups(3).fit(np.concatenate(tables, axis=1)).labels_
    cells = codes[2].cells
    before = features_before(codes[:2], rebuild_codes(codes[:2]), 3)
    sums = [np.eye(int(labels.max()) + 1)[labels].T for labels in (cells, groups)]
    system = np.concatenate([*sums, before.rows(slice(0, 240)).T])
    _, values, right = np.linalg.svd(system, full_matrices=False)
    determined = (right[values > 1e-9] ** 2).sum(axis=0) > 1 - 1e-9
    np.testing.assert_array_equal(determined, bridges(cells, groups))


def test_features_stay_within_their_number_and_stop_at_k_2():
    assert most_features(1000, 2) == 0
    tables = blocks(n=400)
    codes = [plain_code(points, coarse(points, 3), 3) for points in tables]
    assert features_before(codes, rebuild_codes(codes), 3).width <= most_features(400, 3)
    assert encode_block(tables[0], codes[1:], 2, coarse).is_conditional is False


def test_the_first_holder_has_a_plain_code_and_no_partner_means_no_correction():
    points = blocks()[0]
    code = encode_block(points, [], 3, coarse)
    assert not code.is_conditional
    assert correct(points, [code], 0) is None


def test_constant_columns_pass():
    tables = blocks()
    tables[1][:] = 0.0
    codes, corrections = published(tables, 3, lambda points, least: np.arange(len(points)) % 8)
    assert all(np.isfinite(code).all() for code in rebuild(codes, corrections))


def test_coefficients_that_do_not_fit_are_refused():
    tables = blocks()
    codes, _ = published(tables, 3, coarse)
    wrong = Correction(np.zeros((1, 3)), np.zeros(600, dtype=np.float32))
    with pytest.raises(DataRefused, match="do not fit"):
        rebuild(codes, [wrong, None, None])
    with pytest.raises(DataRefused, match="must match"):
        rebuild(codes, [None])


def test_same_bytes_on_one_or_two_threads(monkeypatch):
    tables, seen = blocks(n=40_000), []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        codes, corrections = published(tables, 3, coarse)
        seen.append(b"".join(code.tobytes() for code in rebuild(codes, corrections)))
    assert seen[0] == seen[1]


def test_a_hundred_thousand_records_take_seconds():
    tables = blocks(n=100_000, columns=10)
    cells = [np.arange(100_000) % 20_000] * 3
    codes = [plain_code(points, labels, 3) for points, labels in zip(tables, cells, strict=True)]
    started = time.perf_counter()
    correct(tables[0], codes, 0)
    rebuild(codes)
    assert time.perf_counter() - started < 10
