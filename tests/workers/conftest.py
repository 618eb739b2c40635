"""One Ray cluster of this machine's own for all tests of a module that use it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from workers.cluster import connect


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[None]:
    """Two CPUs and one GPU that is only declared."""
    with connect(num_cpus=2, num_gpus=1):
        yield
