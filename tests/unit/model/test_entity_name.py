from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.model import limits
from partitionedqueue.model.entity_name import ANNOTATION, is_entity_name, object_name, shown_name
from partitionedqueue.model.manifest_fields import is_name

AZURES = st.from_regex(r"\A[A-Za-z0-9]([A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?\Z").filter(is_entity_name)


@given(AZURES)
def test_every_name_of_azure_makes_one_that_kubernetes_allows(name: str) -> None:
    assert is_name(object_name(name))


@given(st.text(max_size=300))
def test_so_does_whatever_somebody_asks_for(name: str) -> None:
    assert is_name(object_name(name))


@given(AZURES)
def test_case_does_not_count_but_is_kept(name: str) -> None:
    assert object_name(name.upper()) == object_name(name.lower()) == object_name(name)
    assert shown_name({"name": object_name(name), "annotations": {ANNOTATION: name}}) == name


@given(st.lists(AZURES, min_size=2, max_size=20, unique_by=str.lower))
def test_two_names_are_two_objects(names: list[str]) -> None:
    assert len({object_name(name) for name in names}) == len(names)


@given(AZURES)
def test_the_name_of_an_object_is_its_own(name: str) -> None:
    once = object_name(name)
    assert object_name(once) == once


def test_the_names_of_the_documentation_stay_what_they_are() -> None:
    assert object_name("orders") == object_name("Orders") == "orders"
    assert object_name("My_Queue") == "my-queue-4uleqrrw4y"
    assert object_name("eu/orders.1") == "eu-orders-1-keakrx4yx2"
    assert object_name("2024") == "q-2024-mvlxhgthfa"


def test_names_that_azure_refuses_are_none() -> None:
    refused = ("", "/a", "a/", "a//b", "-a", "a-", "a/-b", "a b", "a$b", "größe", "a\n", "a" * 261)
    assert [name for name in refused if is_entity_name(name)] == []
    assert is_entity_name("a" * limits.ENTITY_NAME_CHARACTERS_MAX)


def test_an_annotation_that_does_not_make_the_objects_name_is_not_believed() -> None:
    for foreign in ("another", "a b", "", 7, None):
        assert shown_name({"name": "orders", "annotations": {ANNOTATION: foreign}}) == "orders"
    assert shown_name({"name": "orders", "annotations": None}) == "orders"
    assert shown_name({"name": "orders"}) == "orders"
