from typing import Any

import pytest

from harness.cluster.addresses import Slot
from harness.cluster.policies import World, matches, ruleset

SLOT = Slot(0)


def pod(name: str, address: str, namespace: str = "here", **labels: str) -> dict[str, Any]:
    ports = [{"name": "redis", "containerPort": 6379}]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"ports": ports}]},
        "status": {"podIP": address},
    }


PODS = (
    pod("broker", "198.18.1.2", app="broker"),
    pod("client", "198.18.1.3", role="client"),
    pod("far-client", "198.18.2.2", namespace="there", role="client"),
)
NAMESPACES = {"here": {"name": "here"}, "there": {"name": "there"}}


def rules(**spec: Any) -> str:
    policy = {
        "metadata": {"namespace": "here"},
        "spec": {"podSelector": {"matchLabels": {"app": "broker"}}, "policyTypes": ["Ingress"], **spec},
    }
    return ruleset(World(PODS, NAMESPACES, (policy,)), SLOT)


def test_without_policies_nothing_is_dropped() -> None:
    assert "drop" not in ruleset(World(PODS, NAMESPACES, ()), SLOT)


def test_a_selected_pod_without_rules_lets_nobody_in() -> None:
    text = rules()
    assert "ip daddr 198.18.1.2 jump ingress-198-18-1-2" in text
    assert "return" not in text
    assert text.count("drop") == 1


@pytest.mark.parametrize(
    ("peer", "let_in"),
    [
        ({"podSelector": {"matchLabels": {"role": "client"}}}, "ip saddr { 198.18.1.3 } tcp dport 6379 return"),
        (
            {"podSelector": {"matchLabels": {"role": "client"}}, "namespaceSelector": {}},
            "ip saddr { 198.18.1.3, 198.18.2.2 } tcp dport 6379 return",
        ),
        ({"namespaceSelector": {"matchLabels": {"name": "there"}}}, "ip saddr { 198.18.2.2 } tcp dport 6379 return"),
        (
            {"ipBlock": {"cidr": "198.18.0.0/16", "except": ["198.18.2.0/24"]}},
            "ip saddr 198.18.0.0/16 ip saddr != 198.18.2.0/24 tcp dport 6379 return",
        ),
    ],
)
def test_a_peer_is_let_in_by_pod_by_namespace_or_by_address(peer: dict[str, Any], let_in: str) -> None:
    assert let_in in rules(ingress=[{"from": [peer], "ports": [{"port": 6379}]}])


@pytest.mark.parametrize(
    ("ports", "let_in"),
    [
        ([], "    return"),
        ([{"port": "redis", "protocol": "TCP"}], "    tcp dport { 6379 } return"),
        ([{"port": 8000, "endPort": 8010}], "    tcp dport 8000-8010 return"),
        ([{"protocol": "UDP"}], "    meta l4proto udp return"),
    ],
)
def test_a_rule_without_peers_lets_everybody_in_by_its_ports(ports: list[dict[str, Any]], let_in: str) -> None:
    assert let_in in rules(ingress=[{"ports": ports}]).splitlines()


def test_a_peer_that_matches_no_pod_lets_nobody_in() -> None:
    text = rules(ingress=[{"from": [{"podSelector": {"matchLabels": {"role": "nobody"}}}]}])
    assert "return" not in text


def test_egress_is_by_whom_the_pod_dials() -> None:
    text = rules(policyTypes=["Egress"], egress=[{"to": [{"podSelector": {}}]}])
    assert "ip saddr 198.18.1.2 jump egress-198-18-1-2" in text
    assert "ip daddr { 198.18.1.2, 198.18.1.3 } return" in text


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "a", "operator": "In", "values": ["1", "2"]}, True),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, False),
        ({"key": "b", "operator": "NotIn", "values": ["1"]}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "operator": "DoesNotExist"}, False),
    ],
)
def test_a_selectors_expressions_hold_as_kubernetes_has_it(expression: dict[str, Any], fits: bool) -> None:
    assert matches({"matchExpressions": [expression]}, {"a": "1"}) is fits
