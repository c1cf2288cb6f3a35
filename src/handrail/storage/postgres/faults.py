"""Faults: errors of PostgreSQL, its driver and the network, translated to handrail's errors.

The only module that reads asyncpg's errors. `is_passing` and `is_refused` say what an error means for the writer; the
message is for the caller, and never has the address in it."""

from __future__ import annotations

from typing import Final

import asyncpg

from handrail.domain.errors import Forbidden, HandrailError, IntegrityBroken, Invalid, NotFound, Unavailable

BELOW: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError)
"""Exceptions of the driver, the server and the network."""

UNSTORABLE: Final = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    OverflowError,
    TypeError,
    UnicodeEncodeError,
)
"""Exceptions for values that can't be stored."""

AGAIN: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)
"""Nothing was written, and the same may work at once."""

GONE: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InternalClientError,
)
"""The connection is of no more use."""


def is_refused(error: Exception) -> bool:
    """Whether the caller's data can't be stored; others are not affected."""
    return isinstance(error, UNSTORABLE) and not isinstance(error, asyncpg.InvalidCachedStatementError)


def is_lost(error: Exception) -> bool:
    """Whether the connection was lost, so that it is unknown whether the last write was done."""
    return isinstance(error, GONE) or (isinstance(error, asyncpg.InterfaceError) and not is_refused(error))


def store_error(error: Exception, name: str) -> HandrailError:
    """The error that a caller gets."""
    if isinstance(error, HandrailError):
        return type(error)(str(error), hint=error.hint)  # a copy: each waiting caller raises its own instance
    for kinds, make in _MEANINGS:
        if isinstance(error, kinds):
            return make(error, name)
    if is_refused(error):
        return Invalid(f"{name} can't store this append: {_words(error)}")
    if isinstance(error, asyncpg.PostgresError) and not is_lost(error):
        return Unavailable(f"{name} refused: {_words(error)}", hint="nothing was written; see PostgreSQL's own log")
    return _unreachable(error, name)


def _words(error: Exception) -> str:
    """What an error says, in one line; the driver's own are short and have no address."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def _unreachable(error: Exception, name: str) -> HandrailError:
    return Unavailable(
        f"the store {name} can't be reached: {_words(error)}",
        hint="check that PostgreSQL runs and that the address is right; handrail tries again by itself",
    )


def _no_access(error: Exception, name: str) -> HandrailError:
    return Forbidden(f"{name} refuses this user: {_words(error)}", hint="check user, password and grants in PostgreSQL")


def _no_database(_: Exception, name: str) -> HandrailError:
    return NotFound(f"there is no database {name}", hint="create it: `createdb`; handrail makes its own tables there")


def _copy(_: Exception, name: str) -> HandrailError:
    return Unavailable(f"{name} is a read-only copy", hint="name the primary server in HANDRAIL_STORE")


def _damaged(error: Exception, name: str) -> HandrailError:
    return IntegrityBroken(f"{name} is damaged or was changed by hand: {_words(error)}")


def _full(error: Exception, name: str) -> HandrailError:
    return Unavailable(f"{name} has no room left: {_words(error)}", hint="free some space; nothing was written")


_MEANINGS: Final = (
    ((asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InsufficientPrivilegeError), _no_access),
    (asyncpg.InvalidCatalogNameError, _no_database),
    (asyncpg.ReadOnlySQLTransactionError, _copy),
    ((asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError, asyncpg.UndefinedTableError), _damaged),
    ((asyncpg.UndefinedFunctionError, asyncpg.UndefinedColumnError, asyncpg.RaiseError), _damaged),
    ((asyncpg.DiskFullError, asyncpg.OutOfMemoryError), _full),
)
