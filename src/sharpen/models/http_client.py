"""Posting JSON to an endpoint and reading its answer, up to a limit.

An answer is read in pieces and refused once it is larger than `LARGEST`, compressed or not, so that no endpoint can fill the
memory. Redirects are not followed: the key and the data were meant for this address. Nothing is sent but what the caller
gives: no cookies, no password from `~/.netrc`. A proxy named by the environment is used.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sharpen.core.digest import Json
from sharpen.core.errors import ModelError
from sharpen.models import http_errors

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

LARGEST = 8 << 20
"""Bytes of one answer. The longest answers of models are some hundred kilobytes."""
_LARGEST_ERROR = 64 << 10
MOST_CONNECTIONS = 1000
_CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """The connections to one endpoint, which `name` stands for in messages. Use it between `open` and `close`."""

    def __init__(self, name: str, url: str, timeout: float) -> None:
        self._name = name
        self._timeout = timeout
        parts = urlsplit(url)
        self._proxy = _proxy(parts.scheme, parts.hostname or "")
        self._session: ClientSession | None = None

    async def open(self) -> None:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=MOST_CONNECTIONS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(_CONNECT_TIMEOUT, self._timeout)),
            )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, url: str, body: Json, headers: Mapping[str, str]) -> HttpAnswer:
        """Send `body` and read the whole answer, whatever its status."""
        import aiohttp

        if self._session is None:
            raise RuntimeError(f"{self._name} was asked before it was opened")
        sent = {"Content-Type": "application/json", "Accept-Encoding": "identity", **headers}
        try:
            # One limit for all of it, from the connection to the last piece of the answer.
            async with (
                asyncio.timeout(self._timeout),
                self._session.post(
                    url, data=json.dumps(body).encode(), headers=sent, allow_redirects=False, proxy=self._proxy
                ) as response,
            ):
                return HttpAnswer(response.status, response.headers, await self._read(response))
        except TimeoutError as error:
            if isinstance(error, aiohttp.ClientError):
                raise http_errors.from_connection(self._name, error) from None
            raise http_errors.from_timeout(self._name, self._timeout) from None
        except (aiohttp.ClientError, OSError) as error:
            raise http_errors.from_connection(self._name, error) from None

    async def _read(self, response: ClientResponse) -> bytes:
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if response.status >= 300:  # the status says what matters; what can be read of the rest is for a message
            return await response.content.read(_LARGEST_ERROR) if encoding in ("identity", "") else b""
        if (response.content_length or 0) > LARGEST:
            raise self._too_large()
        if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
            raise http_errors.bad_reply(self._name, f"an answer encoded as {encoding!r}, which nobody asked for")
        decoder = zlib.decompressobj(47) if "gzip" in encoding or encoding == "deflate" else None
        body = bytearray()
        async for piece in response.content.iter_any():
            try:
                body += piece if decoder is None else decoder.decompress(piece, LARGEST - len(body) + 1)
            except zlib.error as error:
                raise http_errors.bad_reply(self._name, f"an answer that can't be decompressed ({error})") from None
            if len(body) > LARGEST:
                raise self._too_large()
        return bytes(body)

    def _too_large(self) -> ModelError:
        return http_errors.bad_reply(self._name, f"an answer of more than {LARGEST >> 20} MB")


def _proxy(scheme: str, host: str) -> str | None:
    from urllib.request import getproxies, proxy_bypass

    return None if proxy_bypass(host) else getproxies().get(scheme)
