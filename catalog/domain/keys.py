"""Makes API keys and checks them against the stored hash."""

import hmac
import re
import secrets
from dataclasses import dataclass

_FORM = re.compile(r"tk_([0-9a-z]{8})_[0-9A-Za-z_-]{43}")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_PREFIX_CHARS = 8
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, repr=False)
class KeyText:
    """A key as its holder has it. `prefix` is public: it finds the row and identifies the key in lists."""

    prefix: str
    text: str


def make_api_key() -> KeyText:
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(_PREFIX_CHARS))
    return KeyText(prefix=prefix, text=f"tk_{prefix}_{secrets.token_urlsafe(_SECRET_BYTES)}")


def read_prefix(text: str) -> str | None:
    """The public prefix of a key, or None for a text that cannot be a key."""
    form = _FORM.fullmatch(text)
    return form.group(1) if form else None


def digest_key(text: str, *, pepper: str) -> str:
    """The hash that is stored. A random key of 256 bits needs no slow hash; the pepper is not in the
    database.
    """
    return hmac.digest(pepper.encode(), text.encode(), "sha256").hex()


def is_same_key(text: str, digest: str, *, pepper: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(digest_key(text, pepper=pepper), digest)
