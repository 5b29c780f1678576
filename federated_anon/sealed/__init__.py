"""Sealed exposure: groups formed by nested splits, so that all messages together tell no more than the release."""

from federated_anon.sealed.groups import SealedGroups, sealed_groups
from federated_anon.sealed.maps import MapProposer
from federated_anon.sealed.partition import NestedPartition, apply, open_groups, winners
from federated_anon.sealed.proposer import Gains, Proposer
from federated_anon.sealed.repair import laddered
from federated_anon.sealed.rules import SplitRules
from federated_anon.sealed.transcript import Level, Transcript, joint_classes, require_sealed

__all__ = [
    "Gains",
    "Level",
    "MapProposer",
    "NestedPartition",
    "Proposer",
    "SealedGroups",
    "SplitRules",
    "Transcript",
    "apply",
    "joint_classes",
    "laddered",
    "open_groups",
    "require_sealed",
    "sealed_groups",
    "winners",
]
