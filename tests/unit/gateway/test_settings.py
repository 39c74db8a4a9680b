from pathlib import Path

import pytest

from partitionedqueue_gateway.settings import InvalidSetting, Settings


def test_what_is_not_said_has_its_default() -> None:
    assert Settings.of({}) == Settings.of({"PQ_GATEWAY_PORT": "", "PQ_WATCH_NAMESPACES": "", "PQ_GATEWAY_FOLDER": ""})
    assert Settings.of({}) == Settings(bind=None, port=8080, drain_s=5.0, namespaces=(), folder=None)


def test_everything_can_be_said() -> None:
    said = Settings.of(
        {
            "PQ_GATEWAY_BIND": "127.0.0.1",
            "PQ_GATEWAY_PORT": "80",
            "PQ_GATEWAY_DRAIN_SECONDS": "0.5",
            "PQ_GATEWAY_FOLDER": "queues",
            "PQ_WATCH_NAMESPACES": "shop, office,shop",
        }
    )
    assert said == Settings(
        bind="127.0.0.1", port=80, drain_s=0.5, namespaces=("shop", "office"), folder=Path("queues")
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PQ_GATEWAY_PORT", "70000"),
        ("PQ_GATEWAY_PORT", "-1"),
        ("PQ_GATEWAY_DRAIN_SECONDS", "an hour"),
        ("PQ_GATEWAY_DRAIN_SECONDS", "301"),
        ("PQ_WATCH_NAMESPACES", "shop,Office"),
    ],
)
def test_what_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=name):
        Settings.of({name: value})
