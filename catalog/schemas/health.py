"""Request and response bodies of the health check."""

from ninja import Field, Schema


class HealthOut(Schema):
    """Each part is `ok` or says in words what is wrong with it."""

    status: str = Field(examples=["ok"])
    database: str = Field(examples=["ok"])
    index: str = Field(examples=["ok"])
    worker: str = Field(examples=["ok"])
    decisions: str = Field(examples=["ok"])
    disk: str = Field(examples=["ok"])
