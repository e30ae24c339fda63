"""Opens the encoder that a setting names: the values of `TOOLSEARCH_ENCODER`."""

from pathlib import Path

from catalog.domain.encoder_setting import NONE, ONNX, WORDS, EncoderSetting
from catalog.search import wordvectors
from catalog.search.endpoint_encoder import Embed, EndpointEncoder, FittingEncoder
from catalog.search.endpoint_rest import EndpointRest
from catalog.search.errors import UnusableEncoder
from catalog.search.meaning import Encoder
from catalog.search.onnx_encoder import OnnxEncoder


def open_encoder(
    setting: EncoderSetting, *, embed: Embed | None = None, rest: EndpointRest | None = None
) -> Encoder | None:
    """None for `none`, and for `words` where their package is not installed. `embed` calls the endpoint.

    Raises `UnusableEncoder` for what is not a value, and for a folder without an encoder.
    """
    if setting.value == NONE:
        return None
    if setting.value == WORDS:
        return wordvectors.find_encoder()
    if setting.value.startswith(ONNX):
        return OnnxEncoder(
            Path(setting.value.removeprefix(ONNX)),
            query_prefix=setting.query_prefix,
            text_prefix=setting.text_prefix,
        )
    if setting.is_endpoint and embed is not None:
        return EndpointEncoder(
            setting.value,
            setting.model,
            embed,
            rest,
            query_prefix=setting.query_prefix or "",
            text_prefix=setting.text_prefix or "",
        )
    raise UnusableEncoder(f"'{setting.value}' names no encoder")


def fit_queries(encoder: Encoder, dimensions: int) -> Encoder:
    """The encoder for an index with so many dimensions: what is behind an endpoint may change."""
    return FittingEncoder(encoder, dimensions) if isinstance(encoder, EndpointEncoder) else encoder
