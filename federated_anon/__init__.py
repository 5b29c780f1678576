"""One joint k-anonymous table from organisations that hold different columns about the same people."""

from typing import TYPE_CHECKING, Any

from federated_anon.errors import FederatedAnonError
from federated_anon.simulate import Result, run, simulate

if TYPE_CHECKING:
    from federated_anon.study import Study, load_study

__all__ = ["FederatedAnonError", "Result", "Study", "load_study", "run", "simulate"]


def __getattr__(name: str) -> Any:
    """Names whose modules take their time to load, loaded when they are asked for."""
    if name in ("Study", "load_study"):
        from federated_anon import study

        return getattr(study, name)
    raise AttributeError(f"module 'federated_anon' has no attribute '{name}'")
