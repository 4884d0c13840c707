"""The statements that come with the task, so that it runs without any data: small, and within what Lean brings along."""

from __future__ import annotations

from sharpen.core.item import Item

_DOUBLE = "def double (n : Nat) : Nat := 2 * n"
_SQUARE = "def square (n : Nat) : Nat := n * n"
_TOTAL = "def total : List Nat → Nat\n  | [] => 0\n  | x :: xs => x + total xs"
_COPIES = "def copies : Nat → Nat → List Nat\n  | 0, _ => []\n  | n + 1, x => x :: copies n x"

_STATEMENTS: tuple[tuple[str, str, str], ...] = (
    ("arithmetic", "theorem add_nothing (n : Nat) : n + 0 = n", ""),
    ("arithmetic", "theorem nothing_add (n : Nat) : 0 + n = n", ""),
    ("arithmetic", "theorem add_swap (a b : Nat) : a + b = b + a", ""),
    ("arithmetic", "theorem add_regroup (a b c : Nat) : (a + b) + c = a + (b + c)", ""),
    ("arithmetic", "theorem once (n : Nat) : n * 1 = n", ""),
    ("arithmetic", "theorem mul_swap (a b : Nat) : a * b = b * a", ""),
    ("arithmetic", "theorem mul_spread (a b c : Nat) : a * (b + c) = a * b + a * c", ""),
    ("order", "theorem le_self (n : Nat) : n ≤ n", ""),
    ("order", "theorem lt_next (n : Nat) : n < n + 1", ""),
    ("order", "theorem le_chain (a b c : Nat) (h : a ≤ b) (k : b ≤ c) : a ≤ c", ""),
    ("order", "theorem le_add_more (a b : Nat) : a ≤ a + b", ""),
    ("logic", "theorem and_turned (p q : Prop) (h : p ∧ q) : q ∧ p", ""),
    ("logic", "theorem or_turned (p q : Prop) (h : p ∨ q) : q ∨ p", ""),
    ("logic", "theorem use_it (p q : Prop) (h : p → q) (k : p) : q", ""),
    ("logic", "theorem not_both (p : Prop) : ¬(p ∧ ¬p)", ""),
    ("logic", "theorem contraposed (p q : Prop) (h : p → q) : ¬q → ¬p", ""),
    ("logic", "theorem twice_not (b : Bool) : (!!b) = b", ""),
    ("logic", "theorem both_same (b : Bool) : (b && b) = b", ""),
    ("lists", "theorem append_nothing (xs : List Nat) : xs ++ [] = xs", ""),
    ("lists", "theorem length_joined (xs ys : List Nat) : (xs ++ ys).length = xs.length + ys.length", ""),
    ("lists", "theorem twice_turned (xs : List Nat) : xs.reverse.reverse = xs", ""),
    ("lists", "theorem map_same (xs : List Nat) : xs.map (fun x => x) = xs", ""),
    ("programs", "theorem double_is_sum (n : Nat) : double n = n + n", _DOUBLE),
    ("programs", "theorem square_of_zero : square 0 = 0", _SQUARE),
    ("programs", "theorem total_joined (xs ys : List Nat) : total (xs ++ ys) = total xs + total ys", _TOTAL),
    ("programs", "theorem copies_count (n x : Nat) : (copies n x).length = n", _COPIES),
)


def shipped() -> list[Item]:
    return [proof(statement.split()[1], statement, preamble, kind) for kind, statement, preamble in _STATEMENTS]


def proof(id_: str, statement: str, preamble: str, kind: str) -> Item:
    """An item that asks for the proof of a statement, whose definitions stand above it in the file."""
    given = f"These definitions stand above it, do not repeat them:\n\n{preamble}\n\n" if preamble else ""
    question = f"Prove in Lean 4, with this statement word for word:\n\n{statement}\n\n{given}".rstrip()
    return Item(id_, {"input": question, "statement": statement, "preamble": preamble}, None, kind)
