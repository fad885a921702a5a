"""Results of a campaign in an SQLite file: appended as they come, there again when it goes on.

Each result is committed before the next case starts, so that a process which is killed loses the
case that it was in and nothing else. What belongs together (a run, and what `check` said of the
kernels it launched) is committed together. Processes may share a file.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any, Final

from ptxlint.dynamic.runners.knowledge import KernelKnowledge
from ptxlint.dynamic.runners.outcome import Outcome

from .verdict import Verdict, outcome_from_json, outcome_to_json

VERSION: Final = 1
_WAIT: Final = 60.0
"""Seconds to wait for another process that writes."""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, told TEXT);
CREATE TABLE IF NOT EXISTS outcomes (
  scope TEXT, key TEXT, told TEXT, PRIMARY KEY (scope, key)
);
CREATE TABLE IF NOT EXISTS kernels (
  scope TEXT, key TEXT, told TEXT, PRIMARY KEY (scope, key)
);
CREATE TABLE IF NOT EXISTS verdicts (scope TEXT PRIMARY KEY, told TEXT);
"""


class StoreError(Exception):
    """A file that is no campaign of this version of ptxlint's, or that cannot be written."""


class Store:
    """What is known of operators, by `scope`: alike for what would give the same results."""

    def __init__(self, path: str = ":memory:") -> None:
        """Opens or makes the file. Raises `StoreError`."""
        try:
            self._database = sqlite3.connect(path, timeout=_WAIT)
            self._database.executescript(_TABLES)
            self._check_version(path)
        except sqlite3.Error as error:
            raise StoreError(f"{path}: not a campaign file that can be used: {error}") from None

    def _check_version(self, path: str) -> None:
        with self._database as database:
            database.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (str(VERSION),))
        ((told,),) = self._database.execute("SELECT told FROM meta WHERE name = 'version'")
        if told != str(VERSION):
            raise StoreError(f"{path}: a campaign of format {told}; this ptxlint has {VERSION}")

    def outcome(self, scope: str, key: str) -> Outcome | None:
        """What a case came to; None if it has not run."""
        told = self._told("outcomes", scope, key)
        return outcome_from_json(told)

    def kernels(self, scope: str, key: str) -> tuple[KernelKnowledge, ...] | None:
        """What was said of the kernels of a case; None if nothing was asked."""
        told = self._told("kernels", scope, key)
        return None if told is None else tuple(KernelKnowledge.from_json(one) for one in told)

    def verdict(self, scope: str) -> Verdict | None:
        """The verdict, if it has been reached."""
        row = self._database.execute(
            "SELECT told FROM verdicts WHERE scope = ?", (scope,)
        ).fetchone()
        return None if row is None else Verdict.from_json(json.loads(row[0]))

    def add(
        self,
        scope: str,
        outcome: Outcome,
        kernels: tuple[KernelKnowledge, ...] | None = None,
    ) -> None:
        """Keep what a case came to, with what was said of its kernels, if that was asked."""
        key = outcome.case.key
        with self._database as database:
            database.execute(
                "INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)",
                (scope, key, _dumped(outcome_to_json(outcome))),
            )
            if kernels is not None:
                database.execute(
                    "INSERT OR REPLACE INTO kernels VALUES (?, ?, ?)",
                    (scope, key, _dumped([kernel.to_json() for kernel in kernels])),
                )

    def decide(self, scope: str, verdict: Verdict) -> None:
        """Keep a verdict."""
        with self._database as database:
            database.execute(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?)", (scope, _dumped(verdict.to_json()))
            )

    def finished(self, scope: str) -> int:
        """How many cases of an operator are there."""
        ((count,),) = self._database.execute(
            "SELECT COUNT(*) FROM outcomes WHERE scope = ?", (scope,)
        )
        return int(count)

    def close(self) -> None:
        """Let the file go."""
        self._database.close()

    def _told(self, table: str, scope: str, key: str) -> Any:
        row = self._database.execute(
            f"SELECT told FROM {table} WHERE scope = ? AND key = ?", (scope, key)
        ).fetchone()
        return None if row is None else json.loads(row[0])


def _dumped(told: Any) -> str:
    return json.dumps(told, ensure_ascii=False)


__all__ = ["VERSION", "Store", "StoreError"]
