"""The same study on Ray: a cluster of four nodes with each holder on its own, and an actor that dies."""

import pytest

from federated_anon.errors import HolderLate, HolderRefused
from federated_anon.simulate import run
from tests.clusters import running_nodes, written

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def in_process(tmp_path_factory):
    folder = tmp_path_factory.mktemp("in-process")
    return run(written(folder / "data", pinned=False), folder / "run", runtime="in-process")


@pytest.fixture(scope="module")
def cluster():
    with running_nodes() as nodes:
        yield nodes


def test_four_nodes_give_the_same_bytes_as_one_process(cluster, tmp_path, in_process):
    left = []
    result = run(
        written(tmp_path / "data", pinned=True),
        tmp_path / "run",
        address=cluster.address,
        listen=lambda progress: left.append(ray.available_resources()) if progress.step == "code" else None,
    )
    for name in ("release.parquet", "release.csv", "report.json"):
        assert (tmp_path / "run" / name).read_bytes() == (in_process.folder / name).read_bytes()
    assert result.summary["k_reached"] >= 5
    for name in ("hospital", "insurer", "registry"):
        assert left[0][name] < 1, "the holder's actor sits on the node that has its resource"


def test_an_actor_that_is_killed_comes_back_and_the_release_is_the_same(cluster, tmp_path, in_process):
    killed = []

    def kill_once(progress):
        if progress.step == "constrain" and not killed:
            killed.append(True)
            actors = [a for a in ray.util.list_named_actors(all_namespaces=True) if a["name"].endswith("insurer")]
            actor = ray.get_actor(actors[0]["name"], namespace=actors[0]["namespace"])
            ray.kill(actor, no_restart=False)

    result = run(written(tmp_path / "data", pinned=True), address=cluster.address, listen=kill_once)
    assert killed
    assert result.table.equals(in_process.table)
    assert result.report == in_process.report


def test_a_node_that_nobody_has_is_named_when_time_is_up(cluster, tmp_path):
    study = written(tmp_path / "data", pinned=True)
    study.write_text(study.read_text().replace('resource = "registry"', 'resource = "atlantis"'))
    with pytest.raises(HolderLate, match="registry"):
        run(study, tmp_path / "run", address=cluster.address, timeout=6)
    assert not (tmp_path / "run").exists()


def test_an_actor_that_cannot_start_is_named_at_once(cluster, tmp_path):
    study = written(tmp_path / "data", pinned=True)
    (tmp_path / "data" / "registry" / "identity.key").unlink()
    with pytest.raises(HolderRefused, match="registry"):
        run(study, tmp_path / "run", address=cluster.address, timeout=60)
    assert not (tmp_path / "run").exists()
