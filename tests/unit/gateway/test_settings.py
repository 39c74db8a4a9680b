from pathlib import Path

import pytest

from partitionedqueue_gateway.settings import InvalidSetting, Settings


def test_what_is_not_said_has_its_default() -> None:
    assert Settings.of({}) == Settings.of({"PQ_GATEWAY_PORT": "", "PQ_WATCH_NAMESPACES": "", "PQ_GATEWAY_FOLDER": ""})
    assert Settings.of({}) == Settings()
    assert (Settings().port, Settings().amqp_port, Settings().drain_s, Settings().processes) == (8080, 5672, 5.0, 1)


def test_everything_can_be_said() -> None:
    said = Settings.of(
        {
            "PQ_GATEWAY_BIND": "127.0.0.1",
            "PQ_GATEWAY_PORT": "80",
            "PQ_GATEWAY_AMQP_PORT": "0",
            "PQ_GATEWAY_AMQPS_PORT": "off",
            "PQ_GATEWAY_HTTPS_PORT": "443",
            "PQ_GATEWAY_TLS": "certificate",
            "PQ_GATEWAY_POLICIES": "policies",
            "PQ_GATEWAY_ANONYMOUS": "true",
            "PQ_GATEWAY_DEFAULT_NAMESPACE": "shop",
            "PQ_GATEWAY_DRAIN_SECONDS": "0.5",
            "PQ_GATEWAY_PROCESSES": "4",
            "PQ_GATEWAY_FOLDER": "queues",
            "PQ_WATCH_NAMESPACES": "shop, office,shop",
        }
    )
    assert said == Settings(
        bind="127.0.0.1",
        port=80,
        amqp_port=0,
        amqps_port=None,
        https_port=443,
        tls=Path("certificate"),
        policies=Path("policies"),
        anonymous=True,
        default_namespace="shop",
        drain_s=0.5,
        processes=4,
        namespaces=("shop", "office"),
        folder=Path("queues"),
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PQ_GATEWAY_PORT", "70000"),
        ("PQ_GATEWAY_PORT", "-1"),
        ("PQ_GATEWAY_AMQP_PORT", "8080.5"),
        ("PQ_GATEWAY_ANONYMOUS", "1"),
        ("PQ_GATEWAY_DEFAULT_NAMESPACE", "Shop"),
        ("PQ_GATEWAY_PROCESSES", "0"),
        ("PQ_GATEWAY_PROCESSES", "65"),
        ("PQ_GATEWAY_DRAIN_SECONDS", "an hour"),
        ("PQ_GATEWAY_DRAIN_SECONDS", "301"),
        ("PQ_WATCH_NAMESPACES", "shop,Office"),
    ],
)
def test_what_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=name):
        Settings.of({name: value})


def test_ports_for_tls_alone_are_opened_only_with_a_certificate() -> None:
    plain = Settings.of({"PQ_GATEWAY_PORT": "off"}).entrances
    assert [(one.port, one.tls_only) for one in plain] == [(5672, False)]
    both = Settings.of({"PQ_GATEWAY_TLS": "certificate"}).entrances
    assert [(one.port, one.tls_only) for one in both] == [(8080, False), (5672, False), (5671, True), (8443, True)]
