"""A web server inside the test, whose every path misbehaves in a way of its own."""

import gzip
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

METADATA_URL = "http://169.254.169.254/latest/meta-data"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.do_GET()

    def do_GET(self) -> None:
        self.seen.append(self.path)
        name = self.path.partition("?")[0].strip("/")
        if name.isdigit():
            self.answer(int(name), "text/plain", b"no")
        else:
            getattr(self, f"answer_{name}")()

    def do_DELETE(self) -> None:
        self.do_GET()

    def answer(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for header, value in headers.items():
            self.send_header(header.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def answer_page(self) -> None:
        self.answer(200, "text/html", b"<h1>Welcome</h1>")

    def answer_spoilt(self) -> None:
        self.answer(200, "application/json", b'{"jsonrpc": "2.0", "id": 1, "result": {oops')

    def answer_missing(self) -> None:
        self.answer(404, "application/json", b'{"detail": "Not Found"}')

    def answer_away(self) -> None:
        self.answer(307, "text/plain", b"", location=METADATA_URL)

    def answer_nearby(self) -> None:
        self.answer(307, "text/plain", b"", location="/401")

    def answer_packed(self) -> None:
        self.answer(200, "application/json", gzip.compress(b" " * 50_000_000), content_encoding="gzip")

    def answer_endless(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(10**12))
        self.end_headers()
        while True:
            self.wfile.write(b" " * 65536)

    def answer_endless_events(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        while True:
            self.wfile.write(b"x" * 65536)

    def answer_endless_requests(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        request = {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {"messages": []}}
        event = f"event: message\ndata: {json.dumps(request)}\n\n".encode()
        while True:
            self.wfile.write(event * 100)

    def answer_newest(self) -> None:
        """Of the newest revision alone: it wants a sign-in, and knows no older greeting."""
        if self.headers.get("mcp-method") == "server/discover":
            self.answer(401, "text/plain", b"no", www_authenticate='Bearer scope="read"')
        else:
            self.answer(400, "application/json", b'{"error": "unsupported revision"}')

    def answer_never(self) -> None:
        threading.Event().wait()

    def answer_leaky(self) -> None:
        """Tells all it was told, as an error page might."""
        told = f"{self.path} {self.headers}"
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": told}}
        self.answer(400, "application/json", json.dumps(error).encode())

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class Web(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        self.seen: list[str] = []
        super().__init__(("127.0.0.1", 0), type("SeeingHandler", (Handler,), {"seen": self.seen}))

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, *_: object) -> None:
        """A client that goes away in the middle is what these tests are about."""


@contextmanager
def run_web(certificate: Path | None = None) -> Iterator[Web]:
    web = Web()
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        web.socket = context.wrap_socket(web.socket, server_side=True)
    threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield web
    web.shutdown()
    web.server_close()


def write_own_certificate(path: Path) -> Path:
    """A certificate for localhost that nobody signed but itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path
