"""Request and response bodies of the health check."""

from datetime import datetime

from ninja import Field, Schema


class EncoderOut(Schema):
    """What turns texts into vectors. `state` is `ok` or says in words what is wrong or under way."""

    kind: str = Field(examples=["words"], description="`words`, `none`, `onnx` or `endpoint`.")
    state: str = Field(examples=["ok"])
    in_force: bool = Field(description="Whether searches on this node go by meaning; else by words alone.")
    done: int = Field(0, description="Tools with a vector, where vectors are kept in the database.")
    total: int = 0
    resting: bool = Field(False, description="Whether the endpoint failed and is not asked for a while.")
    last_failure: datetime | None = Field(None, description="Of a query at the endpoint, on this node.")
    queries_leave: bool = Field(False, description="Whether texts of queries are sent to an endpoint.")


class HealthOut(Schema):
    """Each part is `ok` or says in words what is wrong with it."""

    status: str = Field(examples=["ok"])
    database: str = Field(examples=["ok"])
    index: str = Field(examples=["ok"])
    worker: str = Field(examples=["ok"])
    decisions: str = Field(examples=["ok"])
    disk: str = Field(examples=["ok"])
    encoder: EncoderOut | None = Field(None, examples=[{"kind": "words", "state": "ok", "in_force": True}])
