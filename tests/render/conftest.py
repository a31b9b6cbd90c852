import pytest


@pytest.fixture
def plain_terminal(monkeypatch):
    """A terminal of which the surroundings say nothing but its kind."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def truecolor(plain_terminal, monkeypatch):  # noqa: ARG001 - must come first
    """Colours, all of them, wherever the text goes."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
