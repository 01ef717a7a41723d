"""The stage of all tests, and the matrix of client and upstream formats."""

import contextlib
import functools
import itertools
import types

import pytest

import client_chat
import client_messages
import client_native
import client_responses
import stage as processes

SPEAKERS = {
    "chat": client_chat,
    "messages": client_messages,
    "native": client_native,
    "responses": client_responses,
}

# Which client format meets which upstream format: every one meets every one.
MATRIX = list(itertools.product(processes.FORMATS, repeat=2))


def pytest_configure(config):
    config.addinivalue_line("markers", "clients(*formats): only clients of these formats")


def pytest_generate_tests(metafunc):
    """`talk` is a client format that meets an upstream format, once per pair of the matrix."""
    if "talk" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("clients")
        clients = marker.args if marker else processes.FORMATS
        pairs = [pair for pair in MATRIX if pair[0] in clients]
        names = [f"{client}-to-{upstream}" for client, upstream in pairs]
        metafunc.parametrize("talk", pairs, ids=names, indirect=True)


@pytest.fixture(scope="session")
def stage():
    with processes.running() as running:
        yield running


@pytest.fixture(scope="session")
def connect(stage):
    """The client of a format with a key, made once: making one takes longer than most tests."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def client_of(client_format, key):
            client = SPEAKERS[client_format].connect(stage.gateway, key)
            return stack.enter_context(client)

        yield client_of


@pytest.fixture
def talk(request, stage, connect):
    """A client's way of speaking, a connected client and the models of one upstream format."""
    client_format, upstream_format = request.param
    return types.SimpleNamespace(
        speak=SPEAKERS[client_format],
        client=connect(client_format, processes.KEY),
        connect=functools.partial(connect, client_format),
        client_format=client_format,
        upstream_format=upstream_format,
        model=processes.first_model(upstream_format),
        other_model=processes.second_model(upstream_format),
        gateway=stage.gateway,
    )
