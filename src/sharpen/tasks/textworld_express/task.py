"""A text game as a task: a conversation in which the agent answers each scene with one of the commands it can give.

Train, val and test are drawn from the three folds of the package, which hold things and recipes of their own, so what was
learned by heart in one is of no use in another. A game that is won scores 1; `soft` is the share of the game's score. An
answer that is none of the listed commands costs a turn.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.rng import Stream
from sharpen.core.task import Attempt, Brief, Requirements, Splits, Task
from sharpen.tasks.render import VERSION, render
from sharpen.tasks.splitting import Deal, checked, largest_remainder, limited, parse_ratio
from sharpen.tasks.textworld_express import GAMES
from sharpen.tasks.textworld_express.server import Scene, server

_VERSION = "1"
_FOLDS = {"train": ("train", 0), "val": ("dev", 10_000), "test": ("test", 20_000)}
"""The package's name of a split, and the first of its seeds."""
_SEEDS = 1000
_SEARCHING = (
    "Take the thing that you are looking for as soon as you see it.",
    "Go to a room where you have not been yet.",
    "Open a closed door when there is no other way on.",
    "Look around in each room before you do anything else.",
)
_READING = ("Read what can be read before you begin.", "Follow what you have read word for word and in order.")
_INSTRUCTIONS = {
    "coin": _SEARCHING,
    "mapreader": (*_READING, *_SEARCHING),
    "cookingworld": (*_READING, "Take the knife before you cut anything.", "Open what is closed to see what is in it."),
    "twc": (
        "Take a thing and put it where such things are usually kept.",
        "Open what is closed before you put things in.",
    ),
    "arithmetic": (*_READING, "Work the sum out before you take anything."),
    "sorting": ("Compare the numbers, and convert the units, before you take the first thing.",),
    "simonsays": ("Give exactly the command that stands between the quotation marks.",),
    "peckingorder": (*_READING, "Read the book again after each thing that you have done."),
}
_MAX_TOKENS = 24
_STOP = ("\n",)


class TextGame(Task):
    """It is a conversation by nature, so it takes no notice of the rendering that is asked for."""

    requirements = Requirements(packages=("textworld_express",), programs=("java",))

    def __init__(
        self, game: str, deal: Deal, size: int, seed: int, ratio: str, turns: int, own: Mapping[str, Json]
    ) -> None:
        self.name = f"textworld-express/{game}"
        self.brief = Brief(GAMES[game], _INSTRUCTIONS[game], "one of the commands that are listed")
        self.calls_per_rollout = turns
        self.deal = deal
        self._sizes = largest_remainder(parse_ratio(ratio), size)
        if max(self._sizes) > _SEEDS:
            raise UsageError(f"{self.name}: a split can have {_SEEDS} games, and {max(self._sizes)} were asked for")
        self._seed = seed
        self._game = game
        self._settings = ", ".join(f"{key}={_number(self.name, key, own[key])}" for key in sorted(own))
        package = importlib.metadata.version("textworld-express")
        self.version = digest([_VERSION, VERSION, package, game, self._settings, turns])[:12]
        self._splits: Splits | None = None

    def splits(self) -> Splits:
        if self._splits is None:
            server().check(self._game, self._settings)
            drawn = []
            for size, (fold, first) in zip(self._sizes, _FOLDS.values(), strict=True):
                order = Stream(self._seed, "textworld-express", fold).shuffled(range(_SEEDS))
                drawn.append(tuple(self._item(fold, first + number) for number in order[:size]))
            self._splits = limited(checked(Splits(*drawn), self.name), self.deal.limit, self.deal.seed)
        return self._splits

    def _item(self, fold: str, seed: int) -> Item:
        return Item(f"{self._game}-{fold}-{seed}", {"game": self._game, "fold": fold, "seed": seed})

    def seed(self) -> Candidate:
        return Candidate("Play the game. Answer with one of the commands that are listed.\n")

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        game = await server().open(self._game, self._settings, str(item.inputs["fold"]), int(item.inputs["seed"]))
        opening_text = f"{game.goal}\n\n{told(game.scene)}"
        request = render("system", candidate, opening_text, max_tokens=_MAX_TOKENS, stop=_STOP)
        opening, turns = request.messages[: request.shared], list(request.messages[request.shared :])
        said: list[str] = []
        useless = 0
        while len(said) < self.calls_per_rollout and not (game.scene.won or game.scene.lost):
            asked = Request(messages=(*opening, *turns), max_tokens=_MAX_TOKENS, stop=_STOP, shared=request.shared)
            said.append((await attempt.complete(asked)).text.strip())
            command = understood(said[-1], game.scene.commands)
            if command is None:
                useless += 1
                seen = f"That is none of the commands.\n{listed(game.scene)}"
            else:
                seen = told(await game.step(command))
            turns += [Message("assistant", said[-1]), Message("user", seen)]
        return scored(
            item.id,
            game.scene.won,
            soft=1.0 if game.scene.won else game.scene.score,
            answer="; ".join(said),
            feedback=shortfall(game.scene, len(said), useless),
            trajectory=tuple(turns),
        )

    def answers(self, item: Item) -> tuple[str, ...]:
        return ()

    def example(self, item: Item) -> None:
        return None


def told(scene: Scene) -> str:
    """A scene as the agent reads it."""
    return f"{scene.text}\n{listed(scene)}"


def listed(scene: Scene) -> str:
    return f"Commands: {'; '.join(scene.commands)}"


def understood(answer: str, commands: tuple[str, ...]) -> str | None:
    """The command that an answer gives, quotes and a prompt sign left aside."""
    wanted = " ".join(answer.casefold().strip(" .`\"'>*").split())
    return next((command for command in commands if command.casefold() == wanted), None)


def shortfall(scene: Scene, turns: int, useless: int) -> str:
    """Why a game was not won, in one sentence."""
    if scene.won:
        return ""
    end = "the game was lost" if scene.lost else "the game was not finished"
    wasted = f"; {useless} answers were none of the listed commands" if useless else ""
    return f"{end} after {turns} turns, with {scene.score:.2f} of the score{wasted}"


def _number(name: str, key: str, value: Json) -> int:
    if not isinstance(value, int):
        raise UsageError(f"{name}: {key} must be a whole number, or true or false, got {value!r}")
    return int(value)
