"""The table of language models by REST: which of them search deferred tools themselves."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Router, Status

from catalog.callers import ADMIN_KEY, ANY_KEY, caller_of
from catalog.models import ModelSupport
from catalog.schemas import ModelIn, ModelListOut, ModelOut
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
    row = model_support.save_model(**wanted.dict(), actor=caller_of(request).actor)
    return Status(201, ModelOut.from_orm(row))


@router.put(
    "/models/{int:model_id}",
    operation_id="change_model",
    summary="Change a row",
    response=ModelOut,
    auth=ADMIN_KEY,
)
def change_model(request: HttpRequest, model_id: Id, wanted: ModelIn) -> ModelOut:
    row = model_support.save_model(**wanted.dict(), actor=caller_of(request).actor, model_id=model_id)
    return ModelOut.from_orm(row)


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
