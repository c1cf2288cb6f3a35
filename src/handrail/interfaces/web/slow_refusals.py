"""Answers to wrong tokens: held back after several from one address, and logged in one line a minute.

refused_tokens.py counts them and says how long; here is the waiting."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from handrail.domain.errors import Limited
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.refused_tokens import RefusedTokens
from handrail.interfaces.web.responses import CLOSE, JsonResponse, Scope, error_response

TOO_MANY_TOKENS: Final = error_response(
    429,
    Limited("too many requests without the right token", hint="send the token that `handrail serve` stores"),
    (b"retry-after", b"10"),
    CLOSE,
)

log = logging.getLogger(__name__)


class SlowRefusals:
    """Refuses wrong tokens, slower and slower."""

    def __init__(self, limits: HttpLimits) -> None:
        self.tokens = RefusedTokens(limits.refused_s)
        self._log_s = limits.refused_log_s
        self._next_report: asyncio.TimerHandle | None = None

    async def after_a_while(self, refused: JsonResponse, scope: Scope) -> JsonResponse:
        """The answer to a wrong token, after a while if there were many from this address."""
        address = str((scope.get("client") or ("an unknown address",))[0])
        delay_s = self.tokens.note(address, asyncio.get_running_loop().time())
        if self._next_report is None:
            self.minute_passed()  # the first one at once, the others once a minute
        if delay_s and self.tokens.is_crowded:
            return TOO_MANY_TOKENS
        self.tokens.waiting += 1
        try:
            await asyncio.sleep(delay_s)
        finally:
            self.tokens.waiting -= 1
        return refused

    def close(self) -> None:
        """Log what was not logged yet."""
        if self._next_report is not None:
            self._next_report.cancel()
        if said := self.tokens.report():
            log.warning(said)

    def minute_passed(self) -> None:
        """Log how many there were since the last line, if any; and again in a minute."""
        if self._next_report is not None:
            self._next_report.cancel()
        said = self.tokens.report()
        if said:
            log.warning(said)
        later = asyncio.get_running_loop().call_later
        self._next_report = later(self._log_s, self.minute_passed) if said else None
