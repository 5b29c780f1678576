"""What can be checked before a study on a Ray cluster: token, TLS, and a live node for every holder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from federated_anon.errors import FederatedAnonError
from federated_anon.findings import Finding

CLUSTER = "cluster"
TLS_FILES = ("RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")


def examine_cluster(address: str, resources: Mapping[str, str | None]) -> list[Finding]:
    """Settings of this process, which Ray hands on as they are, and the nodes that are up; by holder's resource."""
    findings = [examine_token(os.environ), *examine_tls(os.environ)]
    if not all(finding.ok for finding in findings if finding.subject == "files"):
        return findings
    return [*findings, *examine_nodes(address, resources)]


def examine_token(environment: Mapping[str, str]) -> Finding:
    """A cluster without a token runs code for whoever reaches its port."""
    if environment.get("RAY_AUTH_MODE") != "token":
        cure = "anyone who reaches the cluster can run code on it: set RAY_AUTH_MODE=token on every node and here"
        return Finding(False, CLUSTER, "token", cure)
    path = environment.get("RAY_AUTH_TOKEN_PATH")
    if not environment.get("RAY_AUTH_TOKEN") and path and not Path(path).is_file():
        return Finding(False, CLUSTER, "token", f"RAY_AUTH_TOKEN_PATH names no file: {path}")
    return Finding(True, CLUSTER, "token", "asked of whoever connects")


def examine_tls(environment: Mapping[str, str]) -> list[Finding]:
    """Is what crosses between nodes encrypted, and are the files of it there and private?"""
    if environment.get("RAY_USE_TLS") != "1":
        cure = "cell indices and releases cross between nodes in the clear: set RAY_USE_TLS=1 and its files everywhere"
        return [Finding(False, CLUSTER, "TLS", cure)]
    faults = []
    for name in TLS_FILES:
        path = environment.get(name, "")
        if not path or not Path(path).is_file():
            faults.append(f"{name} names no file")
        elif name.endswith("KEY") and Path(path).stat().st_mode & 0o077:
            faults.append(f"others can read the key of {name}: chmod 600 {path}")
    if faults:
        return [Finding(False, CLUSTER, "files", fault) for fault in faults]
    return [Finding(True, CLUSTER, "TLS", "between all nodes, both sides with certificates")]


def examine_nodes(address: str, resources: Mapping[str, str | None]) -> list[Finding]:
    """Is the cluster there, with a node for each holder?"""
    from coordinator.runtime import live_resources

    try:
        live = live_resources(address)
    except FederatedAnonError as error:
        return [Finding(False, CLUSTER, "nodes", str(error))]
    found = [Finding(True, CLUSTER, "nodes", f"{len(live)} up")]
    for holder, resource in resources.items():
        nodes = [node for node, has in live.items() if resource in has] if resource else list(live)
        text = f"resource '{resource}' at {', '.join(sorted(nodes))}" if resource else "no resource named: any node"
        if not nodes:
            text = f"no live node has the resource '{resource}': start one with --resources='{{\"{resource}\": 1}}'"
        found.append(Finding(bool(nodes), holder, "node", text))
    return found
