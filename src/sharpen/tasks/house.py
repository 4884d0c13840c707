"""The world of the text game: a small house with a key, a locked vault and a treasure. Pure: a state and a command give
the next state and what is seen. The rooms lie around a hall, so that twelve turns suffice for whoever looks in each once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sharpen.core.digest import Json
from sharpen.core.rng import Stream

HALL = "hall"
VAULT = "vault"
ROOMS = ("kitchen", "study", "bedroom", "cellar", "library", "attic", "pantry", "workshop")
KINDS = ("floor", "drawer", "chest", "dark")
MILESTONES = ("held the key", "unlocked the door", "entered the vault", "took the treasure")


@dataclass(frozen=True, slots=True)
class House:
    """Three rooms around a hall: one holds the key, one the locked door, one nothing. `kind` says what is in the way:
    nothing, a drawer around the key, a chest around the treasure, or a vault too dark to see in without the lamp."""

    kind: str
    rooms: tuple[str, str, str]
    key_room: str
    door_room: str
    lamp_room: str | None = None

    def inputs(self) -> Mapping[str, Json]:
        return {
            "kind": self.kind,
            "rooms": list(self.rooms),
            "key_room": self.key_room,
            "door_room": self.door_room,
            "lamp_room": self.lamp_room,
        }

    @classmethod
    def from_inputs(cls, inputs: Mapping[str, Json]) -> House:
        first, second, third = inputs["rooms"]
        return cls(inputs["kind"], (first, second, third), inputs["key_room"], inputs["door_room"], inputs["lamp_room"])


@dataclass(frozen=True, slots=True)
class State:
    room: str = HALL
    held: frozenset[str] = frozenset()
    opened: frozenset[str] = frozenset()
    reached: frozenset[str] = frozenset()

    @property
    def unlocked(self) -> bool:
        return MILESTONES[1] in self.reached

    @property
    def won(self) -> bool:
        return MILESTONES[3] in self.reached


def build(kind: str, stream: Stream) -> House:
    """A house of the given kind."""
    names = stream.sample(ROOMS, 3)
    key, door, _ = stream.shuffled(names)
    lamp = stream.choice((key, door)) if kind == "dark" else None
    return House(kind, (names[0], names[1], names[2]), key, door, lamp)


def exits(house: House, state: State) -> list[str]:
    if state.room == HALL:
        return list(house.rooms)
    if state.room == VAULT:
        return [house.door_room]
    return [HALL, VAULT] if state.room == house.door_room and state.unlocked else [HALL]


def things(house: House, state: State) -> list[str]:
    """What lies open to be taken where one stands."""
    seen = []
    if state.room == house.key_room and (house.kind != "drawer" or "drawer" in state.opened):
        seen.append("key")
    if state.room == house.lamp_room:
        seen.append("lamp")
    if state.room == VAULT and not dark(house, state) and (house.kind != "chest" or "chest" in state.opened):
        seen.append("treasure")
    return [thing for thing in seen if thing not in state.held]


def closed(house: House, state: State) -> list[str]:
    """What stands closed where one stands."""
    here = {"drawer": house.key_room, "chest": VAULT}
    box = house.kind
    return [box] if here.get(box) == state.room and box not in state.opened else []


def dark(house: House, state: State) -> bool:
    return house.kind == "dark" and state.room == VAULT and "lamp" not in state.held


def commands(house: House, state: State) -> list[str]:
    """All that can be done now."""
    at_lock = state.room == house.door_room and not state.unlocked and "key" in state.held
    return [
        *(f"go to {room}" for room in exits(house, state)),
        *(f"open {box}" for box in closed(house, state)),
        *(f"take {thing}" for thing in things(house, state)),
        *(["unlock door"] if at_lock else []),
        "look",
        "wait",
    ]


def step(house: House, state: State, command: str) -> State:
    """The state after a command; one that cannot be carried out changes nothing."""
    command = " ".join(command.casefold().strip(" .`\"'").split())
    if command not in commands(house, state):
        return state
    verb, _, object_ = command.partition(" ")
    if verb == "go":
        room = object_.removeprefix("to ")
        return replace(state, room=room, reached=state.reached | ({MILESTONES[2]} if room == VAULT else set()))
    if verb == "open":
        return replace(state, opened=state.opened | {object_})
    if verb == "take":
        milestone = {"key": MILESTONES[0], "treasure": MILESTONES[3]}.get(object_)
        reached = state.reached | ({milestone} if milestone else set())
        return replace(state, held=state.held | {object_}, reached=reached)
    if verb == "unlock":
        return replace(state, reached=state.reached | {MILESTONES[1]})
    return state


def observe(house: House, state: State) -> str:
    """What is seen, what is held and what can be done, as the agent reads it."""
    seen = [f"a closed {box}" for box in closed(house, state)] + [f"a {thing}" for thing in things(house, state)]
    lines = [f"You are in the {state.room}."]
    if dark(house, state):
        lines.append("It is too dark to see anything.")
    if seen:
        lines.append(f"You see {' and '.join(seen)}.")
    if state.room == house.door_room and not state.unlocked:
        lines.append("There is a locked door.")
    lines.append(f"You hold {' and '.join(sorted(state.held)) or 'nothing'}.")
    lines.append(f"Commands: {'; '.join(commands(house, state))}")
    return "\n".join(lines)


def shortfall(house: House, state: State) -> str:
    """Why the game was not won, in one sentence."""
    for milestone in MILESTONES:
        if milestone not in state.reached:
            break
    else:
        return ""
    if milestone == MILESTONES[0] and house.kind == "drawer" and "drawer" not in state.opened:
        return "never held the key: a closed drawer was never opened"
    if milestone == MILESTONES[3] and house.kind == "chest" and "chest" not in state.opened:
        return "never took the treasure: a closed chest was never opened"
    if milestone == MILESTONES[3] and house.kind == "dark" and "lamp" not in state.held:
        return "never took the treasure: the vault was dark and the lamp was not taken along"
    return f"never {milestone}"
