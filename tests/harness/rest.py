"""A REST client for tests from outside, of the standard library's parts."""

import gzip
import http.client
import json
from contextlib import closing
from dataclasses import dataclass
from email.message import Message
from typing import Any


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True)
class RestClient:
    port: int
    key: str

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body)
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, f"/api/v1{path}", content, sent)
            answer = connection.getresponse()
            received = answer.read()
        packed = answer.headers.get("Content-Encoding") == "gzip"
        return Answer(answer.status, answer.headers, gzip.decompress(received) if packed else received)

    def get(self, path: str, **headers: str) -> Any:
        answer = self.call("GET", path, **headers)
        assert answer.status == 200, (path, answer.content)
        return answer.json()

    def post(self, path: str, body: Any = None, *, status: int = 200) -> Any:
        answer = self.call("POST", path, {} if body is None else body)
        assert answer.status == status, (path, answer.content)
        return answer.json()
