"""The server under test: this computer's; in sweeps also that for aarch64 under QEMU, and one with sanitizers."""

import pytest

from served import serve_command


@pytest.fixture(
    params=[
        "host",
        pytest.param("aarch64", marks=pytest.mark.sweep),
        pytest.param("sanitized", marks=pytest.mark.sweep),
    ]
)
def command(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The words that start the server."""
    return serve_command(request.param)
