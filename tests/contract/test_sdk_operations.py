"""The programs of tests/sdk are the same list in each language, and the matrix in docs/reference lists exactly them."""

import re

import pytest

from sdk.matrix import PATH
from sdk.operations import SDKS, names_of, operations


@pytest.mark.parametrize("sdk", SDKS)
def test_each_language_has_a_file_for_each_operation(sdk: str) -> None:
    assert names_of(sdk) == names_of("python")


@pytest.mark.parametrize("sdk", SDKS)
def test_each_operation_says_in_its_first_comment_what_it_shows(sdk: str) -> None:
    assert all(each.about.endswith(".") and "\n" not in each.about for each in operations())


def test_the_matrix_lists_exactly_the_operations_and_the_sdks() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PATH.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == names_of("python")


def test_the_matrix_has_a_result_for_each_sdk() -> None:
    page = PATH.read_text(encoding="utf-8")
    for row in re.findall(r"^\| `.*$", page, re.MULTILINE):
        cells = row.split(" | ")[1 : 1 + len(SDKS)]
        assert all(cell in {"✓", "absent"} for cell in cells), row
