"""The folder that instances begin with can be copied while workers read its database."""

from contextlib import closing

from tests.harness.prepared import KEPT, open_database, prepare_once


def test_reading_the_database_leaves_no_file_beside_it() -> None:
    with closing(open_database()) as database:
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()
        found = {file.name for file in prepare_once().iterdir()}
    assert tables > 20
    assert found == set(KEPT)
