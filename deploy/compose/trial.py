#!/usr/bin/env python3
"""A folder for a trial: three organisations over generated people, with settings, keys and certificates, and a study.

trial.py FOLDER [--address hospital=HOST:PORT ...]: writes FOLDER/{hospital,insurer,registry,coordinator}. The private
keys of all parties are made in one place here, so this is for trials only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

import tomli_w

from federated_anon.crypto.signing import Identity
from federated_anon.crypto.trial_authority import write_trial
from federated_anon.demo import write_table
from federated_anon.drafts import holder_settings, settings_text
from federated_anon.folders import partial_folder
from federated_anon.people import organisations

PEOPLE, SEED, K, L = 3000, 0, 5, 3
IMAGE_USER = 10001


def main() -> None:
    """Write the folder, all or nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--address", action="append", default=[], metavar="HOLDER=HOST:PORT")
    given = parser.parse_args()
    addresses = {name: f"{name}:7430" for name in ("hospital", "insurer", "registry")}
    addresses |= dict(text.split("=", 1) for text in given.address)
    if given.folder.exists():
        parser.error(f"{given.folder} exists already")
    with partial_folder(given.folder) as folder:
        write(folder, addresses)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
            if os.geteuid() == 0:  # The images run as this user.
                os.chown(path, IMAGE_USER, IMAGE_USER)
    print(f"Written: {given.folder}/ with {', '.join(addresses)} and coordinator")


def write(folder: Path, addresses: dict[str, str]) -> None:
    """Everything below ``folder``."""
    found = organisations(PEOPLE, SEED)
    keys = {one.name: Identity.create() for one in found}
    with tempfile.TemporaryDirectory() as work:
        certificates = Path(work) / "certificates"
        hosts = tuple(dict.fromkeys(address.rpartition(":")[0] for address in addresses.values()))
        write_trial(certificates, "coordinator", tuple(addresses), hosts, 30)
        for name in addresses:
            shutil.copytree(certificates / name, folder / name)
        shutil.copytree(certificates / "coordinator", folder / "coordinator" / "certificates")
    for one in found:
        place = folder / one.name
        keys[one.name].save(place / "identity.key")
        write_table(one.table, place / one.file)
        partners = {name: key.public.hex() for name, key in keys.items() if name != one.name}
        content = holder_settings(one.name, one.file, one.columns, partners, {"smallest_k": K})
        service = {
            "address": f"0.0.0.0:{addresses[one.name].rpartition(':')[2]}",
            "certificate": f"{one.name}.crt",
            "key": f"{one.name}.key",
            "authority": "authority.crt",
            "coordinator_certificate": "coordinator.crt",
        }
        (place / "settings.toml").write_text(settings_text(content) + "\n" + tomli_w.dumps({"service": service}))
    study = {
        "name": "trial",
        "holders": list(addresses),
        "privacy": {"k": K, "l": L},
        "deployment": {name: {"address": address} for name, address in addresses.items()},
    }
    (folder / "coordinator" / "study.toml").write_text(tomli_w.dumps(study))


if __name__ == "__main__":
    main()
