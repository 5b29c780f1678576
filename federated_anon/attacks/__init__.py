"""Attackers that try what the messages of a study allow, and what each of them gets out of it."""

from federated_anon.attacks.attempt import Attempt, Verdict
from federated_anon.attacks.scene import Exchange, Scene
from federated_anon.attacks.suite import attempts

__all__ = ["Attempt", "Exchange", "Scene", "Verdict", "attempts"]
