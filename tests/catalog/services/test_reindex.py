"""The index follows the catalog: incrementally after a small change, rebuilt when it is missing
or damaged.
"""

import shutil
from pathlib import Path

import pytest
from django.utils import timezone

from catalog.domain.definitions import Definition
from catalog.models import CatalogVersion, Job, Server, Tool
from catalog.models.jobs import JobKind
from catalog.search import generations, index
from catalog.services import reindex, tools
from tests.harness.rows import make_server, make_tool

pytestmark = pytest.mark.django_db


def names_in(folder: Path) -> list[str]:
    _, compiled = generations.open_current(folder)
    return sorted(compiled.names)


class TestBringUpToDate:
    def test_missing_index_is_built(self, index_folder: Path) -> None:
        make_tool(name="alpha")
        reindex.bring_up_to_date()
        assert names_in(index_folder) == ["alpha"]
        assert index.read_index_state(index_folder).version == CatalogVersion.current()

    def test_change_is_applied_to_the_index_there_is(self, index_folder: Path) -> None:
        server = make_server()
        make_tool(server=server, name="alpha")
        reindex.bring_up_to_date()
        before = generations.read_current(index_folder)
        make_tool(server=server, name="beta")
        reindex.bring_up_to_date()
        assert names_in(index_folder) == ["alpha", "beta"]
        assert generations.read_current(index_folder).store == before.store

    def test_gone_tool_leaves_and_comes_back(self, index_folder: Path) -> None:
        server = make_server()
        make_tool(server=server, name="alpha")
        tools.store_definitions(server=server, definitions=[], now=timezone.now())
        reindex.bring_up_to_date()
        assert names_in(index_folder) == []
        tools.store_definitions(server=server, definitions=[Definition(name="alpha")], now=timezone.now())
        reindex.bring_up_to_date()
        assert names_in(index_folder) == ["alpha"]

    def test_deleted_server_leaves_nothing_behind(self, index_folder: Path) -> None:
        make_tool(name="alpha")
        make_tool(server=make_server(name="other"), name="beta")
        reindex.bring_up_to_date()
        Server.objects.filter(name="other").delete()
        reindex.bring_up_to_date()
        assert names_in(index_folder) == ["alpha"]

    def test_index_of_another_database_is_not_trusted(self, index_folder: Path) -> None:
        server = make_server()
        make_tool(server=server, name="alpha")
        make_tool(server=server, name="beta")
        reindex.bring_up_to_date()
        Tool.objects.update(version=0)
        Tool.objects.filter(name="alpha").update(name="other")
        reindex.bring_up_to_date()
        assert names_in(index_folder) == ["beta", "other"]

    def test_nothing_new_leaves_the_index_as_it_is(self, index_folder: Path) -> None:
        make_tool()
        reindex.bring_up_to_date()
        before = generations.read_current(index_folder)
        reindex.bring_up_to_date()
        assert generations.read_current(index_folder) == before

    def test_damaged_index_is_built_anew(self, index_folder: Path) -> None:
        make_tool(name="alpha")
        reindex.bring_up_to_date()
        generations.generation_file(index_folder, generations.read_current(index_folder).number).write_bytes(
            b"junk"
        )
        reindex.bring_up_to_date()
        assert names_in(index_folder) == ["alpha"]


class TestRequestIfBehind:
    def test_asks_only_when_something_is_to_be_done(self, index_folder: Path) -> None:
        update_jobs = Job.objects.filter(kind=JobKind.UPDATE_INDEX)
        make_tool()
        reindex.bring_up_to_date()
        reindex.request_if_behind()
        assert update_jobs.count() == 0
        make_tool()
        reindex.request_if_behind()
        assert update_jobs.count() == 1
        update_jobs.delete()
        shutil.rmtree(index_folder)
        reindex.request_if_behind()
        assert update_jobs.count() == 1
