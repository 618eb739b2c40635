"""Batches without Ray: how they are cut, and what comes out of a function that raises."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pytest

from farm.types import Failure
from workers.batches import take, work_through


def doubled(numbers: Sequence[int]) -> list[int | Failure]:
    return [2 * n for n in numbers]


def test_a_batch_has_at_most_so_many_items() -> None:
    waiting = deque([1.0] * 5)
    assert take(waiting, 3, 100, float) == [1.0] * 3
    assert len(waiting) == 2


def test_a_batch_is_padded_to_its_longest_item() -> None:
    waiting = deque([10.0, 2.0, 2.0, 2.0])
    assert take(waiting, 8, 30, float) == [10.0, 2.0, 2.0]


def test_an_item_too_long_for_any_batch_goes_alone() -> None:
    assert take(deque([100.0, 1.0]), 8, 30, float) == [100.0]


def test_out_of_memory_halves_the_batch_and_stays_halved() -> None:
    sizes = []

    def work(numbers: Sequence[int]) -> list[int | Failure]:
        sizes.append(len(numbers))
        if len(numbers) > 5:
            raise MemoryError
        return doubled(numbers)

    answers = work_through(range(32), work, 16)
    assert [done.value for done in answers.done] == [2 * n for n in range(32)]
    assert sizes == [16, 8, *[4] * 8]
    assert answers.limit == 4


def test_an_item_too_large_for_memory_alone_fails_alone() -> None:
    def work(numbers: Sequence[int]) -> list[int | Failure]:
        if 3 in numbers:
            raise MemoryError("too large")
        return doubled(numbers)

    values = [done.value for done in work_through(range(6), work, 4).done]
    assert isinstance(values[3], Failure) and values[3].kind == "out_of_memory"
    assert [v for v in values if not isinstance(v, Failure)] == [0, 2, 4, 8, 10]


def test_only_the_item_that_raises_fails_with_its_type_message_and_place() -> None:
    def work(numbers: Sequence[int]) -> list[int | Failure]:
        if 2 in numbers:
            raise KeyError("two")
        return doubled(numbers)

    values = [done.value for done in work_through(range(4), work, 4).done]
    assert values[:2] == [0, 2] and values[3] == 6
    failure = values[2]
    assert isinstance(failure, Failure) and failure.kind == "model_error"
    assert "KeyError: 'two'" in failure.message and "test_batches.py" in failure.message


def test_a_wrong_number_of_results_fails_the_batch_that_gave_it() -> None:
    values = [done.value for done in work_through(range(4), lambda numbers: doubled(numbers)[1:], 2).done]
    assert [v.message for v in values if isinstance(v, Failure)] == ["1 results for 2 inputs"] * 4


@pytest.mark.parametrize(
    "said", ["CUDA error: device-side assert triggered", "CUBLAS_STATUS_NOT_INITIALIZED"]
)
def test_a_dead_device_ends_the_work(said: str) -> None:
    def work(numbers: Sequence[int]) -> list[int | Failure]:
        if 2 in numbers:
            raise RuntimeError(said)
        return doubled(numbers)

    answers = work_through(range(8), work, 2)
    assert [done.value for done in answers.done] == [0, 2]
    assert said in answers.fatal


def test_memory_of_a_gpu_that_is_full_is_no_dead_device() -> None:
    def work(numbers: Sequence[int]) -> list[int | Failure]:
        if len(numbers) > 1:
            raise RuntimeError("CUDA error: out of memory")
        return doubled(numbers)

    answers = work_through(range(4), work, 4)
    assert not answers.fatal and answers.limit == 1
    assert [done.value for done in answers.done] == [0, 2, 4, 6]
