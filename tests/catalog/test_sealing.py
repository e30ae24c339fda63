"""Secrets at rest: bound to their row, opened by any of the keys, and a key file that is made once."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from catalog.sealing import SealBroken, Sealer, create_key, parse_keys, read_key

OLD, NEW, OTHER = (Fernet.generate_key().decode() for _ in range(3))
SECRETS = {"env": {"TOKEN": "canary-4711"}, "args": ["--key", "ключ"]}


def test_what_is_sealed_comes_back_and_does_not_show() -> None:
    token = Sealer([OLD]).seal(SECRETS, context="server:7")
    assert "canary" not in token
    assert Sealer([OLD]).unseal(token, context="server:7") == SECRETS


def test_the_same_secret_never_looks_the_same() -> None:
    sealer = Sealer([OLD])
    assert sealer.seal(SECRETS, context="server:7") != sealer.seal(SECRETS, context="server:7")


def test_a_token_moved_to_another_row_does_not_open() -> None:
    sealer = Sealer([OLD])
    token = sealer.seal(SECRETS, context="server:7")
    with pytest.raises(SealBroken, match="belongs to another row") as broken:
        sealer.unseal(token, context="server:8")
    assert "canary" not in str(broken.value)


@pytest.mark.parametrize(
    "spoil", [lambda token: token[:-4] + "AAAA", lambda token: "", lambda token: "nonsense"]
)
def test_an_altered_token_does_not_open(spoil: object) -> None:
    sealer = Sealer([OLD])
    assert callable(spoil)
    with pytest.raises(SealBroken):
        sealer.unseal(spoil(sealer.seal(SECRETS, context="server:7")), context="server:7")


def test_an_old_key_still_opens_what_it_sealed() -> None:
    token = Sealer([OLD]).seal(SECRETS, context="server:7")
    assert Sealer([NEW, OLD]).unseal(token, context="server:7") == SECRETS


def test_after_rotation_the_old_key_is_no_longer_needed() -> None:
    token = Sealer([OLD]).seal(SECRETS, context="server:7")
    rotated = Sealer([NEW, OLD]).rotate(token)
    assert Sealer([NEW]).unseal(rotated, context="server:7") == SECRETS
    with pytest.raises(SealBroken):
        Sealer([OLD]).unseal(rotated, context="server:7")


def test_without_its_key_a_token_neither_opens_nor_rotates() -> None:
    token = Sealer([OLD]).seal(SECRETS, context="server:7")
    with pytest.raises(SealBroken, match="add the key it was sealed with"):
        Sealer([OTHER]).unseal(token, context="server:7")
    with pytest.raises(SealBroken):
        Sealer([OTHER]).rotate(token)


def test_keys_are_read_newest_first() -> None:
    assert parse_keys(f" {NEW} ,{OLD}") == (NEW, OLD)


@pytest.mark.parametrize(
    "text",
    ["", "secret-but-short", f"{NEW},", f"{NEW} {OLD}"],
    ids=["empty", "short", "trailing comma", "no comma"],
)
def test_a_key_that_is_none_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match="is not a Fernet key") as refusal:
        parse_keys(text)
    assert not text or text not in str(refusal.value)


def test_the_key_file_is_the_owners_alone_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "encryption.key"
    assert read_key(path) is None
    assert create_key(path)
    key = read_key(path)
    assert key is not None
    assert parse_keys(key) == (key,)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not create_key(path)
    assert read_key(path) == key
    assert list(tmp_path.iterdir()) == [path]


def test_many_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    path = tmp_path / "encryption.key"
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: (create_key(path), read_key(path)), range(64)))
    assert sum(was_first for was_first, _ in made) == 1
    assert len({key for _, key in made}) == 1
    assert list(tmp_path.iterdir()) == [path]
