# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Quantities against the numbers that they stand for."""
from __future__ import annotations

from fractions import Fraction

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.quantity import format_memory, parse_quantity
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("132", 132), ("80Gi", 80 * 2**30), ("81559Mi", 81559 * 2**20), ("1.5Gi", 3 * 2**29), ("1k", 1000), ("1M", 10**6), ("2E", 2 * 10**18),
        ("1e3", 1000), ("1E3", 1000), ("500m", Fraction(1, 2)), ("1u", Fraction(1, 10**6)), ("-2Ki", -2048), (".5", Fraction(1, 2)), ("+1.", 1),
    ],
)  # fmt: skip
def test_value(text: str, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "Mi", "1mi", "1 Gi", "1Gib", "0x10", "1e", "1.2.3", "NaN"])
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@given(st.integers(min_value=0, max_value=2**40))
def test_mebibytes_survive(mebibytes: int) -> None:
    assert format_memory(parse_quantity(f"{mebibytes}Mi")) == f"{mebibytes}Mi"


def test_two_spellings_are_equal() -> None:
    assert parse_quantity("80Gi") == parse_quantity("81920Mi") == parse_quantity(str(80 * 2**30))
