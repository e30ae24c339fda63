"""The health check by REST."""

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from catalog.domain.errors import RETRY_AFTER_SECONDS
from catalog.schemas.health import EncoderOut, HealthOut
from catalog.selectors import health
from catalog.selectors.encoder import EncoderStatus

router = Router(tags=["health"])


@router.get(
    "/health",
    operation_id="get_health",
    summary="Can this instance serve?",
    response={200: HealthOut, 503: HealthOut},
)
def get_health(request: HttpRequest, response: HttpResponse) -> Status[HealthOut]:
    """200 while polls and searches are answered; 503 when they cannot be. Needs no key."""
    found = health.read_health()
    answer = HealthOut(
        status=found.status,
        database=found.database,
        index=found.index,
        worker=found.worker,
        decisions=found.decisions,
        disk=found.disk,
        encoder=_describe_encoder(found.encoder, found.is_by_meaning) if found.encoder else None,
    )
    if not found.can_serve:
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return Status(200 if found.can_serve else 503, answer)


def _describe_encoder(found: EncoderStatus, is_in_force: bool) -> EncoderOut:
    """Without names of hosts and models: this call needs no key. The System page has them."""
    return EncoderOut(
        kind=found.kind,
        state=found.state,
        in_force=is_in_force,
        done=found.done,
        total=found.total,
        resting=found.is_resting,
        last_failure=found.last_failure,
        queries_leave=bool(found.host),
    )
