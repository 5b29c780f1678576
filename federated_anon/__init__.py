"""One joint k-anonymous table from organisations that hold different columns about the same people."""

from federated_anon.errors import FederatedAnonError
from federated_anon.simulate import Result, run, simulate
from federated_anon.study import Study, load_study

__all__ = ["FederatedAnonError", "Result", "Study", "load_study", "run", "simulate"]
