"""The encoder of this process, the vectors that are kept for it, and how far they are."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path

from django.conf import settings

from catalog.domain.encoder_setting import ONNX, EncoderSetting
from catalog.models import EncoderState, ToolVector
from catalog.search.encoders import open_encoder
from catalog.search.endpoint_encoder import EndpointEncoder
from catalog.search.endpoint_rest import EndpointRest
from catalog.search.errors import UnusableEncoder
from catalog.search.meaning import Encoder
from catalog.search.onnx_encoder import OnnxEncoder
from catalog.search.stored_vectors import StoredVectors
from catalog.upstream.embeddings import EmbeddingsClient

READ_AT_ONCE = 500
LABELS = {"words": "word vectors", "onnx": "a sentence encoder", "endpoint": "an embeddings endpoint"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EncoderStatus:
    """`kind` is `words`, `none`, `onnx` or `endpoint`; `done` and `total` count tools, 0 where no vectors are
    kept. `problem` is empty while all is well; `host` is where texts of queries are sent, if anywhere.
    `failed_at`, in seconds since 1970, and `failures` are of queries at an endpoint, on this node.
    """

    kind: str
    name: str
    done: int = 0
    total: int = 0
    problem: str = ""
    host: str = ""
    is_resting: bool = False
    failed_at: float = 0.0
    failures: int = 0
    keeps_vectors: bool = False
    is_begun: bool = False

    @property
    def missing(self) -> int:
        return max(0, self.total - self.done)

    @property
    def label(self) -> str:
        """For everybody; empty where search goes by words alone."""
        return LABELS.get(self.kind, "")

    @property
    def state(self) -> str:
        """For everybody: without names of hosts and models."""
        if self.problem:
            return "does not answer" if self.kind == "endpoint" else "cannot be used"
        if self.keeps_vectors and not self.is_begun:
            return "no worker has begun with it"
        return f"{self.done} of {self.total} tools have a vector" if self.missing else "ok"

    @property
    def last_failure(self) -> datetime | None:
        return datetime.fromtimestamp(self.failed_at, tz=UTC) if self.failed_at else None


def find_encoder() -> Encoder | None:
    """What `TOOLSEARCH_ENCODER` names; None for `none`, and where it cannot be opened."""
    return _open(settings.ENCODER, settings.ENCODER_REST_FILE)[0]


def find_kept_encoder() -> Encoder | None:
    """The encoder, where its vectors are kept in the database: those of words are quicker computed."""
    encoder = find_encoder()
    return encoder if encoder is not None and encoder.is_sentence_encoder else None


def load_encoder() -> None:
    """Read a model now, or the first queries of this process would wait for it."""
    encoder = find_encoder()
    if isinstance(encoder, OnnxEncoder):
        try:
            encoder.open()
        except UnusableEncoder as error:
            logger.warning("search goes by words alone: %s", error)


def open_named(setting: EncoderSetting) -> Encoder | None:
    """An encoder of its own, not this process's. Raises UnusableEncoder."""
    return _connect(setting, None)


def read_index_encoder() -> tuple[Encoder | None, int]:
    """What the index is compiled with, and the number of its vectors, read before any of them is."""
    encoder = find_encoder()
    if encoder is None or not encoder.is_sentence_encoder:
        return encoder, 0
    state = EncoderState.objects.filter(name=encoder.name).first() or EncoderState(name=encoder.name)
    read = partial(_read_vectors, state.pk)
    return StoredVectors(encoder.name, state.dimensions, read, edition=state.edition), state.number


def read_vectors_number() -> int:
    """Changes when the index may take over vectors; costs one read, and none for words."""
    encoder = find_kept_encoder()
    if encoder is None:
        return 0
    return EncoderState.objects.filter(name=encoder.name).values_list("number", flat=True).first() or 0


def read_encoder_status() -> EncoderStatus:
    """Costs one read for an encoder whose vectors are kept, none for the others."""
    encoder, problem = _open(settings.ENCODER, settings.ENCODER_REST_FILE)
    kind = _kind_of(settings.ENCODER)
    if encoder is None or not encoder.is_sentence_encoder:
        return EncoderStatus(
            kind if encoder or problem else "none", encoder.name if encoder else "", problem=problem
        )
    state = EncoderState.objects.filter(name=encoder.name).first() or EncoderState(name=encoder.name)
    status = EncoderStatus(
        kind,
        encoder.name,
        done=state.done,
        total=state.total,
        problem=_own_problem(encoder) or state.problem,
        keeps_vectors=True,
        is_begun=state.pk is not None,
    )
    return _add_failures(status, encoder) if isinstance(encoder, EndpointEncoder) else status


def _own_problem(encoder: Encoder) -> str:
    return encoder.problem if isinstance(encoder, OnnxEncoder | EndpointEncoder) else ""


def _add_failures(status: EncoderStatus, encoder: EndpointEncoder) -> EncoderStatus:
    failure = encoder.rest.read()
    return replace(
        status,
        host=encoder.host,
        is_resting=encoder.rest.is_resting(),
        failed_at=failure.at,
        failures=failure.count,
    )


@lru_cache(maxsize=4)
def _open(setting: EncoderSetting, rest_file: Path) -> tuple[Encoder | None, str]:
    """The encoder, or what is wrong with it."""
    try:
        return _connect(setting, rest_file), ""
    except UnusableEncoder as error:
        logger.warning("search goes by words alone: %s", error)
        return None, str(error)


def _connect(setting: EncoderSetting, rest_file: Path | None) -> Encoder | None:
    if not setting.is_endpoint:
        return open_encoder(setting)
    client = EmbeddingsClient(setting.value, setting.model, setting.key)
    return open_encoder(setting, embed=client.embed, rest=EndpointRest(rest_file))


def _kind_of(setting: EncoderSetting) -> str:
    if setting.is_endpoint:
        return "endpoint"
    return "onnx" if setting.value.startswith(ONNX) else setting.value


def _read_vectors(state_id: int | None, digests: Sequence[str]) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    for at in range(0, len(digests) if state_id else 0, READ_AT_ONCE):
        rows = ToolVector.objects.filter(encoder_id=state_id, digest__in=digests[at : at + READ_AT_ONCE])
        found.update((digest, bytes(vector)) for digest, vector in rows.values_list("digest", "vector"))
    return found
