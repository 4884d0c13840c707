"""A player of the coin game that needs no model: it follows the rules that stand in the skill and wanders where none
applies, so what the skill says decides how often it wins. `scripted/explorer` in a model's place."""

from __future__ import annotations

import re

from sharpen.core.chat import Message, Request
from sharpen.core.digest import digest
from sharpen.core.rng import Stream

_WAYS = re.compile(r"To the (\w+) you see (?:the )?([\w -]+?)\.")
_ROOM = re.compile(r"You are in the ([\w -]+?)\.")


def player(request: Request) -> str:
    """One command: by the first rule of the skill that applies, else drawn by the conversation so far."""
    skill = "\n".join(message.content for message in request.messages if message.role == "system").casefold()
    commands = _commands(request.messages)
    if "look around in each room" in skill and _last_said(request.messages) != "look around":
        return "look around"
    if "as soon as you see it" in skill and "take coin" in commands:
        return "take coin"
    if "not been yet" in skill:
        way = _unvisited(request.messages, commands)
        if way is not None:
            return way
    turns = [[message.role, message.content] for message in request.messages if message.role != "system"]
    return Stream(0, "wander", digest(turns)).choice(commands or ["look around"])


def _unvisited(messages: tuple[Message, ...], commands: list[str]) -> str | None:
    """The way to a room that was not seen from within, or else the way that was taken longest ago."""
    seen = [message.content for message in messages if message.role == "user"]
    rooms = [found[1] for text in seen if (found := _ROOM.search(text))]
    here = next((text for text in reversed(seen) if _ROOM.search(text)), "")
    ways = [(f"move {way.casefold()}", room) for way, room in _WAYS.findall(here)]
    open_ways = [(way, room) for way, room in ways if way in commands]
    if not open_ways:
        return None
    return min(open_ways, key=lambda pair: _last(rooms, pair[1]))[0]


def _last(rooms: list[str], room: str) -> int:
    return max((number for number, name in enumerate(rooms) if name == room), default=-1)


def _commands(messages: tuple[Message, ...]) -> list[str]:
    text = next((message.content for message in reversed(messages) if message.role == "user"), "")
    found = re.search(r"Commands: (.*)", text)
    return found[1].split("; ") if found else []


def _last_said(messages: tuple[Message, ...]) -> str:
    return next((message.content for message in reversed(messages) if message.role == "assistant"), "")
