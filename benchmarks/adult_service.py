"""The Adult table, sealed, k = 5 and l = 3, between four machines with mutual TLS: calm, killed, cut off.

    python -m benchmarks.adult_service adult.csv.gz

Columns are dealt to three holders; each serves in a process and a network namespace of its own, the coordinator runs in
a fourth (four loopback addresses where namespaces are not permitted; then no cable is pulled out).
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

import tomli_w

from federated_anon.crypto.trial_authority import write_trial
from federated_anon.deal import Roles
from federated_anon.drafts import write_holder
from federated_anon.simulate import planned, usable
from federated_anon.study import StudyFile
from nodes.source import read_table
from tests.networks import Conductor, network, permitted
from tests.services import Region, Site, free_port, service_section, serving

LOOPBACK = {"holder-1": "127.0.0.2", "holder-2": "127.0.0.3", "holder-3": "127.0.0.4"}
CONTENT = {"name": "adult", "method": "best", "exposure": "sealed", "seed": 0, "privacy": {"k": 5, "l": 3}}


FILES = ("release.parquet", "release.csv", "report.json")
NAMES = ("holder-1", "holder-2", "holder-3")


def main(file: str) -> None:
    """Deal, serve, run; then once more for every harm: are the bytes the same?"""
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        net = stack.enter_context(network(NAMES)) if permitted() else None
        region = dealt(file, Path(place), {n: net.address(n) for n in NAMES} if net else LOOPBACK)
        for name, site in region.sites.items():
            site.prefix = net.inside(name) if net else ()
        stack.enter_context(serving(region))
        prefix = net.inside("coordinator") if net else ()
        print("four namespaces" if net else "four loopback addresses", [site.address for site in region.sites.values()])
        told(region, prefix, "calm", None)
        for name in NAMES:
            told(region, prefix, f"kill -9 {name}", lambda _, name=name: fall_and_rise(region, name))
        told(region, prefix, "kill -9 coordinator", lambda conductor: conductor.kill())
        if net:
            told(region, prefix, "cable of holder-2 out for 20 s", lambda _: net.cut("holder-2", 20.0))


def told(region: Region, prefix: tuple[str, ...], what: str, harm: Callable[[Conductor], None] | None) -> None:
    """One study with one harm in it, on its way; seconds, and whether the bytes are those of the calm one."""
    out = region.folder / what.replace(" ", "-")
    conductor, begun = Conductor(region, out, prefix), perf_counter()
    if harm is not None:
        conductor.at(40, lambda: harm(conductor))
    code, said = conductor.run()
    seconds = perf_counter() - begun
    for site in region.sites.values():
        if site.process is not None and what.endswith(site.name):
            site.wait_ready()
    calm = region.folder / "calm"
    same = code == 0 and all((out / name).read_bytes() == (calm / name).read_bytes() for name in FILES)
    ending = "same bytes" if same else f"OTHER BYTES, exit {code}: {said[-300:]}"
    print(f"{what}: {seconds:.1f} s, {ending}", flush=True)


def fall_and_rise(region: Region, name: str) -> None:
    """kill -9, and start again at once."""
    region.sites[name].kill()
    region.sites[name].launch()


def dealt(file: str, folder: Path, hosts: Mapping[str, str]) -> Region:
    """Three holders with their columns, settings and certificates, and the study with their addresses."""
    table = read_table(file)
    roles = Roles(quasi=("*",), sensitive=("occupation",), keep=(), drop=("fnlwgt",), key=None)
    shares, study = planned(table, roles, 3, (), dict(CONTENT))
    people = usable(table, roles, study, file)
    write_trial(folder / "certs", "coordinator", list(shares), tuple(hosts.values()), 5)
    sites = {}
    for name, own in shares.items():
        write_holder(folder / name, name, people.table, own, study, study.seed)
        site = Site(name, folder / name / "settings.toml", free_port(), hosts[name])
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
