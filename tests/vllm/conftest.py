"""These tests need vLLM's environment, which `make test-vllm` makes."""

import pytest

from tests.vllm.environment import finished


@pytest.fixture(autouse=True, scope="session")
def vllm_environment() -> None:
    if not finished():
        pytest.skip("no vLLM environment: make test-vllm")
