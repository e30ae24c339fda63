"""The list that REST and the console show is, to the letter, the one that a client is given."""

import pytest

from catalog.domain.choices import Exposure, Mode
from sessions.domain.gateway_names import NameStyle
from sessions.domain.revisions import Revision
from sessions.offers.gateway_offer import gateway_offer_of
from sessions.selectors import gateway_lists
from tests.harness.gateway import ERAS, RunningGateway
from tests.sessions.gateway.catalog import ON_THREADS, Catalog

pytestmark = ON_THREADS

VIEWS = [(exposure, names) for exposure in Exposure for names in NameStyle]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the version by which the gateway of the tests names itself."""
    monkeypatch.setattr("sessions.offers.gateway_offer.GATEWAY_PAGE_ENTRIES", 10)
    monkeypatch.setattr("sessions.selectors.gateway_lists.metadata.version", lambda name: "1")


@pytest.mark.parametrize("view", VIEWS, ids=["-".join(view) for view in VIEWS])
@pytest.mark.parametrize("era", ERAS)
def test_says_what_the_gateway_answers(
    gateway: RunningGateway, catalog: Catalog, era: str, view: tuple[Exposure, NameStyle]
) -> None:
    catalog.change(mode=Mode.ALWAYS, never_defer=["*/echo", "*/b*"])
    exposure, names = view
    offer = gateway_offer_of(catalog.policy.pk, exposure=exposure, names=names)
    query = f"?expose={exposure}&names={names}"
    cursor: str | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        asked: dict[str, str] = {"cursor": cursor} if cursor else {}
        given = gateway.ask(catalog.key, "tools/list", asked, era=era, query=query).result
        assert gateway_lists.list_tools(offer, revision=Revision(era), cursor=cursor) == given
        cursor, pages = given.get("nextCursor"), pages + 1
    assert pages == (3 if exposure is Exposure.NATIVE else 1)
