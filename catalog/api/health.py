"""Can this instance serve?"""

from django.http import HttpRequest
from ninja import Router, Status

from catalog.schemas import HealthOut
from catalog.selectors import health

router = Router(tags=["health"])


@router.get(
    "/health",
    operation_id="get_health",
    summary="Can this instance serve?",
    response={200: HealthOut, 503: HealthOut},
)
def get_health(request: HttpRequest) -> Status[HealthOut]:
    """200 while polls and searches are answered; 503 when they cannot be. Needs no key."""
    found = health.read_health()
    answer = HealthOut(
        status=found.status,
        database=found.database,
        index=found.index,
        worker=found.worker,
        decisions=found.decisions,
    )
    return Status(200 if found.can_serve else 503, answer)
