"""What the operator's environment may say."""

import pytest

from partitionedqueue_operator.settings import InvalidSetting, Settings


def test_only_the_brokers_image_must_be_said() -> None:
    settings = Settings.from_environment({"PQ_BROKER_IMAGE": "broker:1"})
    assert settings == Settings(broker_image="broker:1")
    assert settings.network_policies
    assert settings.entities_max == 100


def test_everything_can_be_said() -> None:
    settings = Settings.from_environment(
        {
            "PQ_BROKER_IMAGE": "broker:1",
            "PQ_BROKER_IMAGE_PULL_POLICY": "Always",
            "PQ_OPERATOR_NAMESPACE": "system",
            "PQ_OPERATOR_POD": "operator-1",
            "PQ_RELEASE": "pq",
            "PQ_NETWORK_POLICIES": "False",
            "PQ_WATCH_NAMESPACES": "a, b,",
            "PQ_OPERATOR_PORT": "9000",
            "PQ_LOG_LEVEL": "DEBUG",
            "PQ_ENTITIES_MAX": "3",
        }
    )
    assert settings == Settings(
        broker_image="broker:1",
        broker_image_pull_policy="Always",
        namespace="system",
        pod="operator-1",
        release="pq",
        network_policies=False,
        watch_namespaces=("a", "b"),
        port=9000,
        log_level="debug",
        entities_max=3,
    )


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PQ_BROKER_IMAGE", "", "names the image of the broker pods"),
        ("PQ_NETWORK_POLICIES", "maybe", "write true or false"),
        ("PQ_OPERATOR_PORT", "http", "write a whole number up to 65535"),
        ("PQ_OPERATOR_PORT", "65536", "write a whole number up to 65535"),
        ("PQ_ENTITIES_MAX", "101", "write a whole number up to 100"),
        ("PQ_LOG_LEVEL", "loud", "one of debug, info, warning, error"),
    ],
)
def test_what_cannot_be_is_refused_in_words(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        Settings.from_environment({"PQ_BROKER_IMAGE": "broker:1", name: value})
