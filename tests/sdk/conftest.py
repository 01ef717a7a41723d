"""The fixtures of all tests, and the matrix of client and upstream formats."""

import contextlib
import functools
import itertools
import types

import pytest

import client_chat
import client_messages
import client_native
import client_responses
import processes

ADAPTERS = {
    "chat": client_chat,
    "messages": client_messages,
    "native": client_native,
    "responses": client_responses,
}

# Every client format is tested with every upstream format.
MATRIX = list(itertools.product(processes.FORMATS, repeat=2))


def pytest_configure(config):
    config.addinivalue_line("markers", "clients(*formats): only clients of these formats")


def pytest_generate_tests(metafunc):
    """Runs tests with a `case` once for each pair of client and upstream formats."""
    if "case" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("clients")
        clients = marker.args if marker else processes.FORMATS
        pairs = [pair for pair in MATRIX if pair[0] in clients]
        names = [f"{client}-to-{upstream}" for client, upstream in pairs]
        metafunc.parametrize("case", pairs, ids=names, indirect=True)


@pytest.fixture(scope="session")
def servers():
    with processes.running() as running:
        yield running


@pytest.fixture(scope="session")
def connect(servers):
    """Returns the client of a format with a key; clients are cached, because creating one takes longer than most tests."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def client_of(client_format, key):
            client = ADAPTERS[client_format].connect(servers.gateway, key)
            return stack.enter_context(client)

        yield client_of


@pytest.fixture
def case(request, servers, connect):
    """The adapter of a client format, a connected client, and the models of one upstream format."""
    client_format, upstream_format = request.param
    return types.SimpleNamespace(
        adapter=ADAPTERS[client_format],
        client=connect(client_format, processes.KEY),
        connect=functools.partial(connect, client_format),
        client_format=client_format,
        upstream_format=upstream_format,
        model=processes.first_model(upstream_format),
        other_model=processes.second_model(upstream_format),
        gateway=servers.gateway,
    )
