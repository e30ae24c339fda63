"""Money: prices per million tokens, costs per 1,000 requests."""

from decimal import Decimal

import pytest

from catalog.domain.prices import ModelPrices, read_price, write_dollars


def test_cost_of_a_thousand_requests() -> None:
    prices = ModelPrices("m", fresh=Decimal(5), cached=Decimal("0.5"))
    assert prices.per_thousand_requests(2292) == Decimal("11.46")
    assert prices.per_thousand_cached(2292) == Decimal("1.146")
    assert ModelPrices("m", fresh=Decimal(5)).per_thousand_cached(2292) is None


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0.00"),
        ("0.004", "<$0.01"),
        ("-0.004", "−<$0.01"),
        ("0.01", "$0.01"),
        ("11.456", "$11.46"),
        ("-1.5", "−$1.50"),
        ("99.99", "$99.99"),
        ("12345.6", "$12,346"),
    ],
)
def test_dollars_are_written_in_cents(amount: str, text: str) -> None:
    assert write_dollars(Decimal(amount)) == text


def test_price_is_read_to_six_decimals() -> None:
    assert read_price(None) is None
    assert read_price(0.1) == Decimal("0.1")
    assert read_price(Decimal("1.23456789")) == Decimal("1.234568")
    for wrong in (-1, 1e6, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="must be a number from 0 to 100,000"):
            read_price(wrong)
