"""Resources keep their servers' addresses inside the gateway's."""

import pytest

from sessions.domain.resource_addresses import (
    encode_odd_characters,
    fits_template,
    read_address,
    write_address,
    write_template,
)


def test_address_comes_back_whole() -> None:
    address = write_address("io.example/notes", "file:///a b/ü?x=1#y")
    assert read_address(address) == ("io.example/notes", "file:///a b/ü?x=1#y")


@pytest.mark.parametrize(
    "address", ["test://x", "toolsearch://", "toolsearch://notes", "toolsearch:///x", ""]
)
def test_other_addresses_are_none_of_ours(address: str) -> None:
    assert read_address(address) is None


def test_filled_template_reads_as_the_servers_own() -> None:
    template = write_template("notes", "note://{id}/text")
    assert read_address(template.replace("{id}", "7")) == ("notes", "note://7/text")


def test_filled_template_keeps_what_was_encoded() -> None:
    """But for a slash, which cannot be told from one of the template's own."""
    template = write_template("notes", "note://{id}")
    server, uri = read_address(template.replace("{id}", "a%20b%C3%BC")) or ("", "")
    assert (server, encode_odd_characters(uri)) == ("notes", "note://a%20b%C3%BC")


@pytest.mark.parametrize(
    ("uri", "fits"),
    [
        ("note://7/text", True),
        ("note://a/b/text", True),
        ("note:///text", False),
        ("note://7/picture", False),
        ("file://7/text", False),
    ],
)
def test_address_fits_a_template(uri: str, fits: bool) -> None:
    assert fits_template(uri, "note://{id}/text") is fits


def test_address_without_braces_is_no_template() -> None:
    assert not fits_template("note://7", "note://7")
