"""Multi-site scenarios: what would happen if sites overlapped less, dropped out, lagged or lied."""

from federated_anon.scenario.plan import Play, ScenarioFile, Trouble, load_scenario
from federated_anon.scenario.sites import Site, staged
from federated_anon.scenario.trouble import Troubled

__all__ = ["Play", "ScenarioFile", "Site", "Trouble", "Troubled", "load_scenario", "staged"]
