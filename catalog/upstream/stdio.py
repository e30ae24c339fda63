"""Runs a stdio server: without a shell, with a minimal environment, and kills everything it started."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from catalog.domain.connection import FailureCode, Limits, UpstreamFailure
from catalog.upstream.last_words import find_telling_line
from catalog.upstream.launch import Launch
from catalog.upstream.nesting import cut_nesting
from catalog.upstream.throttle import Throttle

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]
ToSession = MemoryObjectSendStream[SessionMessage | Exception]
FromSession = MemoryObjectReceiveStream[SessionMessage]

SUBREAPER = Path(__file__).with_name("subreaper.py")
EXIT_GRACE_SECONDS = 1.0
END_SECONDS = 3.0
NOISE_BYTES = 2000


def watch_children_without_threads() -> None:
    """Wait for child processes without a thread for each, as Python after 3.11 does by itself.

    Call it once where leases are used: in their event loop, or before there is one.
    """
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        watcher = asyncio.PidfdChildWatcher()
        with suppress(RuntimeError):  # none is running: asyncio hands it over when one is made
            watcher.attach_loop(asyncio.get_running_loop())
        asyncio.set_child_watcher(watcher)


class StdioLink:
    """One run of a command. Its exit code, stderr and noise can be read after `connect`."""

    def __init__(self, launch: Launch, limits: Limits) -> None:
        self._launch = launch
        self._limits = limits
        self._received_bytes = 0
        self._throttle = Throttle(limits.max_bytes_per_second)
        self._stderr = bytearray()
        self._too_large: float = 0  # the limit that was passed
        self._broken = ""
        self.noise = ""  # the first line on stdout that was not a message
        self.exit_code: int | None = None  # None while it runs, and when we had to end it
        self.pid: int | None = None  # of the subreaper, once it was started

    @property
    def stderr_tail(self) -> str:
        """Twice as much as is shown, so that a secret is not cut in two before it is masked."""
        return bytes(self._stderr).decode(errors="replace")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        """Start the command and speak over its pipes. On leaving, it and everything it started are gone."""
        process, lifeline = await self._start()
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        # Plain tasks: a cancelled caller must not stop them before the pipes are read to their end.
        writer = asyncio.create_task(_write_messages(from_session, process.stdin))
        readers = {
            asyncio.create_task(self._read_messages(process.stdout, to_session)),
            asyncio.create_task(self._keep_stderr(process.stderr)),
        }
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                for stream in (incoming, outgoing):
                    stream.close()
                await _finish({writer}, within_seconds=0.2)
                await self._stop(process, lifeline)
                await _finish(readers, within_seconds=END_SECONDS)
                # Its pipes too, where something still holds their other ends.
                with anyio.move_on_after(END_SECONDS):
                    await process.aclose()

    def failure(self) -> UpstreamFailure | None:
        """The failure, if its cause is the process and not a message."""
        if self._too_large:
            limit_mb = self._too_large / 1_000_000
            return UpstreamFailure(
                FailureCode.TOO_LARGE, f"The server sent more than {limit_mb:.1f} MB: it was stopped"
            )
        if self._broken:
            return UpstreamFailure(
                FailureCode.NOT_MCP, f"The server sent a message that is not valid JSON: {self._broken}"
            )
        return None

    def ended(self) -> UpstreamFailure:
        how = "closed its output" if self.exit_code is None else f"ended with exit code {self.exit_code}"
        last_words = find_telling_line(self.stderr_tail)
        return UpstreamFailure(
            FailureCode.EXITED,
            f"The command {how} before it answered{': ' if last_words else ''}{last_words}",
        )

    async def _start(self) -> tuple[Process, int]:
        kept, lifeline = os.pipe()
        subreaper = (sys.executable, "-I", "-S", str(SUBREAPER), str(kept))
        try:
            process = await anyio.open_process(
                [*subreaper, self._launch.executable, *self._launch.args],
                env=self._launch.env,
                cwd=self._launch.cwd,
                start_new_session=True,
                pass_fds=(kept,),
            )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(kept)
        self.pid = process.pid
        return process, lifeline

    async def _stop(self, process: Process, lifeline: int) -> None:
        """Close stdin and wait, as MCP asks; then close the lifeline, and the subreaper kills the rest."""
        assert process.stdin
        try:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await process.stdin.aclose()
            with anyio.move_on_after(EXIT_GRACE_SECONDS):
                self.exit_code = await process.wait()
        finally:
            os.close(lifeline)
        with anyio.move_on_after(END_SECONDS):
            await process.wait()
        if process.returncode is None:
            process.kill()

    async def _read_messages(self, stdout: ByteReceiveStream, to_session: ToSession) -> None:
        """Pass on each line that is a message, to the end of the pipe; past a limit, only drain the pipe."""
        line = bytearray()
        with to_session:
            async for chunk in _chunks(stdout):
                if self._is_too_large(chunk, line):
                    break
                *complete, rest = chunk.split(b"\n")
                for part in complete:
                    await self._pass_on(bytes(line + part), to_session)
                    line.clear()
                line += rest
                if self._broken:
                    break
                await self._throttle.take_lines(chunk)
        async for _ in _chunks(stdout):
            pass

    def _is_too_large(self, chunk: bytes, line: bytearray) -> bool:
        self._received_bytes += len(chunk)
        if self._received_bytes > self._limits.max_total_bytes:
            self._too_large = self._limits.max_total_bytes
        elif len(line) + len(chunk.partition(b"\n")[0]) > self._limits.max_message_bytes:
            self._too_large = self._limits.max_message_bytes
        return bool(self._too_large)

    async def _pass_on(self, line: bytes, to_session: ToSession) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(cut_nesting(line), by_name=False)
        except ValueError:
            self._note_noise(line)
            return
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await to_session.send(SessionMessage(message))

    def _note_noise(self, line: bytes) -> None:
        """Many servers print a banner on stdout: noise is no failure, a broken message is."""
        shown = line[:NOISE_BYTES].decode(errors="replace")
        self.noise = self.noise or shown
        if line.lstrip().startswith(b"{") and b'"jsonrpc"' in line[:200]:
            self._broken = shown

    async def _keep_stderr(self, stderr: ByteReceiveStream) -> None:
        async for chunk in _chunks(stderr):
            self._stderr += chunk
            del self._stderr[: -2 * self._limits.stderr_tail_bytes]


async def _write_messages(from_session: FromSession, stdin: ByteSendStream) -> None:
    # A server that stops reading is noticed by its missing answer, or by the end of its stdout.
    with from_session, suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for item in from_session:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stdin.send(text.encode() + b"\n")


async def _chunks(stream: ByteReceiveStream) -> AsyncIterator[bytes]:
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for chunk in stream:
            yield chunk


async def _finish(tasks: set[asyncio.Task[None]], *, within_seconds: float) -> None:
    _, late = await asyncio.wait(tasks, timeout=within_seconds)
    for task in late:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
