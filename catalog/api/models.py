"""REST calls for the table of language models."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Path, Router, Status

from catalog.access.callers import ADMIN_KEY, ANY_KEY, caller_of
from catalog.api.preconditions import precondition_of, send_version
from catalog.models import ModelSupport
from catalog.schemas.models import ModelIn, ModelListOut, ModelOut, ModelPatchIn
from catalog.selectors.models import find_model
from catalog.services import model_support

router = Router(tags=["models"], auth=ANY_KEY)

Id = Annotated[int, Path(ge=1, le=2**63 - 1)]


@router.get("/models", operation_id="list_models", summary="The table of models", response=ModelListOut)
def list_models(request: HttpRequest) -> ModelListOut:
    """`format=auto` reads it; of the patterns that fit a name, the longest counts."""
    return ModelListOut(items=[ModelOut.from_orm(row) for row in ModelSupport.objects.all()], next=None)


@router.post(
    "/models", operation_id="create_model", summary="Add a row", response={201: ModelOut}, auth=ADMIN_KEY
)
def create_model(request: HttpRequest, wanted: ModelIn) -> Status[ModelOut]:
    saved = model_support.save_model(**wanted.model_dump(), actor=caller_of(request).actor)
    return Status(201, ModelOut.from_orm(saved.row))


@router.get("/models/{int:model_id}", operation_id="get_model", summary="One row", response=ModelOut)
def get_model(request: HttpRequest, response: HttpResponse, model_id: Id) -> ModelOut:
    """Its `ETag` is for the `If-Match` of a change."""
    return _answer(response, find_model(model_id))


@router.put(
    "/models/{int:model_id}",
    operation_id="change_model",
    summary="Change a row",
    response=ModelOut,
    auth=ADMIN_KEY,
)
def change_model(request: HttpRequest, response: HttpResponse, model_id: Id, wanted: ModelIn) -> ModelOut:
    """The row becomes what is given. `If-Match` as for PATCH."""
    saved = model_support.save_model(
        **wanted.model_dump(),
        actor=caller_of(request).actor,
        model_id=model_id,
        if_unchanged=precondition_of(request),
    )
    return _answer(response, saved.row)


@router.patch(
    "/models/{int:model_id}",
    operation_id="patch_model",
    summary="Change fields of a row",
    response=ModelOut,
    auth=ADMIN_KEY,
)
def patch_model(request: HttpRequest, response: HttpResponse, model_id: Id, wanted: ModelPatchIn) -> ModelOut:
    """Fields that are left out stay. Null takes a window or a price away, and leaves any other field.

    With an `If-Match` that no longer holds nothing is changed, and a 412 tells what has changed.
    """
    saved = model_support.change_model(
        model_id=model_id,
        changed=wanted.changes(),
        actor=caller_of(request).actor,
        if_unchanged=precondition_of(request),
    )
    return _answer(response, saved.row)


@router.delete(
    "/models/{int:model_id}",
    operation_id="delete_model",
    summary="Remove a row",
    response={204: None},
    auth=ADMIN_KEY,
)
def delete_model(request: HttpRequest, model_id: Id) -> Status[None]:
    model_support.delete_model(model_id=model_id, actor=caller_of(request).actor)
    return Status(204, None)


def _answer(response: HttpResponse, row: ModelSupport) -> ModelOut:
    send_version(response, model_support.version_of(row))
    return ModelOut.from_orm(row)
