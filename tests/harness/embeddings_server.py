"""An OpenAI-compatible `/embeddings` endpoint that runs a tiny ONNX model, and can be told to fail."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from catalog.search.onnx_encoder import OnnxEncoder

KEY = "canary-embeddings-key"


class EmbeddingsServer:
    """`behaviour` is `fine`, or how it fails: `slow`, `drip`, `down` (500), `gone` (closes the connection),
    `garbage`, `short`, `misnumbered`, `infinite`, `zero`, `words`, `other dimension`, `mixed`, `redirect`,
    `large`.
    """

    def __init__(self, folder: Path) -> None:
        self.encoder = OnnxEncoder(folder, query_prefix="", text_prefix="")
        self.behaviour = "fine"
        self.fails_after: int | None = None  # so many requests more; None: never by itself
        self.slow_seconds = 2.0
        self.pause_seconds = 0.0  # before every answer
        self.requests = 0
        self.texts: Counter[str] = Counter()
        self.keys: set[str] = set()
        self.models: set[str] = set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server._answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = _QuietServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1/embeddings"
        Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.requests += 1
        self.keys.add(request.headers.get("Authorization", ""))
        self.models.add(body["model"])
        behaviour = self.behaviour
        time.sleep(self.pause_seconds)
        if self.fails_after is not None:
            self.fails_after -= 1
            behaviour = "down" if self.fails_after < 0 else behaviour
        try:
            if behaviour == "gone":
                request.close_connection = True
                return
            if behaviour == "slow":
                time.sleep(self.slow_seconds)
            self._send(request, body["input"], behaviour)
        except OSError:  # the caller did not wait
            request.close_connection = True

    def _send(self, request: BaseHTTPRequestHandler, texts: list[str], behaviour: str) -> None:
        status = {"down": 500, "redirect": 307}.get(behaviour, 200)
        content = self._write(texts, behaviour) if status == 200 else b"it is broken"
        request.send_response(status)
        if behaviour == "redirect":
            request.send_header("Location", self.url)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if behaviour != "drip":
            request.wfile.write(content)
            return
        for place in range(0, len(content), 4):
            request.wfile.write(content[place : place + 4])
            request.wfile.flush()
            time.sleep(0.05)

    def _write(self, texts: list[str], behaviour: str) -> bytes:
        if behaviour == "garbage":
            return b"<html>[[["
        if behaviour == "large":
            return b"[" + b"0," * 20_000_000 + b"0]"
        vectors = (self.encoder.encode(texts) * 3).tolist()  # whoever asks has to normalise them
        rows = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(vectors)]
        self._spoil(rows, behaviour)
        if behaviour == "fine":
            self.texts.update(texts)
        return json.dumps({"object": "list", "data": rows[::-1], "model": "tiny"}).encode()

    def _spoil(self, rows: list[dict[str, Any]], behaviour: str) -> None:
        first = rows[0]["embedding"]
        spoilt = {
            "infinite": [float("inf"), *first[1:]],
            "zero": [0.0] * len(first),
            "words": ["a lot", *first[1:]],
        }
        if behaviour == "short":
            rows.pop()
        elif behaviour == "misnumbered":
            rows[0]["index"] = 7
        elif behaviour == "mixed":
            rows[-1]["embedding"] = [1.0, 2.0]
        elif behaviour == "other dimension":
            for row in rows:
                row["embedding"] = [*row["embedding"], 1.0]
        elif behaviour in spoilt:
            rows[0]["embedding"] = spoilt[behaviour]


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Callers that are killed leave their connections."""


@contextmanager
def running_embeddings_server(folder: Path) -> Iterator[EmbeddingsServer]:
    server = EmbeddingsServer(folder)
    try:
        yield server
    finally:
        server.close()
