"""Pieces of work at several places: results in order, one piece at a place at a time."""

from __future__ import annotations

import threading
import time

import pytest

from ptxlint.dynamic.runners.executor import (
    LocalExecutor,
    Place,
    Result,
    Task,
    local_places,
)


def test_results_come_in_order_whoever_is_first() -> None:
    second_is_done = threading.Event()

    def work(task: Task, place: Place) -> Result:
        if task["n"] == 0:
            assert second_is_done.wait(20)
        if task["n"] == 1:
            second_is_done.set()
        return {"square": task["n"] ** 2}

    found = LocalExecutor(local_places(jobs=2)).results(work, [{"n": n} for n in range(5)])
    assert [result["square"] for result in found] == [0, 1, 4, 9, 16]


def test_each_place_has_one_piece_of_work_at_a_time() -> None:
    busy: set[int] = set()
    lock = threading.Lock()
    seen: set[int | None] = set()

    def work(task: Task, place: Place) -> Result:
        with lock:
            assert place.number not in busy
            busy.add(place.number)
            seen.add(place.gpu)
        time.sleep(0.005)
        with lock:
            busy.remove(place.number)
        return task

    executor = LocalExecutor(local_places(gpus=(0, 2, 3)))
    assert len(list(executor.results(work, [{}] * 20))) == 20
    assert seen == {0, 2, 3}


def test_what_is_raised_comes_up_at_its_task_and_the_rest_is_left() -> None:
    begun: list[int] = []

    def work(task: Task, place: Place) -> Result:
        begun.append(task["n"])
        if task["n"] == 1:
            raise KeyError("one")
        time.sleep(0.01)
        return task

    results = LocalExecutor(local_places(jobs=1)).results(work, [{"n": n} for n in range(50)])
    assert next(results) == {"n": 0}
    with pytest.raises(KeyError, match="one"):
        next(results)
    assert len(begun) < 10


def test_without_a_place_nothing_is_done() -> None:
    with pytest.raises(ValueError, match="no place to work"):
        LocalExecutor(())
    assert [place.gpu for place in local_places(jobs=3)] == [None] * 3
    assert len(local_places()) >= 1
