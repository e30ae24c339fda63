"""The proxy's example in front of a running instance, with TLS, and a dead node beside it."""

import datetime
import getpass
import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from catalog.access.callers import CONFIG_PATH
from catalog.domain.limits import BODY_BYTES, CONFIG_BODY_BYTES
from tests.harness.instance import ROOT, Instance, running_instance, wait_for
from tests.harness.workers import find_free_port

pytestmark = pytest.mark.slow

HOST = "tools.example.com"
EXAMPLE = ROOT / "deploy" / "nginx.conf"
PATH = "/usr/sbin:/usr/local/sbin"
# What Debian's own file has around the example, with every folder a folder of the test.
AROUND = """
daemon off;
user {user};
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/example.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: HTTPMessage
    body: bytes


@dataclass(frozen=True, slots=True)
class Proxy:
    plain_port: int
    tls_port: int
    tls: ssl.SSLContext

    def ask(self, path: str, *, body: bytes | None = None, **headers: str) -> Answer:
        """By TLS, for the name that the certificate is for. With a body it is a POST."""
        return _ask(self.connect(), path, headers, body)

    def connect(self) -> HTTPSConnection:
        connection = HTTPSConnection(HOST, self.tls_port)
        plain = socket.create_connection(("127.0.0.1", self.tls_port), timeout=20)
        connection.sock = self.tls.wrap_socket(plain, server_hostname=HOST)
        return connection

    def ask_plainly(self, path: str) -> Answer:
        return _ask(HTTPConnection("127.0.0.1", self.plain_port, timeout=20), path, {})

    def is_well(self) -> bool:
        try:
            answer = self.ask("/api/v1/health")
        except OSError:
            return False
        return answer.status == 200


def _ask(connection: HTTPConnection, path: str, headers: dict[str, str], body: bytes | None = None) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(connection):
        method = "GET" if body is None else "POST"
        connection.request(method, path, body, headers={"Host": HOST, **named})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())


def write_certificate(folder: Path) -> None:
    """As `tls.crt` and `tls.key`, the names that the example has."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "tls.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def write_settings(folder: Path, node_port: int, gateway_ports: Sequence[int], proxy: Proxy) -> Path:
    """The example with other places, and with a node that does not answer before the one that does."""
    dead = f"server 127.0.0.1:{find_free_port()} max_fails=1 fail_timeout=2s;"
    gateways = " ".join(f"server 127.0.0.1:{port};" for port in gateway_ports)
    text = EXAMPLE.read_text()
    for written, here in {
        "server web:8000 ": f"{dead} server 127.0.0.1:{node_port} ",
        "server gateway:8001 max_fails=1 fail_timeout=2s;": gateways,
        "listen [::]:80;": "",
        "listen [::]:443 ssl http2;": "",
        "listen 80;": f"listen 127.0.0.1:{proxy.plain_port};",
        "listen 443 ssl http2;": f"listen 127.0.0.1:{proxy.tls_port} ssl http2;",
        "/etc/nginx/tls/": f"{folder}/",
    }.items():
        assert written in text
        text = text.replace(written, here)
    (folder / "example.conf").write_text(text)
    whole = folder / "nginx.conf"
    whole.write_text(AROUND.format(folder=folder, user=getpass.getuser()))
    return whole


@contextmanager
def running_proxy(folder: Path, node_port: int, gateway_ports: Sequence[int]) -> Iterator[Proxy]:
    nginx = shutil.which("nginx") or shutil.which("nginx", path=PATH)
    if nginx is None:
        pytest.skip("nginx is absent")
    write_certificate(folder)
    trusting = ssl.create_default_context(cafile=str(folder / "tls.crt"))
    proxy = Proxy(find_free_port(), find_free_port(), trusting)
    settings = write_settings(folder, node_port, gateway_ports, proxy)
    command = [nginx, "-c", str(settings), "-e", str(folder / "early.log")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield proxy
    finally:
        process.terminate()
        process.wait(timeout=15)


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    data = tmp_path_factory.mktemp("data")
    with running_instance(data, "--no-demo", TOOLSEARCH_TLS="on", ALLOWED_HOSTS=HOST) as running:
        yield running


class Gateway(ThreadingHTTPServer):
    """Stands in for a gateway: its answer is a stream whose second event waits for the first to be read."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", find_free_port()), Stream)
        self.first_was_read = threading.Event()
        self.paths: list[str] = []


class Stream(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Gateway

    def do_POST(self) -> None:
        self.server.paths.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.send(f"data: {self.server.server_port}\n\n")
        if "wait" in self.path:
            assert self.server.first_was_read.wait(timeout=20)
        self.send("data: done\n\n")
        self.send("")

    def send(self, text: str) -> None:
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def gateways() -> Iterator[list[Gateway]]:
    with ExitStack() as running:
        made = [running.enter_context(Gateway()) for _ in range(2)]
        for one in made:
            threading.Thread(target=one.serve_forever, daemon=True).start()
            running.callback(one.shutdown)
        yield made


@pytest.fixture(scope="module")
def proxy(
    instance: Instance, gateways: list[Gateway], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    ports = [one.server_port for one in gateways]
    with running_proxy(tmp_path_factory.mktemp("nginx"), instance.port, ports) as running:
        wait_for(running.is_well, within_seconds=120, about=instance)
        yield running


def test_health_is_told_by_tls(proxy: Proxy) -> None:
    for _ in range(4):  # the dead node's turn comes too
        answer = proxy.ask("/api/v1/health")
        assert (answer.status, json.loads(answer.body)["database"]) == (200, "ok")


def test_page_is_shown_and_its_cookie_stays_on_tls(proxy: Proxy) -> None:
    answer = proxy.ask("/sign-in/")
    assert answer.status == 200
    assert "max-age=31536000" in answer.headers["Strict-Transport-Security"]
    assert "; Secure" in answer.headers["Set-Cookie"]
    assert b"<form" in answer.body


def test_plain_request_is_sent_to_tls(proxy: Proxy) -> None:
    answer = proxy.ask_plainly("/tools/?q=a")
    assert (answer.status, answer.headers["Location"]) == (301, f"https://{HOST}/tools/?q=a")


def test_request_id_is_the_proxys_own(proxy: Proxy) -> None:
    answer = proxy.ask("/api/v1/health", X_Request_ID="forged-by-the-caller")
    assert len(answer.headers["X-Request-ID"]) == 32


def test_metrics_are_not_passed_on(proxy: Proxy) -> None:
    answer = proxy.ask("/metrics")
    assert answer.status == 404
    assert "X-Request-ID" not in answer.headers  # no node was asked


@pytest.mark.parametrize(
    ("path", "size"), [("/api/v1/sessions", BODY_BYTES), (CONFIG_PATH, CONFIG_BODY_BYTES)]
)
def test_body_that_is_too_large_is_a_problem_for_programs(proxy: Proxy, path: str, size: int) -> None:
    answer = proxy.ask(path, body=bytes(size + 1))
    assert (answer.status, answer.headers["Content-Type"]) == (413, "application/problem+json")
    assert json.loads(answer.body)["status"] == 413
    assert answer.headers["X-Request-ID"]
    assert proxy.ask(path, body=bytes(size)).status == 401  # which the service says


class TestGateway:
    def test_gets_every_request_of_a_key_and_another_key_s_may_go_elsewhere(self, proxy: Proxy) -> None:
        answering = {
            key: {proxy.ask("/mcp", body=b"{}", Authorization=f"Bearer {key}").body for _ in range(4)}
            for key in map(str, range(24))
        }
        assert {len(bodies) for bodies in answering.values()} == {1}
        assert len(set.union(*answering.values())) == 2

    def test_is_given_path_and_query_as_they_are(self, proxy: Proxy, gateways: list[Gateway]) -> None:
        assert proxy.ask("/mcp?expose=native", body=b"{}").status == 200
        assert "/mcp?expose=native" in (path for one in gateways for path in one.paths)

    def test_stream_is_passed_on_as_it_comes(self, proxy: Proxy, gateways: list[Gateway]) -> None:
        with closing(proxy.connect()) as connection:
            connection.request("POST", "/mcp?wait", b"{}", headers={"Host": HOST})
            answer = connection.getresponse()
            first = answer.readline()
            assert first.decode().split() in [["data:", str(one.server_port)] for one in gateways]
            for one in gateways:
                one.first_was_read.set()
            assert answer.read() == b"\ndata: done\n\n"

    def test_body_that_is_too_large_is_a_problem_for_programs(self, proxy: Proxy) -> None:
        assert proxy.ask("/mcp", body=bytes(BODY_BYTES)).status == 200
        answer = proxy.ask("/mcp", body=bytes(BODY_BYTES + 1))
        assert (answer.status, answer.headers["Content-Type"]) == (413, "application/problem+json")
        assert json.loads(answer.body)["status"] == 413
