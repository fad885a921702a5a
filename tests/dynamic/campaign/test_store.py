"""Results outlive the process; nothing is lost and nothing is run twice."""

from __future__ import annotations

import sqlite3
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dynamic.campaign.gate import Gate, Options
from ptxlint.dynamic.campaign.store import Store, StoreError
from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.runners import Compared, Outcome


def test_a_campaign_goes_on_where_it_was_cut_off(fake: Any, said: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "campaign.db")
    obligations = [said("nonfinite"), said("rescale"), said("stride")]
    whole = fake(obligations=obligations)
    expected = Gate(whole, Options()).decide()
    for cut in (1, 2, len(whole.ran) // 2, len(whole.ran) - 1):
        first = fake(obligations=obligations, limit=cut)
        with pytest.raises(KeyboardInterrupt):
            Gate(first, Options(), Store(path), f"s{cut}").decide()
        second = fake(obligations=obligations)
        verdict = Gate(second, Options(), Store(path), f"s{cut}").decide()
        assert [c.key for c in (*first.ran, *second.ran)] == [c.key for c in whole.ran]
        assert verdict._replace(seconds=0) == expected._replace(seconds=0)


def test_outcomes_come_back_with_what_json_has_no_numbers_for(tmp_path: Path) -> None:
    path = str(tmp_path / "campaign.db")
    compared = Compared("0", 3, 1, nan, inf, 1.0, 1, (2,), nan, -inf, 1e-9)
    outcome = Outcome(Case("f", "float32", {"n": 3}), "fail", "reference", "x", (compared,))
    Store(path).add("s", outcome)
    back = Store(path).outcome("s", outcome.case.key)
    assert back is not None
    assert repr(back) == repr(outcome)
    assert Store(path).outcome("another", outcome.case.key) is None
    assert Store(path).finished("s") == 1


def test_other_files_and_other_formats_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough that nobody takes it for an empty one\n" * 20)
    with pytest.raises(StoreError, match=r"notes\.txt: not a campaign file"):
        Store(str(text))
    assert text.read_text().startswith("not a database")
    path = tmp_path / "campaign.db"
    Store(str(path)).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE meta SET told = '7'")
    with pytest.raises(StoreError, match="format 7"):
        Store(str(path))
