"""The platform's keyring, used through the optional package `keyring`: keeps secrets if there is a real one.

Names, and the tools that may get a secret, are kept by secret_file.py. The package is imported when a secret is set or
read, to keep the start fast."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Protocol

from handrail.domain.errors import Unavailable

SERVICE: Final = "handrail"
PRIORITY_MIN: Final = 1
"""The package calls these backends recommended; those below keep passwords in plain files, or nowhere."""
CHAIN_MAX: Final = 20
HINT: Final = 'install it (`pip install "handrail[keyring]"`), unlock it, or choose secrets_in = "file" in config.toml'


class Ring(Protocol):
    """Stores values by key."""

    def put(self, key: str, value: str) -> None:
        """Store a value; Unavailable if that fails."""
        ...

    def get(self, key: str) -> str | None:
        """The value of a key, if there is one."""
        ...

    def drop(self, key: str) -> None:
        """Remove a value, if it is there."""
        ...


class PlatformRing:
    """A backend of the package `keyring`."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def put(self, key: str, value: str) -> None:
        """Store a value; Unavailable if the keyring does not accept it."""
        _asked("did not accept the secret", lambda: self._backend.set_password(SERVICE, key, value))

    def get(self, key: str) -> str | None:
        """The value of a key, if there is one."""
        value = _asked("did not answer", lambda: self._backend.get_password(SERVICE, key))
        return value if isinstance(value, str) else None

    def drop(self, key: str) -> None:
        """Remove a value, if it is there."""
        if self.get(key) is not None:
            _asked("did not remove the secret", lambda: self._backend.delete_password(SERVICE, key))


def open_ring(load: Callable[[str], Any] = import_module) -> Ring:
    """The keyring of this platform; Unavailable if there is no real one."""
    try:
        keyring = load("keyring")
    except ImportError:
        raise Unavailable("the package `keyring` is not installed", hint=HINT) from None
    backend = _asked("can't be opened", keyring.get_keyring)
    if not _is_real(backend):
        raise Unavailable("this machine has no keyring that keeps secrets safe", hint=HINT)
    return PlatformRing(backend)


def _is_real(backend: Any, depth: int = 0) -> bool:
    """Whether a backend stores values, and does not store them in plain text."""
    kind = type(backend)
    if kind.__module__.endswith((".fail", ".null")) or "plaintext" in kind.__name__.lower():
        return False
    chained = getattr(backend, "backends", None)
    if chained is not None:  # any of them may be the one that stores the value
        first = list(chained)[:CHAIN_MAX]
        return depth == 0 and bool(first) and all(_is_real(one, depth + 1) for one in first)
    return bool(_asked("can't be used", lambda: backend.priority >= PRIORITY_MIN))


def _asked(failed: str, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:  # backends are third-party plugins, which may raise anything
        # Its message is left out: it may contain the value.
        raise Unavailable(f"the platform's keyring {failed} ({type(error).__name__})", hint=HINT) from None
