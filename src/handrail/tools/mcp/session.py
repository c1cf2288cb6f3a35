"""One start of an MCP server: the SDK's client, kept open by one task, and the calls that share it.

Imports the SDK, so it is only imported when a server is needed. connection.py decides when to start again. Here
questions of the server are matched to the call that they belong to.

    keeper task:  open -> list -> ... waits ... -> close          callers:  call(), from any task"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry.context import Context, attach, detach
from opentelemetry.propagate import extract
from pydantic import TypeAdapter

from handrail.domain.definition.model import Category
from handrail.domain.run.tool_question import PersonReply, ToolQuestion
from handrail.engine.tool import ToolAsks, ToolFailed
from handrail.tools.mcp.bucket import RateLimiter
from handrail.tools.mcp.fault import FAULTS, failure, is_closed
from handrail.tools.mcp.transport.pipe import PROGRESS_PER_S_MAX
from handrail.tools.mcp.transport.server_log import ServerLog
from handrail.tools.mcp.transport.web import NOTED
from handrail.tools.mcp.values.listing import PAGES_MAX, ListedTool, ToolListing
from handrail.tools.mcp.values.question import question_of, result_of
from handrail.tools.mcp.values.structured import OutputSchemas

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

KEY_META: Final = "handrail/idempotency_key"
ROUNDS_MAX: Final = 10
ROUND_PAUSE_S: Final = 0.1
QUESTIONS_MAX: Final = 20
PROGRESS_WORDS_MAX: Final = 200
SUBSCRIBE_S: Final = 2.0
OWNER_S: Final = 30.0
"""How long a question waits for other calls to end, until it is clear which call it belongs to."""
LAST_WORDS_S: Final = 1.0

# Without a handler, the SDK's warnings would print a server's text to our standard error, as often as it likes.
for _name in ("client", "httpx2", "mcp.client", "mcp.shared"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

_result_adapter: Final[TypeAdapter[types.CallToolResult | types.InputRequiredResult]] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class Transport(Protocol):
    """The transport to a server: a pipe to a process, or HTTP."""

    over: anyio.Event
    """Set when no more messages will come."""

    @property
    def pid(self) -> int:
        """Its process; 0 if there is none."""
        ...

    @property
    def how(self) -> str:
        """How it ended, for messages."""
        ...

    def open(self) -> AbstractAsyncContextManager[TransportStreams]:
        """Connect; leaving disconnects."""
        ...

    async def wait_until_ended(self, *, seconds: float) -> None:
        """Wait a moment for its exit status."""
        ...


@dataclass(eq=False)
class ServerCall:
    """A running call."""

    tool: str
    args: Mapping[str, Any]
    key: str
    progress: Callable[[str], None]
    ask: Callable[[ToolQuestion], PersonReply]
    trace: Mapping[str, str] = field(default_factory=dict)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    asks: ToolAsks | None = None
    questions: int = 0
    noted: list[ToolFailed] = field(default_factory=list)
    steps: RateLimiter = field(default_factory=lambda: RateLimiter(PROGRESS_PER_S_MAX))

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Report progress, in a few words."""
        if self.steps.take():
            count = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            words = "".join(letter for letter in message or "" if letter.isprintable())
            self.progress(f"{count} {words}".strip()[:PROGRESS_WORDS_MAX])


@contextmanager
def _tracing(context: Mapping[str, str]) -> Iterator[None]:
    """The SDK writes the present context into `_meta`: that must be the call's own, not that of another request."""
    token = attach(extract(context, Context()))
    try:
        yield
    finally:
        detach(token)


_current: ContextVar[ServerCall | None] = ContextVar("current", default=None)


class Session:
    """A server that was started: its client, its tools, its calls."""

    def __init__(self, transport: Transport, *, log: ServerLog, changed: Callable[[], None]) -> None:
        self._transport = transport
        self._log = log
        self._changed = changed
        self._calls: dict[ServerCall, None] = {}
        self._fewer = anyio.Event()
        self._turn = anyio.Lock()
        self._is_one_at_a_time = False
        self._asking = 0
        self._output_schemas = OutputSchemas(())
        self.listed_twice: tuple[str, ...] = ()
        self._client: Client | None = None
        self._stopped = anyio.Event()
        self._greeting = anyio.CancelScope()
        self.noted: list[ToolFailed] = []

    @property
    def is_over(self) -> bool:
        """Whether it accepts no more calls."""
        return self._transport.over.is_set() or self._client is None

    @property
    def pid(self) -> int:
        """The server's process; 0 if there is none."""
        return self._transport.pid

    @property
    def how(self) -> str:
        """How it ended, with the last lines of its log."""
        tail = self._log.tail
        return f"{self._transport.how}; it last wrote: {tail}" if tail else self._transport.how

    @property
    def version(self) -> str:
        """The negotiated protocol version."""
        return self._client.protocol_version if self._client else ""

    @property
    def is_legacy(self) -> bool:
        """Whether it was opened with the handshake."""
        return self.version not in MODERN_PROTOCOL_VERSIONS

    @property
    def server(self) -> str:
        """The server's own name and version."""
        info = self._client.server_info if self._client else None
        return f"{info.name} {info.version}"[:PROGRESS_WORDS_MAX] if info else ""

    async def keep(self, mode: str, ready: asyncio.Future[None]) -> None:
        """Keep the client open until the server ends or `stop` is called; opens and closes it in this one task."""
        NOTED.set(self.noted)
        attach(Context())  # this task was made by some call; what it asks the server later belongs to no call
        try:
            client = Client(
                _Opened(self._transport.open()),
                mode=mode,
                cache=None,  # a listing must be what the server says now
                elicitation_callback=self._on_question,
                message_handler=self._on_notice,
                client_info=types.Implementation(name="handrail", version=version("handrail")),
            )
            # A server that never answers the handshake can only be left by cancelling it.
            with self._greeting:
                async with client, AsyncExitStack() as stack:
                    self._client = client
                    await self._subscribe(client, stack)
                    if not ready.done():
                        ready.set_result(None)
                    await self._until_over()
        except (ToolFailed, *FAULTS) as error:
            if ready.done():
                self._log.note(f"the connection ended: {failure(error).message}")
            else:
                ready.set_exception(error)
        finally:
            self._client = None
            self._transport.over.set()
            if not ready.done():
                ready.cancel()

    def stop(self) -> None:
        """End the session, also while the handshake is still running."""
        self._stopped.set()
        if self._client is None:
            self._greeting.cancel()

    async def tools(self) -> tuple[ListedTool, ...]:
        """All its tools, within bounds, as the server says now."""
        client = self._open_client()
        listing = ToolListing()
        if client.server_capabilities.tools is not None:
            cursor: str | None = None
            # The cursor is the server's: it might never end.
            for _ in range(PAGES_MAX):
                page = await client.list_tools(cursor=cursor)
                for tool in page.tools:
                    listing.add(tool)
                cursor = page.next_cursor
                if cursor is None or listing.is_full:
                    break
        if listing.left_out:
            self._log.note(f"{listing.left_out} of its tools were left out: too many, too large, or an invalid name")
        if listing.twice:
            self._log.note(f"listed twice, so not offered: {', '.join(listing.twice)}")
        self.listed_twice = listing.twice
        self._output_schemas = OutputSchemas(listing.tools)
        return listing.tools

    async def call(self, call: ServerCall) -> types.CallToolResult:
        """Make one call; ToolFailed says why it failed, ToolAsks what a person must answer first."""
        async with self._taking_turns():
            self._calls[call] = None
            _current.set(call)
            NOTED.set(call.noted)
            try:
                with call.scope, _tracing(call.trace):
                    result = await self._rounds(call)
                    self._output_schemas.check(call.tool, result)
                    return result
            except FAULTS as error:
                raise await self._failure(call, error) from None
            finally:
                del self._calls[call]
                self._notify_fewer()
                _current.set(None)
                NOTED.set(None)
        raise call.asks or call.noted[-1]  # one of them is why the call was cancelled

    async def _rounds(self, call: ServerCall) -> types.CallToolResult:
        """Call until there is a result: the newer protocol answers with questions, and is called again with answers."""
        responses: types.InputResponses | None = None
        state: str | None = None
        for _ in range(ROUNDS_MAX):
            try:
                result = await self._round(call, responses, state)
            except MCPError as error:
                self._visit(call, error)
                continue
            if isinstance(result, types.CallToolResult):
                return result
            asked = result.input_requests or {}
            responses = {key: self._response_to(call, request) for key, request in asked.items()} or None
            # The server keeps nothing between the rounds: what it needs to go on is in this value, which we only pass
            # back.
            state = result.request_state
            if responses is None:
                await anyio.sleep(ROUND_PAUSE_S)
        raise ToolFailed(Category.TOOL_ERROR, f"asked more than {ROUNDS_MAX} times, without a result")

    async def _round(
        self, call: ServerCall, responses: types.InputResponses | None, state: str | None
    ) -> types.CallToolResult | types.InputRequiredResult:
        params = types.CallToolRequestParams(
            name=call.tool,
            arguments=dict(call.args),
            input_responses=responses,
            request_state=state,
            _meta=cast("types.RequestParamsMeta", {KEY_META: call.key}),  # its type only has keys of the protocol
        )
        # Not `call_tool`, which validates results with the server's schema in a way that can take forever.
        session = self._open_client().session
        request = types.CallToolRequest(params=params)
        return await session.send_request(request, _result_adapter, progress_callback=call.on_progress)

    def _visit(self, call: ServerCall, error: MCPError) -> None:
        """Ask a person to open the pages that a call needs first; any other error is raised again."""
        if error.code != types.URL_ELICITATION_REQUIRED:
            raise error
        for params in UrlElicitationRequiredError.from_error(error.error).elicitations[:QUESTIONS_MAX]:
            if self._reply(call, params).action != "accept":
                raise error

    def _response_to(self, call: ServerCall, request: types.InputRequest) -> types.InputResponse:
        if not isinstance(request, types.ElicitRequest):
            wanted = "a model's words (sampling)" if isinstance(request, types.CreateMessageRequest) else "roots"
            message = f"asked for {wanted}, which handrail does not give to servers"
            self._log.note(f"it {message}")
            raise ToolFailed(Category.TOOL_ERROR, message)
        return self._reply(call, request.params)

    async def _on_question(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        call = _current.get() or await self._owner()
        if call is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message="no call is running that this could belong to")
        try:
            return self._reply(call, params)
        except ToolAsks as asks:
            call.asks = asks
        except ToolFailed as failed:
            call.noted[:] = [failed]
        # This runs in another task than the call, so the call is cancelled; that also notifies the server.
        call.scope.cancel()
        return types.ElicitResult(action="cancel")

    def _reply(self, call: ServerCall, params: types.ElicitRequestParams) -> types.ElicitResult:
        call.questions += 1
        if call.questions > QUESTIONS_MAX:
            raise ToolFailed(Category.TOOL_ERROR, f"asked a person more than {QUESTIONS_MAX} questions in one call")
        question = question_of(params)
        return result_of(call.ask(question), is_form=question.schema is not None)

    async def _owner(self) -> ServerCall | None:
        """The call that a question of a handshake server belongs to: the protocol does not say, so it must be alone.

        If several calls are running, this waits until those that do not ask have ended; from then on this server gets
        one call at a time. If several ask at once, their questions can't be matched: the calls are cancelled, and made
        again one by one. None if the call can't be found."""
        self._asking += 1
        self._notify_fewer()
        try:
            if len(self._calls) > 1:
                self._is_one_at_a_time = True
                with anyio.move_on_after(OWNER_S):
                    while len(self._calls) > self._asking:
                        await self._fewer.wait()
            if len(self._calls) > 1:
                self._give_up_asking()
                return None
            return next(iter(self._calls), None)
        finally:
            self._asking -= 1

    def _give_up_asking(self) -> None:
        if len(self._calls) > self._asking:
            return  # some of them do not ask, and must not be cancelled
        for call in self._calls:
            words = "it asked a person while other calls of this server asked too; it is made again alone"
            call.noted[:] = [ToolFailed(Category.TRANSIENT, words)]
            call.scope.cancel()

    def _notify_fewer(self) -> None:
        self._fewer.set()
        self._fewer = anyio.Event()

    @asynccontextmanager
    async def _taking_turns(self) -> AsyncIterator[None]:
        if self._is_one_at_a_time:
            async with self._turn:
                yield
        else:
            yield

    async def _failure(self, call: ServerCall, error: BaseException) -> ToolFailed:
        failed = failure(error)
        if call.noted:
            noted = call.noted[-1]
            return ToolFailed(noted.category, noted.message, retry_after_ms=noted.retry_after_ms)
        if not is_closed(error):
            return failed
        await self._transport.wait_until_ended(seconds=LAST_WORDS_S)
        return ToolFailed(Category.TRANSIENT, f"the server {self.how}")

    async def _on_notice(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    async def _subscribe(self, client: Client, stack: AsyncExitStack) -> None:
        """Subscribe to changes of the tools; handshake servers send them without a subscription."""
        tools = client.server_capabilities.tools
        if self.is_legacy or tools is None or not tools.list_changed:
            return
        try:
            with anyio.fail_after(SUBSCRIBE_S):
                await stack.enter_async_context(client.listen(tools_list_changed=True))
        except FAULTS as error:
            self._log.note(f"it does not report changes of its tools: {failure(error).message}")

    async def _until_over(self) -> None:
        async with anyio.create_task_group() as tasks:

            async def leave(event: anyio.Event) -> None:
                await event.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave, self._transport.over)
            tasks.start_soon(leave, self._stopped)

    def _open_client(self) -> Client:
        if self._client is None:
            raise ToolFailed(Category.TRANSIENT, f"the server {self.how}")
        return self._client


class _Opened:
    """A transport in the form that the SDK expects."""

    def __init__(self, opened: AbstractAsyncContextManager[TransportStreams]) -> None:
        self._opened = opened

    async def __aenter__(self) -> TransportStreams:
        return await self._opened.__aenter__()

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._opened.__aexit__(*error)
