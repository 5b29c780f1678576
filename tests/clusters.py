"""Ray clusters for tests: four nodes on this machine, each data node with the resource of its holder."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w

from federated_anon.demo import write_organisations
from federated_anon.people import organisations

HOLDERS = ("hospital", "insurer", "registry")
PEOPLE, SEED = 300, 5

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


def written(folder: Path, exposure: str = "open", pinned: bool = True, people: int = PEOPLE) -> Path:
    """Three organisations' own files, other orders, partial overlap, and the study they agree on."""
    study = write_organisations(folder, organisations(people, SEED), SEED)
    changed(study, lambda content: content.update(exposure=exposure))
    for name in HOLDERS:
        changed(folder / name / "settings.toml", lambda content: content["policy"].update(exposures=[exposure]))
        if pinned:
            changed(study, lambda content, name=name: content["deployment"][name].update(resource=name))
    return study


def changed(file: Path, change: Any) -> None:
    """A TOML file with its content changed."""
    content = tomllib.loads(file.read_text())
    change(content)
    file.write_text(tomli_w.dumps(content))


class Nodes:
    """A head without holders and one node per holder, which can be killed and started again."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        self.nodes = {name: self._start(name) for name in HOLDERS}

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def _start(self, name: str) -> Any:
        return self.cluster.add_node(num_cpus=1, resources={name: 1}, object_store_memory=80 * 2**20)

    def kill(self, name: str) -> None:
        """A node that ends at once, with all its processes."""
        self.cluster.remove_node(self.nodes[name], allow_graceful=False)

    def bring_back(self, name: str) -> None:
        self.nodes[name] = self._start(name)


@contextmanager
def running_nodes() -> Iterator[Nodes]:
    """A cluster that is gone afterwards."""
    import ray

    nodes = Nodes()
    try:
        yield nodes
    finally:
        ray.shutdown()
        nodes.cluster.shutdown()
