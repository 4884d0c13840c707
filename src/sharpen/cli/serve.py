"""`sharpen serve`: a model as a server that speaks OpenAI's protocol, until Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo, echo_json, say
from sharpen.core.errors import UsageError

if TYPE_CHECKING:
    from sharpen.models.base import Model

KEY = "SHARPEN_SERVE_KEY"


@click.command(no_args_is_help=True)
@click.argument("model")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="The port; 0 is any that is free."
)
@click.option("--api-key", is_flag=True, help=f"Answer only those who send the key in {KEY}.")
@options.json_option
def command(model: str, host: str, port: int, api_key: bool, as_json: bool) -> int:
    """Serve a model over HTTP, as OpenAI's API.

    MODEL is any model's name (`sharpen list models`), such as local/smollm2-135m. The name under which it can then be used
    is printed. Ctrl-C ends it.
    """
    import asyncio
    import os

    from sharpen.models.registry import open_model

    key = os.environ.get(KEY, "").strip() if api_key else None
    if key == "":
        raise UsageError(f"--api-key needs {KEY} to be set: to the key that clients must send")
    if key is None and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines: set {KEY} and give --api-key, or serve on 127.0.0.1"
        )
    asyncio.run(_serve(open_model(model, **_settings(model, as_json)), host, port, key, as_json))
    return 0


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on `host`. A name that is not known to be so is not."""
    import ipaddress

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _serve(model: Model, host: str, port: int, key: str | None, as_json: bool) -> None:
    import asyncio
    import signal

    from sharpen.models.server import name_for, serving

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        async with serving(model, host, port, key) as url:
            _announce(model, url, name_for(model, url), as_json)
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        if not as_json:
            say("stopped")


def _announce(model: Model, url: str, name: str, as_json: bool) -> None:
    if as_json:
        echo_json({"model": model.name, "url": url, "name": name})
        return
    echo(f"serving {model.name} at {url}; Ctrl-C stops it")
    echo(f"use it as: --model '{name}'")


def _settings(name: str, silent: bool) -> dict[str, Any]:
    """The embedded model says what it fetches the first time; other kinds have nothing to say."""
    local = name.startswith("local/") or ".jsonl:local/" in name
    return {"progress": lambda words: say(words)} if local and not silent else {}
