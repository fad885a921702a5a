"""The judge can see: errors planted in what proofs about first reads, reruns and views rest on are
disproved by runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import corpus
import pytest

from ptxlint.dataflow.updates import SETTLED
from ptxlint.dynamic.judge import first_reads, rerun, views
from ptxlint.dynamic.judge.replay import Criterion
from ptxlint.launch import exposed
from ptxlint.launch import views as elements
from ptxlint.launch.exposed import Exposed, Exposure
from ptxlint.launch.views import View

Plant = Callable[[pytest.MonkeyPatch], None]
RERUNS = import_module("ptxlint.rules.haz604_not_idempotent_under_autotune")


def later_stores_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store behind a read counts as one before it."""
    monkeypatch.setattr(Exposed, "_comes_first", lambda self, first, second, under: True)


def any_store_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of the thread to another cell counts as one to the cell that is read."""
    monkeypatch.setattr(Exposed, "_covers", lambda self, store, read: True)


def resets_reach_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an autotuner resets counts as all there is."""
    monkeypatch.setattr(Exposed, "is_reset", lambda self, region, names: True)


def additions_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum counts as a maximum does: done again, it is the same."""
    monkeypatch.setattr(RERUNS, "change_by_atomic", lambda instr: SETTLED)


def products_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is stored back counts as the same when it is worked out again."""
    own = RERUNS.effects

    def settled(flow: Any, load: Any) -> Any:
        found = own(flow, load)
        return found and [effect._replace(change=SETTLED) for effect in found]

    monkeypatch.setattr(RERUNS, "effects", settled)


def reads_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read counts as one of what the launch has stored."""
    monkeypatch.setattr(Exposed, "of", lambda self, read, then=None: Exposure(exposed.COVERED))


def gaps_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor counts as all that lies between its ends."""
    own = elements.keeps_to

    def filled(under: Any, judged: Any, view: View) -> bool:
        return own(under, judged, View((), view.end, view.end))

    monkeypatch.setattr(elements, "keeps_to", filled)


def rows_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row counts as one element longer than it is."""
    own = elements.view_of

    def longer(tensor: Any) -> View | None:
        found = own(tensor)
        return None if found is None else found._replace(end=found.end + 4)

    monkeypatch.setattr(elements, "view_of", longer)


PLANTS: list[tuple[Plant, Criterion]] = [
    (later_stores_cover, first_reads.judge),
    (any_store_covers, first_reads.judge),
    (resets_reach_everything, first_reads.judge),
    (additions_settle, rerun.judge),
    (products_settle, rerun.judge),
    (resets_reach_everything, rerun.judge),
    (reads_are_covered, rerun.judge),
    (gaps_forgotten, views.judge),
    (rows_too_long, views.judge),
]


def subjects() -> Iterator[corpus.Subject]:
    """Rows of which one is read too far, and the launches of the rules' samples."""
    yield corpus.off("softmax", 1)
    yield from corpus.samples("HAZ603", "HAZ604", "BND306")


@pytest.mark.parametrize(
    ("plant", "criterion"),
    [pytest.param(p, c, id=f"{p.__name__}-{c.__module__.rpartition('.')[2]}") for p, c in PLANTS],
)
def test_a_planted_error_is_caught(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, criterion: Criterion
) -> None:
    plant(monkeypatch)
    assert corpus.disproved(subjects(), 2, (criterion,))
