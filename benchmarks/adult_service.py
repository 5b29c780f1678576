"""The Adult table, sealed, k = 5 and l = 3, across four loopback addresses with mutual TLS.

    python -m benchmarks.adult_service adult.csv.gz

Columns are dealt to three holders; each serves in a process and on an address of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

import tomli_w

from federated_anon.crypto.trial_authority import write_trial
from federated_anon.deal import Roles
from federated_anon.drafts import write_holder
from federated_anon.simulate import planned, run, usable
from federated_anon.study import StudyFile
from nodes.source import read_table
from tests.services import Region, Site, free_port, service_section, serving

CONTENT = {"name": "adult", "method": "best", "exposure": "sealed", "seed": 0, "privacy": {"k": 5, "l": 3}}


def main(file: str) -> None:
    """Deal, serve, run, tell."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        region = dealt(file, folder)
        with serving(region):
            begun = perf_counter()
            result = run(region.study, folder / "run", certificates=region.certificates)
            print(f"{perf_counter() - begun:.1f} s, {result.summary}")
            print("holders at", ", ".join(f"{site.host}:{site.port}" for site in region.sites.values()))


def dealt(file: str, folder: Path) -> Region:
    """Three holders with their columns, settings and certificates, and the study with their addresses."""
    table = read_table(file)
    roles = Roles(quasi=("*",), sensitive=("occupation",), keep=(), drop=("fnlwgt",), key=None)
    shares, study = planned(table, roles, 3, (), dict(CONTENT))
    people = usable(table, roles, study, file)
    write_trial(folder / "certs", "coordinator", list(shares), ("127.0.0.2", "127.0.0.3", "127.0.0.4"), 5)
    sites = {}
    for number, (name, own) in enumerate(shares.items()):
        write_holder(folder / name, name, people.table, own, study, study.seed)
        site = Site(name, folder / name / "settings.toml", free_port(), f"127.0.0.{number + 2}")
        section = service_section(folder / "certs" / name, name, site.address)
        site.settings.write_text(site.settings.read_text() + tomli_w.dumps({"service": section}))
        sites[name] = site
    (folder / "study.toml").write_text(written(study, sites))
    return Region(folder, sites)


def written(study: StudyFile, sites: dict[str, Site]) -> str:
    """The study file, with an address for every holder."""
    places = {name: {"address": site.address} for name, site in sites.items()}
    return study.study.to_toml() + tomli_w.dumps({"deployment": places})


if __name__ == "__main__":
    main(sys.argv[1])
