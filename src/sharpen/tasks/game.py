"""Keys and doors: a text game of up to twelve turns, as an example of a task with many model calls in one rollout.

The agent wakes in the hall of a small house (`sharpen.tasks.house`), sees what it can do and answers with one command at a
time. It has won when it holds the treasure; `soft` is the share of milestones it reached. `scripted_player` is a target
that needs no model: it follows the rules that stand in the skill and wanders where none applies, so what the skill
says decides how often it wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.digest import digest
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.rng import Stream
from sharpen.core.task import Attempt, Brief, Splits, Task
from sharpen.tasks import house as world
from sharpen.tasks.render import render
from sharpen.tasks.splitting import Deal

TURNS = 12
_PER_KIND = 62
_SIZES = (60, 60, 120)


@dataclass(frozen=True, slots=True)
class Scene:
    """What the scripted player gathers from the conversation so far."""

    room: str
    commands: tuple[str, ...]
    held: tuple[str, ...]
    visited: frozenset[str]
    rooms: frozenset[str]
    door: str | None
    last: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of policy: how it is written, how it is recognised, and what it makes the player do (None: nothing now)."""

    line: str
    pattern: str
    act: Callable[[Scene], str | None]


def _when(command: str) -> Callable[[Scene], str | None]:
    return lambda scene: command if command in scene.commands else None


def _explore(scene: Scene) -> str | None:
    for command in scene.commands:
        if command.startswith("go to ") and command.removeprefix("go to ") not in scene.visited:
            return command
    return _when("go to hall")(scene) if scene.rooms - scene.visited else None


def _unlock(scene: Scene) -> str | None:
    if "key" not in scene.held or scene.door is None or scene.door == "open":
        return None
    steps = ("unlock door", f"go to {scene.door}", "go to hall")
    return next((command for command in steps if command in scene.commands), None)


def _look(scene: Scene) -> str | None:
    return None if scene.last == "look" else "look"


RULES = (
    Rule("Look around in each room before you do anything else.", r"\blook around\b", _look),
    Rule("Take the treasure as soon as you see it.", r"\btake\b.*\b(treasure|everything)\b", _when("take treasure")),
    Rule("Take the key as soon as you see it.", r"\btake\b.*\b(key|everything)\b", _when("take key")),
    Rule(
        "Take the lamp when you see it, because a room may be dark.",
        r"\btake\b.*\b(lamp|everything)\b",
        _when("take lamp"),
    ),
    Rule("Open a closed drawer, because the key may lie in it.", r"\bopen\b.*\bdrawers?\b", _when("open drawer")),
    Rule("Open a closed chest, because the treasure may lie in it.", r"\bopen\b.*\bchests?\b", _when("open chest")),
    Rule("If you hold the key, go back to the locked door and unlock it.", r"\bunlock\b", _unlock),
    Rule(
        "If you see a locked door and hold no key, look for the key in a room that you have not visited.",
        r"\bnot visited\b|\blook for the key\b|\bunvisited\b",
        _explore,
    ),
    Rule("Wait a turn when you are not sure.", r"\bwait\b", _when("wait")),
)


class KeysAndDoors(Task):
    """The game as a task. It is a conversation by nature, so it takes no notice of the rendering that is asked for."""

    name = "keys-and-doors"
    version = "1"
    brief = Brief(
        description="Find the key, open the vault and take the treasure in at most twelve commands.",
        instructions=tuple(rule.line for rule in RULES),
        answer_format="one of the commands that are listed",
    )
    calls_per_rollout = TURNS

    def __init__(self, deal: Deal | None = None) -> None:
        self.deal = Deal() if deal is None else deal

    def items(self) -> list[Item]:
        made: dict[str, Item] = {}
        for kind in world.KINDS:
            stream = Stream(0, "keys-and-doors", kind)
            wanted = len(made) + _PER_KIND
            while len(made) < wanted:
                inputs = world.build(kind, stream).inputs()
                made.setdefault(digest(dict(inputs)), Item(f"{kind}-{digest(dict(inputs))[:8]}", inputs, None, kind))
        return list(made.values())

    def splits(self) -> Splits:
        return self.deal.splits(self.items(), _SIZES)

    def seed(self) -> Candidate:
        return Candidate("Explore the house. Answer with one of the commands that are listed.\n")

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        house = world.House.from_inputs(item.inputs)
        state = world.State()
        request = render("system", candidate, world.observe(house, state), max_tokens=16, stop=("\n",))
        opening, turns = request.messages[: request.shared], list(request.messages[request.shared :])
        said: list[str] = []
        while len(said) < TURNS and not state.won:
            asked = Request(messages=(*opening, *turns), max_tokens=16, stop=("\n",), shared=request.shared)
            said.append((await attempt.complete(asked)).text.strip())
            state = world.step(house, state, said[-1])
            turns += [Message("assistant", said[-1]), Message("user", world.observe(house, state))]
        return scored(
            item.id,
            state.won,
            soft=len(state.reached) / len(world.MILESTONES),
            answer="; ".join(said),
            feedback=world.shortfall(house, state),
            trajectory=tuple(turns),
        )

    def answers(self, item: Item) -> tuple[str, ...]:
        return ()

    def example(self, item: Item) -> None:
        return None


def scripted_player(request: Request) -> str:
    """One command: by the first of `RULES` that stands in the skill and applies, else drawn by the conversation so far."""
    skill = "\n".join(message.content for message in request.messages if message.role == "system")
    scene = _scene(request.messages)
    for rule in RULES:
        if re.search(rule.pattern, skill, re.IGNORECASE):
            command = rule.act(scene)
            if command is not None:
                return command
    turns = [[message.role, message.content] for message in request.messages if message.role != "system"]
    ways = [command for command in scene.commands if command not in ("look", "wait")]
    return Stream(0, "wander", digest(turns)).choice(ways or ["wait"])


def _scene(messages: tuple[Message, ...]) -> Scene:
    seen = [message.content for message in messages if message.role == "user"] or [""]
    visited, rooms = set(), set()
    door: str | None = None
    for text in seen:
        room = _first(r"You are in the (\w+)\.", text)
        visited.add(room)
        rooms.update(re.findall(r"go to (\w+)", text))
        if "There is a locked door." in text:
            door = room
        elif door == room:
            door = "open"
    said = [message.content for message in messages if message.role == "assistant"]
    return Scene(
        room=_first(r"You are in the (\w+)\.", seen[-1]),
        commands=tuple(part for part in _first(r"Commands: (.*)", seen[-1]).split("; ") if part),
        held=tuple(_first(r"You hold (.*)\.", seen[-1]).split(" and ")),
        visited=frozenset(visited),
        rooms=frozenset(rooms),
        door=door,
        last=said[-1] if said else "",
    )


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""
