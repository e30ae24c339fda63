"""Values of REST calls that many of them have."""

from typing import Annotated

from pydantic import Field, StringConstraints

from catalog.request_bodies import Text

__all__ = ["LARGEST", "LARGEST_ID", "Count", "ExternalId", "Glob", "Name", "ShortText", "Text"]

LARGEST = 2**31 - 1
LARGEST_ID = 2**63 - 1

Count = Annotated[int, Field(ge=0, le=LARGEST)]
Glob = Annotated[Text, StringConstraints(min_length=1, max_length=256)]
Name = Annotated[Text, StringConstraints(min_length=1, max_length=255)]
ExternalId = Annotated[Text, StringConstraints(min_length=1, max_length=200)]
ShortText = Annotated[Text, StringConstraints(max_length=100)]
