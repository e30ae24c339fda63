"""The arguments or the result of a call as its record keeps them: JSON text, masked and cut."""

import json
from collections.abc import Iterator, Mapping, Sequence

from catalog.domain.dialects.secrets import is_sensitive_name, mask_tokens
from catalog.domain.limits import RECORDED_BYTES
from catalog.domain.marking.mark import MASK

CUT = "… (cut)"
MOST_LEVELS = 40
# What is looked at of a value, and of one text in it: the rest could not be recorded anyway.
LOOKED_AT_CHARS = 4 * RECORDED_BYTES
# The end of a text that was cut before it was masked may hold a part of a secret.
LONGEST_SECRET = 2_000


def write_recorded(value: object, secrets: Sequence[str]) -> str:
    """`secrets` are masked wherever they occur, and so are values under sensitive names and what has the form
    of a token. Takes milliseconds for a large value.
    """
    masker = _Masker(sorted((secret for secret in secrets if secret), key=len, reverse=True))
    text = json.dumps(masker.mask(value), ensure_ascii=False, default=str)
    encoded = text.encode(errors="replace").replace(b"\0", b"?")
    if len(encoded) <= RECORDED_BYTES and not masker.is_cut:
        return encoded.decode()
    return encoded[: RECORDED_BYTES - len(CUT.encode())].decode(errors="ignore") + CUT


class _Masker:
    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets
        self._left = LOOKED_AT_CHARS
        self.is_cut = False

    def mask(self, value: object, level: int = 0) -> object:
        if isinstance(value, str):
            return self._mask_text(value, level)
        if not isinstance(value, (Mapping, list, tuple)):
            return value
        if level >= MOST_LEVELS:
            self.is_cut = True
            return CUT
        if isinstance(value, Mapping):
            return dict(self._mask_members(value, level + 1))
        return list(self._mask_items(value, level + 1))

    def _mask_members(self, members: Mapping[object, object], level: int) -> Iterator[tuple[str, object]]:
        for key, value in members.items():
            if self._is_over(len(str(key))):
                return
            name = self._mask_plain(str(key))
            is_secret = is_sensitive_name(str(key)) and value is not None and not isinstance(value, bool)
            yield name, MASK if is_secret else self.mask(value, level)

    def _mask_items(self, items: Sequence[object], level: int) -> Iterator[object]:
        for item in items:
            if self._is_over(1):
                return
            yield self.mask(item, level)

    def _mask_text(self, text: str, level: int) -> str:
        """JSON inside a text, as most tools answer, is masked as JSON."""
        if level < MOST_LEVELS and len(text) <= self._left and text.lstrip()[:1] in {"{", "[", '"'}:
            try:
                inner = json.loads(text)
            except (ValueError, RecursionError):
                return self._mask_plain(text)
            return json.dumps(self.mask(inner, level + 1), ensure_ascii=False)
        return self._mask_plain(text)

    def _mask_plain(self, text: str) -> str:
        most = max(self._left, 0)
        kept = text[:most]
        self._left -= len(kept)
        for secret in self._secrets:
            kept = kept.replace(secret, MASK)
        kept = mask_tokens(kept)
        if len(text) <= most:
            return kept
        self.is_cut = True
        return kept[:-LONGEST_SECRET]

    def _is_over(self, chars: int) -> bool:
        self._left -= chars
        self.is_cut = self.is_cut or self._left <= 0
        return self._left <= 0
