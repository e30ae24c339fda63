"""The health check by REST."""

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from catalog.domain.errors import RETRY_AFTER_SECONDS
from catalog.schemas.health import HealthOut
from catalog.selectors import health

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
    )
    if not found.can_serve:
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return Status(200 if found.can_serve else 503, answer)
