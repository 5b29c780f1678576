"""Maps: one batch pass and a whole fit at 100,000 x 20 on 40 x 40 units, against XPySom, IntraSOM and MiniSom."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
from reporting import page, seconds, table
from tables import population

from federated_anon.arrays import Codebook, Points
from federated_anon.som import BatchSOM, assign_units
from federated_anon.som.batch import principal_plane, train_pass
from federated_anon.som.nearest import distances_to

SIDE, PASSES, START, END = 40, 12, 20.0, 0.7


class Fit(NamedTuple):
    """Seconds of a fit of all passes, and the prototypes it gave."""

    seconds: float
    codebook: Codebook


def ours(points: Points, **settings: int) -> Fit:
    som = BatchSOM(SIDE, SIDE, passes=PASSES, start_radius=START, end_radius=END, **settings)  # type: ignore[arg-type]
    begun = perf_counter()
    som.fit(points, np.random.default_rng(0))
    return Fit(perf_counter() - begun, som.codebook_)


def xpysom(points: Points) -> Fit:
    from xpysom import XPySom

    som = XPySom(SIDE, SIDE, points.shape[1], sigma=START, sigmaN=END, std_coeff=np.sqrt(0.5), random_seed=0, xp=np)
    som._weights = principal_plane(points, BatchSOM(SIDE, SIDE).grid).reshape(SIDE, SIDE, -1).astype(float)
    begun = perf_counter()
    som.train(points, PASSES)
    return Fit(perf_counter() - begun, np.asarray(som.get_weights()).reshape(SIDE * SIDE, -1))


def intrasom(points: Points) -> Fit:
    from intrasom import SOMFactory

    settings = {"mapshape": "planar", "lattice": "rect", "normalization": None, "initialization": "pca"}
    som = SOMFactory.build(points, mapsize=(SIDE, SIDE), faster=True, **settings)
    radii = (START / np.sqrt(2), END / np.sqrt(2))
    begun = perf_counter()
    som.train(
        n_job=2,
        save=False,
        summary=False,
        train_rough_len=PASSES // 2,
        train_rough_radiusin=radii[0],
        train_rough_radiusfin=np.sqrt(radii[0] * radii[1]),
        train_finetune_len=PASSES // 2,
        train_finetune_radiusin=np.sqrt(radii[0] * radii[1]),
        train_finetune_radiusfin=radii[1],
    )
    return Fit(perf_counter() - begun, np.asarray(som.codebook.matrix))


def minisom(points: Points) -> Fit:
    from minisom import MiniSom

    som = MiniSom(SIDE, SIDE, points.shape[1], sigma=START / np.sqrt(2), random_seed=0)
    begun = perf_counter()
    som.train(points, 5000)
    whole = (perf_counter() - begun) * len(points) * PASSES / 5000
    return Fit(whole, np.asarray(som.get_weights()).reshape(SIDE * SIDE, -1))


def attempt(fit: Callable[[Points], Fit], points: Points) -> Fit | str:
    """The fit, or why there is none."""
    here = os.getcwd()
    try:
        with contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            return fit(points)
    except ImportError:
        return "skipped: not installed"
    except Exception as error:
        return f"skipped: {type(error).__name__}"
    finally:
        os.chdir(here)


def main() -> None:
    points = population(100_000, 20).astype(np.float32)
    ours(points[:2000])
    grid, start = BatchSOM(SIDE, SIDE).grid, ours(points).codebook
    one = seconds(lambda: train_pass(points, start, grid, 2.0), repeats=5)
    fits: dict[str, Fit | str] = {
        "federated_anon, all passes over all records": ours(points, subsample=0),
        "federated_anon, subsample then two full passes": ours(points),
        "XPySom": attempt(xpysom, points),
        "IntraSOM (faster mode)": attempt(intrasom, points),
        "MiniSom (5,000 steps, scaled to 12 passes)": attempt(minisom, points),
    }
    peers = [fit.seconds for name, fit in fits.items() if isinstance(fit, Fit) and ("XPy" in name or "Intra" in name)]
    fastest = min(peers, default=float("nan"))
    rows = []
    for name, fit in fits.items():
        if isinstance(fit, str):
            rows.append((name, fit, "", "", ""))
            continue
        error = float(distances_to(points, fit.codebook, assign_units(points, fit.codebook)).mean())
        rows.append((name, fit.seconds, fit.seconds / PASSES, fastest / fit.seconds, error))
    heads = (
        "map",
        "fit of 12 passes, s",
        "s per pass",
        "faster than the faster of XPySom and IntraSOM",
        "quantization error",
    )
    ratio = fastest / PASSES / one
    note = f"One pass of federated_anon alone: {one:.4f} s, {ratio:.1f} times faster than the faster peer."
    page("maps", "Maps, 100,000 x 20 on 40 x 40 units", [table(heads, rows)], note)


if __name__ == "__main__":
    main()
