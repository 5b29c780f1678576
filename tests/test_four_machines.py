"""A sealed study between four machines, each of whose processes is killed once, and whose cables are pulled out."""

import contextlib
import threading

from federated_anon.simulate import run
from tests.networks import Conductor, network, permitted
from tests.services import HOLDERS, Region, organised, prepared, serving

FILES = ("release.parquet", "release.csv", "report.json")
LOOPBACK = {name: f"127.0.0.{number + 2}" for number, name in enumerate(HOLDERS)}


@contextlib.contextmanager
def four_machines(folder):
    """The organisations in namespaces of their own, or on loopback addresses where namespaces are not permitted."""
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network(HOLDERS)) if permitted() else None
        hosts = {name: net.address(name) for name in HOLDERS} if net else LOOPBACK
        region = prepared(folder, "sealed", hosts)
        for name, site in region.sites.items():
            site.prefix = net.inside(name) if net else ()
        yield stack.enter_context(serving(region)), net


def fall_and_rise(region: Region, name: str) -> None:
    region.sites[name].kill()
    region.sites[name].launch()


def test_every_process_killed_once_and_a_cable_pulled_out_change_nothing(tmp_path):
    run(organised(tmp_path / "one", "sealed"), tmp_path / "calm", runtime="in-process")
    with four_machines(tmp_path / "four") as (region, net):
        conductor = Conductor(region, tmp_path / "run", net.inside("coordinator") if net else ())
        conductor.at(4, lambda: fall_and_rise(region, "hospital"))
        conductor.at(12, conductor.kill)
        conductor.at(16, lambda: fall_and_rise(region, "insurer"))
        conductor.at(22, lambda: fall_and_rise(region, "registry"))
        cuts = [threading.Thread(target=net.cut, args=("insurer", 2.0))] if net else []
        for cut in cuts:
            conductor.at(26, cut.start)
        code, said = conductor.run()
        for cut in cuts:
            cut.join()
    assert code == 0, said
    assert all((tmp_path / "run" / name).read_bytes() == (tmp_path / "calm" / name).read_bytes() for name in FILES)
