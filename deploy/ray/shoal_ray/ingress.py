"""A Ray Serve deployment in front of the gateways: HTTP, streams included. A stream whose gateway ends continues at another.

    serve run shoal_ray.ingress:app

WebSockets and gRPC go to a gateway itself."""
from __future__ import annotations

import asyncio
import time
from typing import AsyncIterator

import aiohttp
from ray import serve
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from . import controller

FRESH_S = 2.0
HOP = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade", "host",
       "content-length"}


def _headers(given) -> dict[str, str]:
    return {k: v for k, v in given.items() if k.lower() not in HOP}


def _id_of(event: bytes) -> str | None:
    for line in event.split(b"\n"):
        if line.startswith(b"id:"):
            return line[3:].strip().decode("latin-1")
    return None


@serve.deployment(max_ongoing_requests=256, ray_actor_options={"num_cpus": 0.1})
class Ingress:
    """Passes each request on to a gateway."""

    def __init__(self) -> None:
        self.session: aiohttp.ClientSession | None = None
        self.known: list[str] = []
        self.asked = float("-inf")
        self.refresh: asyncio.Future | None = None
        self.turn = 0

    async def _refresh(self) -> None:
        try:
            self.known = await controller.get().gateways.remote() or self.known
        except Exception:  # noqa: BLE001: while the controller is away the last view counts
            pass
        self.asked = time.monotonic()

    async def _gateways(self, fresh: bool) -> list[str]:
        """All of them, another one first each time."""
        if self.refresh is None or self.refresh.done() and (fresh or time.monotonic() - self.asked > FRESH_S):
            self.refresh = asyncio.ensure_future(self._refresh())
        if fresh or not self.known:
            await asyncio.wait([self.refresh], timeout=FRESH_S)
        self.turn += 1
        at = self.turn % len(self.known) if self.known else 0
        return self.known[at:] + self.known[:at]

    async def _ask(self, request: Request, body: bytes, more: dict[str, str]) -> aiohttp.ClientResponse | None:
        """The first gateway that takes the connection; a request that has been sent is not sent again."""
        if self.session is None:
            self.session = aiohttp.ClientSession(
                auto_decompress=False, skip_auto_headers=("Accept-Encoding", "User-Agent", "Content-Type"),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=2), connector=aiohttp.TCPConnector(limit=0))
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        for fresh in (False, True):
            for gateway in await self._gateways(fresh):
                try:
                    return await self.session.request(request.method, f"http://{gateway}{target}", data=body, allow_redirects=False,
                                                      headers=_headers(request.headers) | more)
                except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
                    continue
        return None

    async def _events(self, request: Request, body: bytes, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Whole events. Where the connection breaks, the same request with the last event's id, at another gateway."""
        last, tries, more = None, 0, {}
        while True:
            rest = b""
            try:
                if answer is None:
                    answer = await self._ask(request, body, more)
                    if answer is None or answer.status != 200:
                        break
                async for piece in answer.content.iter_any():
                    *events, rest = (rest + piece).split(b"\n\n")
                    for event in events:
                        last, tries = _id_of(event) or last, 0
                        yield event + b"\n\n"
                if rest:
                    yield rest
                return
            except (aiohttp.ClientError, OSError):
                if last is None or tries == 5:
                    raise
            finally:
                if answer is not None:
                    answer.close()
            tries, more, answer = tries + 1, {"Last-Event-ID": last}, None
        raise ConnectionError(f"a stream cannot continue: {answer.status}" if answer else "no gateway continues this stream")

    async def _bytes(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for piece in answer.content.iter_any():
                yield piece
        finally:
            answer.close()

    async def __call__(self, request: Request) -> Response:
        body = await request.body()
        try:
            answer = await self._ask(request, body, {})
        except (aiohttp.ClientError, OSError) as e:
            return Response(f"the gateway's answer broke off: {e}\n", 502)
        if answer is None:
            return Response("no gateway can be reached\n", 503, {"Retry-After": "1"})
        headers = _headers(answer.headers)
        if answer.headers.get("Content-Type", "").startswith("text/event-stream"):
            return StreamingResponse(self._events(request, body, answer), answer.status, headers)
        return StreamingResponse(self._bytes(answer), answer.status, headers)


app = Ingress.bind()
