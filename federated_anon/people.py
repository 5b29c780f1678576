"""Generated people for trials: one population, three organisations that each know a part of it.

A person is drawn from two hidden traits, age and standing, and one hidden state, health; every column depends on
some of them plus noise of its own, so that columns of different organisations are related, as they are in life. A few
values are missing, the organisations know different people, in different orders, and one writes ids in capitals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from federated_anon.columns import Column, Kind, Role
from federated_anon.seeds import stream

EDUCATION = ("none", "primary", "secondary", "bachelor", "master", "doctorate")
REGIONS = (
    "north",
    "north-east",
    "east",
    "south-east",
    "south",
    "south-west",
    "west",
    "north-west",
    "centre",
    "islands",
)
DIAGNOSES = ("hypertension", "diabetes", "asthma", "depression", "arthrosis", "none")
WORK = ("employed", "self-employed", "unemployed", "retired", "student")


@dataclass(frozen=True, slots=True)
class Organisation:
    """One organisation's file and what it declares about it."""

    name: str
    file: str
    table: pa.Table
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class _Hidden:
    """What drives the columns: age in years, standing and health as standard scores."""

    age: np.ndarray
    standing: np.ndarray
    health: np.ndarray


def organisations(people: int, seed: int) -> tuple[Organisation, ...]:
    """A hospital, an insurer and a registry that have about 84 % of the people in common."""
    rng = stream(seed, "people")
    age = np.clip(rng.gamma(7.5, 6.4, people), 18, 99)
    standing = rng.standard_normal(people)
    health = 0.04 * (50 - age) + 0.35 * standing + rng.standard_normal(people)
    hidden = _Hidden(age, standing, health)
    ids = np.array([f"p-{number:06d}" for number in rng.permutation(people * 10)[:people]])
    return (
        _known_to(_hospital(ids, hidden, rng), 0.95, rng),
        _known_to(_insurer(ids, hidden, rng), 0.94, rng),
        _known_to(_registry(ids, hidden, rng), 0.94, rng),
    )


def _hospital(ids: np.ndarray, hidden: _Hidden, rng: np.random.Generator) -> Organisation:
    n = len(ids)
    is_male = rng.random(n) < 0.49
    height = np.where(is_male, 178, 165) - 0.08 * (hidden.age - 45) + rng.normal(0, 6.5, n)
    weight = 24.5 * (height / 100) ** 2 - 2.5 * hidden.health + rng.normal(0, 9, n)
    pressure = 112 + 0.45 * hidden.age - 3.5 * hidden.health + rng.normal(0, 9, n)
    visits = rng.poisson(np.exp(0.5 - 0.35 * hidden.health))
    born = np.datetime64("2026-01-01") - (hidden.age * 365.25).astype("timedelta64[D]")
    table = pa.table(
        {
            "patient": ids,
            "born": pa.array(born),
            "sex": np.where(is_male, "male", "female"),
            "height_cm": np.round(height, 1),
            "weight_kg": _holes(np.round(weight, 1), 0.04, rng),
            "blood_pressure": _holes(np.rint(pressure).astype(np.int64), 0.06, rng),
            "visits": visits,
            "diagnosis": _diagnoses(hidden, rng),
        }
    )
    columns = (
        Column("patient", Role.KEY, Kind.TEXT),
        Column("born", Role.QUASI, Kind.DATE),
        Column("sex", Role.QUASI, Kind.CATEGORY),
        Column("height_cm", Role.QUASI, Kind.NUMBER),
        Column("weight_kg", Role.QUASI, Kind.NUMBER),
        Column("blood_pressure", Role.QUASI, Kind.INTEGER),
        Column("visits", Role.QUASI, Kind.INTEGER),
        Column("diagnosis", Role.SENSITIVE, Kind.CATEGORY),
    )
    return Organisation("hospital", "hospital.csv", table, columns)


def _insurer(ids: np.ndarray, hidden: _Hidden, rng: np.random.Generator) -> Organisation:
    n = len(ids)
    income = np.exp(10.2 + 0.45 * hidden.standing + 0.006 * np.minimum(hidden.age, 60) + rng.normal(0, 0.25, n))
    since = np.datetime64("2026-01-01") - (rng.random(n) * (hidden.age - 17) * 365).astype("timedelta64[D]")
    smokes = rng.random(n) < 1 / (1 + np.exp(1.1 + 0.5 * hidden.standing + 0.3 * hidden.health))
    claims = np.exp(6.3 - 0.4 * hidden.health + rng.normal(0, 0.6, n))
    table = pa.table(
        {
            "member": np.char.upper(ids),
            "income": np.rint(income / 100).astype(np.int32) * 100,
            "work": _work(hidden, rng),
            "smoker": _holes(smokes, 0.08, rng),
            "member_since": pa.array(since),
            "claims": np.round(claims, 2),
            "plan": np.where(hidden.standing + rng.normal(0, 0.8, n) > 0.7, "premium", "basic"),
        }
    )
    columns = (
        Column("member", Role.KEY, Kind.TEXT),
        Column("income", Role.QUASI, Kind.INTEGER),
        Column("work", Role.QUASI, Kind.CATEGORY),
        Column("smoker", Role.QUASI, Kind.BOOLEAN),
        Column("member_since", Role.QUASI, Kind.DATE),
        Column("claims", Role.QUASI, Kind.NUMBER),
        Column("plan", Role.KEEP, Kind.CATEGORY),
    )
    return Organisation("insurer", "insurer.parquet", table, columns)


def _registry(ids: np.ndarray, hidden: _Hidden, rng: np.random.Generator) -> Organisation:
    n = len(ids)
    school = np.clip(np.rint(2.4 + 1.1 * hidden.standing - 0.01 * (hidden.age - 45) + rng.normal(0, 0.6, n)), 0, 5)
    household = 1 + rng.poisson(np.where(hidden.age < 30, 0.6, np.where(hidden.age < 60, 1.8, 0.7)))
    region = rng.choice(len(REGIONS), n, p=np.array([20, 5, 9, 6, 16, 7, 12, 6, 15, 4]) / 100)
    commute = np.where(hidden.age < 66, rng.gamma(2.0, 6 + 2 * np.abs(region - 4), n), 0.0)
    table = pa.table(
        {
            "citizen": np.char.add(np.char.add(" ", ids), " "),
            "name": np.array([f"Person {number}" for number in range(n)]),
            "region": np.array(REGIONS)[region],
            "education": _holes(np.array(EDUCATION)[school.astype(int)], 0.05, rng),
            "household": household.astype(np.int8),
            "commute_km": np.round(commute, 1),
        }
    )
    columns = (
        Column("citizen", Role.KEY, Kind.TEXT),
        Column("name", Role.IDENTIFIER, Kind.TEXT),
        Column("region", Role.QUASI, Kind.CATEGORY),
        Column("education", Role.QUASI, Kind.ORDERED, levels=EDUCATION),
        Column("household", Role.QUASI, Kind.INTEGER),
        Column("commute_km", Role.QUASI, Kind.NUMBER),
    )
    return Organisation("registry", "registry.csv", table, columns)


def _diagnoses(hidden: _Hidden, rng: np.random.Generator) -> np.ndarray:
    scores = np.stack(
        [
            0.045 * (hidden.age - 50) - 0.3 * hidden.health,
            0.03 * (hidden.age - 50) - 0.6 * hidden.health - 0.4,
            -0.02 * (hidden.age - 40) - 0.2 * hidden.health - 0.4,
            -0.3 * hidden.standing - 0.3 * hidden.health - 0.3,
            0.05 * (hidden.age - 55) - 0.2 * hidden.health,
            0.9 * hidden.health + 0.8,
        ],
        axis=1,
    )
    return np.array(DIAGNOSES)[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]


def _work(hidden: _Hidden, rng: np.random.Generator) -> np.ndarray:
    scores = np.stack(
        [
            1.5 + 0.4 * hidden.standing,
            0.3 + 0.2 * hidden.standing,
            -0.3 - 0.6 * hidden.standing,
            0.9 * (hidden.age - 66),
            0.5 * (24 - hidden.age),
        ],
        axis=1,
    )
    return np.array(WORK)[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]


def _holes(values: np.ndarray, share: float, rng: np.random.Generator) -> pa.Array:
    """``values`` with about ``share`` of them missing."""
    return pa.array(values, mask=rng.random(len(values)) < share)


def _known_to(whole: Organisation, share: float, rng: np.random.Generator) -> Organisation:
    """The organisation's file with only those people it knows, in an order of its own."""
    count = whole.table.num_rows
    rows = rng.permutation(count)[: int(share * count)]
    return Organisation(whole.name, whole.file, whole.table.take(pa.array(rows)), whole.columns)
