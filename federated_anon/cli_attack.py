"""The command ``attack``: a simulated study is played again, with everything that crosses kept, and then attacked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federated_anon import console
from federated_anon.errors import VerificationFailed

if TYPE_CHECKING:
    import pyarrow as pa

    from coordinator.tape import Tape
    from federated_anon.attacks import Attempt, Scene
    from federated_anon.columns import Column, Role
    from federated_anon.deal import People
    from federated_anon.study import Study

app = typer.Typer(add_completion=False)
OTHER = {"open": "sealed", "sealed": "open"}
HEADER = ("attacker", "knows", "seeks", "success", "bound", "guessing", "verdict")


@app.command(
    "attack",
    help="Attack a simulated study with everything that crossed in it: linkage from each party's whole view, sums, "
    "pseudonyms, coalitions.\n\nThe study is played again from its original file, which must give the same release; "
    "then once more in the other exposure, for comparison. Ends with code 7 if a bound is broken.",
    epilog="Example:\n\nfederated-anon attack trial --original people.csv --key id",
)
def attack_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a study that 'simulate' wrote.")],
    original: Annotated[Path, typer.Option(metavar="FILE", help="The file that the study was simulated on.")],
    key: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its key column, if 'simulate' was given one.")
    ] = None,
    alone: Annotated[bool, typer.Option("--alone", help="Leave the other exposure out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """A simulated study, attacked."""
    from federated_anon.attacks import Verdict, attempts
    from federated_anon.attacks.links import by_coordinator
    from nodes.source import read_table

    told, table = opened_run(run), read_table(original)
    played = play(told, table, key, told.study.exposure)
    if played.csv != told.csv:
        raise VerificationFailed(
            f"'{original}' played again gives another release than '{run}': is it the file that was simulated, and "
            f"the key column the same ({f'--key {key}' if key else 'none was named'})?"
        )
    found = attempts(played.scene)
    other = [] if alone else by_coordinator(play(told, table, key, OTHER[told.study.exposure]).scene)
    if as_json:
        console.print_json(plain(run, played.scene, found, other))
    else:
        show(played.scene, found, other)
    if broken := [one.name for one in found if one.verdict is Verdict.BROKEN]:
        raise VerificationFailed(f"a bound is broken: {', '.join(broken)}")


@dataclass(frozen=True, slots=True)
class Told:
    """What a run folder tells of its study: the study, the columns by holder and role, and the release's bytes."""

    study: Study
    columns: tuple[dict[str, Any], ...]
    csv: bytes

    def named(self, role: Role) -> tuple[str, ...]:
        """Columns of one role."""
        return tuple(column["name"] for column in self.columns if column["role"] == role)

    def views(self) -> list[list[str]]:
        """Columns by holder, in the order of the roster."""
        return [[c["name"] for c in self.columns if c["holder"] == name] for name in self.study.holders]


@dataclass(frozen=True, slots=True)
class Played:
    """A study played again: its scene for attackers, and the release's bytes."""

    scene: Scene
    csv: bytes


def opened_run(folder: Path) -> Told:
    """The run in ``folder``; raises ``VerificationFailed`` if it is none, or not one of ``simulate``."""
    from federated_anon.deal import HOLDER
    from federated_anon.errors import FederatedAnonError
    from federated_anon.study import load_study

    try:
        study = load_study(folder / "study.toml").study
        columns = tuple(json.loads((folder / "report.json").read_text())["columns"])
        told = Told(study, columns, (folder / "release.csv").read_bytes())
        told.views()
    except (OSError, ValueError, KeyError, TypeError, FederatedAnonError) as error:
        raise VerificationFailed(f"'{folder}' is not a readable run folder: {type(error).__name__}") from None
    if study.holders != tuple(HOLDER.format(number + 1) for number in range(len(study.holders))):
        raise VerificationFailed(f"'{folder}' is not a run of 'simulate': only that can be played again from one file")
    return told


def play(told: Told, table: pa.Table, key: str | None, exposure: str) -> Played:
    """The study once more, in this process and in the given exposure, with every message kept."""
    from coordinator.tape import Tape
    from federated_anon.columns import Role
    from federated_anon.crypto.agreement import study_key
    from federated_anon.crypto.signing import Identity
    from federated_anon.deal import Roles
    from federated_anon.drafts import write_holder
    from federated_anon.folders import temporary_folder
    from federated_anon.simulate import conducted, planned, usable
    from nodes.holder import DataHolder
    from nodes.settings import load_settings

    kept = {name for view in told.views() for name in view} | {key}
    roles = Roles(
        quasi=told.named(Role.QUASI),
        sensitive=told.named(Role.SENSITIVE),
        keep=told.named(Role.KEEP),
        drop=tuple(name for name in table.column_names if name not in kept),
        key=key,
    )
    content = told.study.model_dump(mode="json", exclude={"holders"}) | {"exposure": exposure}
    content |= {"method": "best"} if exposure == "sealed" else {}
    shares, study = planned(table, roles, len(told.study.holders), told.views(), content)
    people = usable(table, roles, study, "the original")
    with temporary_folder() as folder:
        for name, own in shares.items():
            write_holder(folder / name, name, people.table, own, study, study.seed)
        holders = {name: DataHolder(load_settings(folder / name / "settings.toml")) for name in shares}
        tape, secret = Tape(holders), Identity.for_simulation(study.seed, "coordinator").secret
        outcome, _ = conducted(study.study, tape, secret, 3600.0, None, None)
    leader = Identity.for_simulation(study.seed, study.holders[0])
    release = outcome.release
    scene = scene_of(study.study, shares, people, tape, release.table, study_key(leader, study.study.digest), secret)
    return Played(scene, release.files()["release.csv"])


def scene_of(
    study: Study,
    shares: Mapping[str, tuple[Column, ...]],
    people: People,
    tape: Tape,
    release: pa.Table,
    key: bytes,
    secret: bytes,
) -> Scene:
    """The messages on a tape, with the truth beside them."""
    from federated_anon.attacks import Exchange, Scene
    from federated_anon.columns import Role
    from federated_anon.messages import decode
    from federated_anon.messages.payloads import REPLIES, REQUESTS
    from nodes.identity import normalise_ids
    from nodes.truth import rows_in_common_order

    rows = rows_in_common_order(tape.holders[study.holders[0]])
    named = next(column.name for column in people.columns if column.role is Role.KEY)
    exchanges = [
        Exchange(name, decode(request, REQUESTS).payload, decode(reply, REPLIES).payload)
        for (name, _, request), (_, reply) in zip(tape.requests, tape.replies, strict=True)
    ]
    ids = normalise_ids(people.table[named]).to_pylist()
    return Scene(study, shares, people.table.take(rows), [ids[row] for row in rows], exchanges, release, key, secret)


def plain(run: Path, scene: Scene, found: Sequence[Attempt], other: Sequence[Attempt]) -> dict[str, Any]:
    """Everything as plain data."""
    return {
        "run": str(run),
        "records": scene.records,
        "k": scene.k,
        "exposure": scene.study.exposure,
        "attempts": [one.as_dict() for one in found],
        "other_exposure": {"exposure": OTHER[scene.study.exposure], "attempts": [one.as_dict() for one in other]},
    }


def show(scene: Scene, found: Sequence[Attempt], other: Sequence[Attempt]) -> None:
    """A table of all attacks, and one line on the other exposure."""
    title = f"{scene.records} people, k = {scene.k}, {scene.study.exposure} exposure"
    screen = console.screen()
    screen.print(console.grid(title, HEADER, [row(one) for one in found], right=("success", "bound", "guessing")))
    if other:
        title = f"The same study in {OTHER[scene.study.exposure]} exposure"
        screen.print(console.grid(title, HEADER, [row(one) for one in other], right=("success", "bound", "guessing")))
    console.say(
        "holds: not above its bound. stated: nothing is promised here, see docs/threat-model.md. "
        "Shares of people; of variance where variance is sought."
    )


def row(one: Attempt) -> tuple[str, ...]:
    """One attack as a row."""
    bound = "none" if one.bound is None else share(one.bound)
    return one.attacker, one.knows, one.seeks, share(one.success.value), bound, share(one.baseline), str(one.verdict)


def share(value: float) -> str:
    """A share in percent, small ones with more digits."""
    return f"{100 * value:.1f} %" if value == 0 or value >= 0.001 else f"{100 * value:.2g} %"
