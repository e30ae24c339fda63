"""Types that many REST schemas share."""

from typing import Annotated

from pydantic import Field, StringConstraints

from catalog.domain.limits import COUNT
from catalog.request_bodies import Text

Count = Annotated[int, Field(ge=0, le=COUNT)]
Glob = Annotated[Text, StringConstraints(min_length=1, max_length=256)]
Name = Annotated[Text, StringConstraints(min_length=1, max_length=255)]
ExternalId = Annotated[Text, StringConstraints(min_length=1, max_length=200)]
