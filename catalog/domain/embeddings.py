"""What is asked of an OpenAI-compatible `/embeddings` endpoint, and how its answer is read."""

import json
from collections.abc import Sequence
from typing import Any

_MOST_DIMENSIONS = 16_384


class EndpointFailure(Exception):
    """The endpoint gave no vectors. The message says why; it holds neither the key nor what was asked."""


class EndpointRefusal(EndpointFailure):
    """The endpoint does not take what it was asked, as a text that is too long: another text it may take."""


def write_request(texts: Sequence[str], model: str) -> dict[str, Any]:
    return {"model": model, "input": list(texts), "encoding_format": "float"}


def read_answer(body: bytes, count: int) -> list[list[float]]:
    """One vector for each text, in their order. Raises `EndpointFailure` for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise EndpointFailure("its answer is not JSON") from None
    rows = found.get("data") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise EndpointFailure("its answer has no list of vectors")
    if len(rows) != count:
        raise EndpointFailure(f"it was asked for {count} vectors and gave {len(rows)}")
    vectors = _put_in_order(rows)
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1:
        raise EndpointFailure("its vectors have different dimensions")
    if not 1 < min(lengths) <= _MOST_DIMENSIONS:
        raise EndpointFailure(f"its vectors have {min(lengths)} dimensions")
    return vectors


def _put_in_order(rows: list[dict[str, Any]]) -> list[list[float]]:
    """By `index`; some servers leave that out and keep the order of the texts."""
    numbers = [row.get("index", place) for place, row in enumerate(rows)]
    if not all(type(number) is int for number in numbers) or sorted(numbers) != list(range(len(rows))):
        raise EndpointFailure("its vectors are not numbered like the texts")
    vectors = {number: row.get("embedding") for number, row in zip(numbers, rows, strict=True)}
    return [_check_vector(vectors[number]) for number in range(len(rows))]


def _check_vector(vector: Any) -> list[float]:
    if not isinstance(vector, list) or not all(type(value) in {float, int} for value in vector):
        raise EndpointFailure("a vector is not a list of numbers")
    try:
        return [float(value) for value in vector]
    except OverflowError:
        raise EndpointFailure("a vector has a number that is too large") from None
