"""Keys by REST: an admin makes, lists and revokes them."""

import pytest

from catalog.models import ApiKey
from tests.sessions.api.calling import Agent, make_agent

pytestmark = pytest.mark.django_db

POLL = "/policies/default/tools"


def test_key_made_by_rest_works_and_is_shown_once() -> None:
    admin = make_agent(admin=True)
    made = admin.post("/keys", {"name": "bot", "rate_limit_per_minute": 9}, status=201)
    bot = Agent(ApiKey.objects.get(pk=made["id"]), made["key"])
    assert bot.get(POLL).status_code == 200
    listed = admin.read("/keys")["items"]
    assert made["key"] not in str(listed)
    assert {key["name"]: key["rate_limit_per_minute"] for key in listed}["bot"] == 9
    assert admin.call("DELETE", f"/keys/{made['id']}").status_code == 204
    assert bot.get(POLL).status_code == 401
    assert {key["id"]: key["state"] for key in admin.read("/keys")["items"]}[made["id"]] == "revoked"
