"""A proxy that adds a key to every request and sends it to one address, for clients that can do neither."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

HEAD_END = b"\r\n\r\n"
HOP_HEADERS = (b"connection:", b"keep-alive:")


class KeyProxy:
    """One request per connection, so that only its head is read; then bytes pass in both directions."""

    def __init__(self, target: str, key: str) -> None:
        address = urlsplit(target)
        self.target_port = address.port or 80
        self.target_path = f"{address.path}?{address.query}"
        self.key = key
        self.port = 0
        self.ready = threading.Event()

    async def serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await self._stopping.wait()
        server.close()

    def stop(self) -> None:
        """From another thread. What is still open ends with the loop."""
        self._loop.call_soon_threadsafe(self._stopping.set)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(HEAD_END)
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            writer.close()
            return
        upstream_writer.write(self._with_key(head))
        ways = [_copy(reader, upstream_writer), _copy(upstream_reader, writer)]
        tasks = [asyncio.ensure_future(way) for way in ways]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        writer.close()
        upstream_writer.close()

    def _with_key(self, head: bytes) -> bytes:
        """The client's own Host and Origin become the target's; others pass, for the target to refuse."""
        first, *headers = head.removesuffix(HEAD_END).split(b"\r\n")
        method, _, version = first.split(b" ")
        kept = [line for line in headers if not line.lower().startswith(HOP_HEADERS)]
        ours, theirs = f":{self.port}".encode(), f":{self.target_port}".encode()
        named = [
            line.replace(ours, theirs) if line[:5].lower() in {b"host:", b"origi"} else line for line in kept
        ]
        added = [f"Authorization: Bearer {self.key}".encode(), b"Connection: close"]
        return (
            b"\r\n".join([b" ".join([method, self.target_path.encode(), version]), *named, *added]) + HEAD_END
        )


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while block := await reader.read(65536):
            writer.write(block)
            await writer.drain()
    except OSError:
        return


@contextmanager
def running_proxy(target: str, key: str) -> Iterator[str]:
    """The address of a proxy to `target`."""
    proxy = KeyProxy(target, key)
    thread = threading.Thread(target=lambda: asyncio.run(proxy.serve()))
    thread.start()
    try:
        assert proxy.ready.wait(10), "the proxy does not start"
        yield f"http://127.0.0.1:{proxy.port}/mcp"
    finally:
        proxy.stop()
        thread.join()
