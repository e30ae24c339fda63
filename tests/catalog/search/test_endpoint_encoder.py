"""A query waits for an endpoint for its time limit; those after it go by words until it has rested."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from catalog.domain.embeddings import EndpointFailure, EndpointRefusal
from catalog.search.encoders import fit_queries
from catalog.search.endpoint_encoder import QUERY_SECONDS, EndpointEncoder
from catalog.search.endpoint_rest import REST_SECONDS, EndpointRest
from catalog.search.errors import UnusableEncoder

ADDRESS = "https://vectors.example.com/v1/embeddings"


class Endpoint:
    """Gives each text its length and a one, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[str], float]] = []
        self.failure: EndpointFailure | None = None
        self.dimensions = 2

    def embed(self, texts: Sequence[str], within_seconds: float) -> list[list[float]]:
        self.asked.append((texts, within_seconds))
        if self.failure:
            raise self.failure
        return [[float(len(text)), *[1.0] * (self.dimensions - 1)] for text in texts]


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def make(endpoint: Endpoint, rest: EndpointRest | None = None, **prefixes: str) -> EndpointEncoder:
    return EndpointEncoder(ADDRESS, "tiny-1", endpoint.embed, rest, **prefixes)


def test_queries_are_normalised_and_remembered() -> None:
    endpoint = Endpoint()
    encoder = make(endpoint, query_prefix="query: ")
    first, again = encoder.encode_query("rain"), encoder.encode_query("rain")
    assert first is not None
    assert first is again
    assert float(first.vector @ first.vector) == pytest.approx(1)
    assert endpoint.asked == [(["query: rain"], QUERY_SECONDS)]


def test_after_a_failure_it_rests_and_then_heals() -> None:
    endpoint, clock = Endpoint(), Clock()
    encoder = make(endpoint, EndpointRest(clock=clock))
    remembered = encoder.encode_query("rain")
    endpoint.failure = EndpointFailure("it is away")
    assert encoder.encode_query("storm") is None
    assert encoder.problem == "vectors.example.com: it is away"
    endpoint.failure = None
    assert encoder.encode_query("storm") is None
    assert encoder.encode_query("rain") is remembered
    assert len(endpoint.asked) == 2
    clock.now += REST_SECONDS
    assert encoder.encode_query("storm") is not None
    assert encoder.problem == ""
    assert encoder.rest.read().count == 1


def test_processes_of_a_node_rest_together(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "data" / "rest.json"
    first, second = Endpoint(), Endpoint()
    first.failure = EndpointFailure("it is away")
    one, other = (make(each, EndpointRest(file, clock=clock)) for each in (first, second))
    assert one.encode_query("rain") is None
    assert other.encode_query("rain") is None
    assert (len(first.asked), len(second.asked)) == (1, 0)
    assert other.problem == "vectors.example.com: it is away"
    clock.now += REST_SECONDS
    assert other.encode_query("rain") is not None


def test_clock_that_was_set_back_ends_the_rest() -> None:
    clock = Clock()
    rest = EndpointRest(clock=clock)
    rest.begin("away")
    clock.now -= 3600
    assert not rest.is_resting()


@pytest.mark.parametrize("content", [b"", b"junk", b"[]", b'{"other": 1}'])
def test_damaged_file_is_no_failure(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rest.json").write_bytes(content)
    assert not EndpointRest(tmp_path / "rest.json").is_resting()


def test_folder_that_cannot_be_written_lets_this_process_rest_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    rest = EndpointRest(tmp_path / "file" / "rest.json")
    rest.begin("away")
    assert rest.is_resting()


def test_texts_go_in_batches_with_their_prefix_and_cut() -> None:
    endpoint = Endpoint()
    vectors = make(endpoint, text_prefix="passage: ").encode(["x" * 5000, *["y"] * 40])
    assert vectors.shape == (41, 2)
    assert [len(texts) for texts, _ in endpoint.asked] == [32, 9]
    assert {text[:10] for texts, _ in endpoint.asked for text in texts} == {"passage: x", "passage: y"}
    assert max(len(text) for texts, _ in endpoint.asked for text in texts) == 2000


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 0.0])
def test_vectors_without_a_direction_are_refused(value: float) -> None:
    encoder = EndpointEncoder(ADDRESS, "tiny-1", lambda texts, _: [[value, 0.0] for _text in texts])
    with pytest.raises(UnusableEncoder, match="no length or is not finite"):
        encoder.encode(["rain"])


def test_it_is_not_asked_of_signs_alone() -> None:
    endpoint = Endpoint()
    assert make(endpoint).encode_query("?!") is None
    assert endpoint.asked == []


class NarrowEndpoint(Endpoint):
    """Refuses batches with a text that is too long."""

    most_chars = 1000

    def embed(self, texts: Sequence[str], within_seconds: float) -> list[list[float]]:
        if any(len(text) > self.most_chars for text in texts):
            raise EndpointRefusal("it answers with HTTP status 413")
        return super().embed(texts, within_seconds)


def test_text_that_is_too_long_keeps_no_other_from_its_vector() -> None:
    endpoint = NarrowEndpoint()
    texts = ["rain", "storm " * 300, "file"]
    found = make(endpoint).encode(texts)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    endpoint.most_chars = 10
    found = make(endpoint).encode(texts)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1, 0, 1], atol=1e-6)
    with pytest.raises(UnusableEncoder, match="HTTP status 413"):
        make(endpoint).encode(texts[1:2])


def test_half_a_character_is_sent_as_a_question_mark() -> None:
    endpoint = Endpoint()
    assert make(endpoint).encode_query("rain \ud800") is not None
    assert endpoint.asked == [(["rain ?"], QUERY_SECONDS)]


def test_query_with_other_dimensions_than_the_tools_is_a_failure_until_it_fits_again() -> None:
    endpoint, clock = Endpoint(), Clock()
    encoder = make(endpoint, EndpointRest(clock=clock))
    fitting = fit_queries(encoder, 2)
    endpoint.dimensions = 3
    assert fitting.encode_query("rain") is None
    assert "have 3 dimensions, those of the tools 2" in encoder.problem
    endpoint.dimensions = 2
    clock.now += REST_SECONDS
    found = fitting.encode_query("rain")
    assert found is not None
    np.testing.assert_allclose(np.linalg.norm(found.vector), 1, atol=1e-6)


def test_name_tells_model_host_and_settings_apart_and_holds_no_path() -> None:
    names = {
        make(Endpoint()).name,
        make(Endpoint(), query_prefix="q").name,
        EndpointEncoder(ADDRESS, "tiny-2", Endpoint().embed).name,
        EndpointEncoder(f"{ADDRESS}?secret=canary", "tiny-1", Endpoint().embed).name,
    }
    assert len(names) == 4
    assert all("at vectors.example.com:" in name and "canary" not in name for name in names)
