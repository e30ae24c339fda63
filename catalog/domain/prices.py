"""What input tokens cost in money."""

from dataclasses import dataclass
from decimal import Decimal

from catalog.domain.limits import MODEL_PRICE_DOLLARS

PRICE_DECIMALS = 6
_STEP = Decimal(1).scaleb(-PRICE_DECIMALS)
_REQUESTS, _TOKENS = 1_000, 1_000_000


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """A model's prices in US dollars per million input tokens; `cached` is None where it is not known."""

    model: str
    fresh: Decimal
    cached: Decimal | None = None
    are_examples: bool = False

    def per_thousand_requests(self, tokens: int) -> Decimal:
        """Dollars that so many input tokens cost in each of 1,000 requests, none of them cached."""
        return tokens * self.fresh * _REQUESTS / _TOKENS

    def per_thousand_cached(self, tokens: int) -> Decimal | None:
        """The same where the provider's prompt cache has them."""
        return None if self.cached is None else tokens * self.cached * _REQUESTS / _TOKENS


def read_price(value: Decimal | float | None) -> Decimal | None:
    """A price as it is stored. Raises ValueError for one that is no price."""
    if value is None:
        return None
    price = value if isinstance(value, Decimal) else Decimal(str(value))
    if not price.is_finite() or not 0 <= price <= MODEL_PRICE_DOLLARS:
        raise ValueError(f"must be a number from 0 to {MODEL_PRICE_DOLLARS:,}")
    return price.quantize(_STEP)


def write_dollars(amount: Decimal) -> str:
    """In cents, and in whole dollars from a hundred on; what is less than a cent is not called nothing."""
    if 0 < abs(amount) < Decimal("0.01"):
        return "<$0.01" if amount > 0 else "\N{MINUS SIGN}<$0.01"
    sign = "\N{MINUS SIGN}" if amount < 0 else ""
    return f"{sign}${abs(amount):,.0f}" if abs(amount) >= 100 else f"{sign}${abs(amount):.2f}"
