"""Which encoder turns texts into vectors: the values of `TOOLSEARCH_ENCODER`."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

WORDS, NONE, ONNX = "words", "none", "onnx:"
ADDRESSES = ("http://", "https://")
MODEL, TOKENIZER = "model.onnx", "tokenizer.json"


@dataclass(frozen=True, slots=True)
class EncoderSetting:
    """`value` is `words`, `none`, `onnx:` with a folder, or an endpoint's address. A prefix that is None is
    the encoder's own.
    """

    value: str = WORDS
    model: str = ""
    key: str = field(default="", repr=False)
    query_prefix: str | None = None
    text_prefix: str | None = None

    @property
    def is_endpoint(self) -> bool:
        return self.value.startswith(ADDRESSES)


def is_encoder_value(text: str) -> bool:
    return text in {WORDS, NONE} or text.startswith((ONNX, *ADDRESSES))


def complete_address(address: str) -> str:
    """An address that ends before `/embeddings`, as programs for such endpoints are given, is completed."""
    parts = urlsplit(address)
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith("/embeddings") else f"{path}/embeddings").geturl()


def find_missing(folder: Path) -> str:
    """The first file that an encoder's folder needs and lacks; empty where it has all."""
    return next((name for name in (MODEL, TOKENIZER) if not (folder / name).is_file()), "")
