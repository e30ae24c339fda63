"""What an authorization server or a website may answer in place of what it should: `SignInServer.answers`."""

import gzip
import json

from tests.harness.sign_in_server import Answer, Handler


def send_json(value: object, status: int = 200) -> Answer:
    return lambda handler: handler.send_json(value, status)


def send_status(status: int) -> Answer:
    return lambda handler: handler.send_body(status, b"no", "text/plain")


def redirect_to(url: str) -> Answer:
    return lambda handler: handler.send_body(307, b"", "text/plain", location=url)


def send_html(handler: Handler) -> None:
    handler.send_body(200, b"<!doctype html><h1>Sign in</h1>", "text/html")


def send_huge(handler: Handler) -> None:
    """10 MB of what is asked for."""
    handler.send_json({**handler.signer.describe(), "more": "x" * 10_000_000})


def send_packed(handler: Handler) -> None:
    body = gzip.compress(json.dumps({**handler.signer.describe(), "more": " " * 10_000_000}).encode())
    handler.send_body(200, body, "application/json", content_encoding="gzip")


def send_endless(handler: Handler) -> None:
    """As much as is taken."""
    _begin_endless(handler)
    while not handler.signer.is_over.is_set():
        handler.wfile.write(b" " * 65_536)


def send_never_ending(handler: Handler) -> None:
    """A byte now and then, so that it is never silent for long."""
    _begin_endless(handler)
    while not handler.signer.is_over.wait(0.02):
        handler.wfile.write(b" ")


def send_nothing(handler: Handler) -> None:
    handler.signer.is_over.wait()


def _begin_endless(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(10**12))
    handler.end_headers()
