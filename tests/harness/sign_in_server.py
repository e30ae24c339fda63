"""A strict authorization server inside the test.

with run_sign_in_server(resource="http://127.0.0.1:9/mcp") as signer:
    signer.rules.lives = (1,)                # how it behaves from now on, of `sign_in_grants`
    signer.answers["/token"] = send_html     # how one address does, of `bad_answers`
    back = follow(departure_url)             # what comes back with the browser of somebody who agrees
    signer.count("/token"), signer.reuses    # what it saw
"""

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, parse_qsl, urlsplit

from tests.harness.sign_in_grants import Grants, Refused, Seen

METADATA = "/.well-known/oauth-authorization-server"

Answer = Callable[["Handler"], None]


class SignInServer(Grants):
    """Grants over HTTP. `seen` are the requests, in order."""

    def __init__(self, resource: str) -> None:
        super().__init__(resource)
        self.answers: dict[str, Answer] = {}
        self.seen: list[Seen] = []
        self.is_over = threading.Event()
        self._web = _Web(self)
        self.issuer = f"http://127.0.0.1:{self._web.server_address[1]}"

    @property
    def host(self) -> str:
        return urlsplit(self.issuer).netloc

    def count(self, path: str) -> int:
        return sum(one.path == path for one in self.seen)

    def forms(self, path: str) -> list[Mapping[str, str]]:
        return [one.form for one in self.seen if one.path == path]

    def wait(self, seconds: float) -> None:
        """For so long, or until the server is stopped."""
        self.is_over.wait(seconds)

    def start(self) -> None:
        threading.Thread(target=self._web.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.is_over.set()
        self._web.shutdown()
        self._web.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    signer: SignInServer

    def do_GET(self) -> None:
        self._take(b"")

    def do_POST(self) -> None:
        self._take(self.rfile.read(int(self.headers.get("content-length", 0))))

    def _take(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        is_form = headers.get("content-type", "") == "application/x-www-form-urlencoded"
        pairs = parse_qs(body.decode() if is_form else query, keep_blank_values=True)
        form = {name: values[0] for name, values in pairs.items()}
        seen = Seen(self.command, path, headers, form, body)
        self.signer.seen.append(seen)
        if path in self.signer.answers:
            self.signer.answers[path](self)
        elif any(len(values) > 1 for values in pairs.values()):
            self.send_body(400, b"a parameter twice", "text/plain")
        else:
            self._serve(seen)

    def _serve(self, seen: Seen) -> None:
        signer = self.signer
        try:
            match seen.method, seen.path:
                case "GET", "/.well-known/oauth-authorization-server":
                    self.send_json(signer.describe())
                case "GET", "/authorize":
                    self.send_body(302, b"", "text/plain", location=signer.authorize(seen.form))
                case "POST", "/token":
                    self._answer_for_token(seen)
                case "POST", "/register" if signer.rules.registers:
                    self.send_json(signer.register(json.loads(seen.body)), 201)
                case "POST", "/revoke":
                    signer.revoke(seen)
                    self.send_body(200, b"", "text/plain")
                case _:
                    self.send_body(404, b"nothing here", "text/plain")
        except Refused as refused:
            signer.errors.append(refused.error)
            self.send_json({"error": refused.error, "error_description": "<b>no</b>"}, refused.status)

    def _answer_for_token(self, seen: Seen) -> None:
        try:
            answer, status = self.signer.give_tokens(seen), 200
        except Refused as refused:
            self.signer.errors.append(refused.error)
            answer, status = {"error": refused.error}, refused.status
        self.signer.wait(random.uniform(*self.signer.rules.delay_seconds))
        self.send_json(answer, status)

    def send_json(self, value: object, status: int = 200) -> None:
        self.send_body(status, json.dumps(value).encode(), "application/json")

    def send_body(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class _Web(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, signer: SignInServer) -> None:
        super().__init__(("127.0.0.1", 0), type("OwnHandler", (Handler,), {"signer": signer}))

    def handle_error(self, *_: object) -> None:
        """Clients that go away in the middle are what some tests are about."""


@contextmanager
def run_sign_in_server(resource: str) -> Iterator[SignInServer]:
    """Tokens are for this resource alone."""
    signer = SignInServer(resource)
    signer.start()
    try:
        yield signer
    finally:
        signer.stop()


def follow(url: str) -> dict[str, str]:
    """What a browser brings back that is sent there: the query of the way back."""
    parts = urlsplit(url)
    asked = HTTPConnection(parts.netloc)
    asked.request("GET", parts._replace(scheme="", netloc="").geturl())
    with closing(asked), asked.getresponse() as answer:
        assert answer.status == 302, (answer.status, answer.read())
        sent = urlsplit(answer.headers["location"]).query
    return dict(parse_qsl(sent, keep_blank_values=True))
