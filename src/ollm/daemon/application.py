"""The web application: routes, problem documents for errors, OpenAPI, and the guard in front."""

from __future__ import annotations

import re
from typing import Annotated, Any, cast
from urllib.parse import unquote

import msgspec
from litestar import Litestar, Request
from litestar._openapi.schema_generation import SchemaCreator
from litestar._openapi.schema_generation.plugins.struct import StructSchemaPlugin
from litestar.di import Provide
from litestar.exceptions import HTTPException, SerializationException, ValidationException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, Schema, SecurityScheme
from litestar.params import Parameter
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.response import Response
from litestar.routes import HTTPRoute
from litestar.types import ControllerRouterHandler
from litestar.typing import FieldDefinition

from ollm import __version__
from ollm.daemon import checkpoint_routes, routes, setup_routes, web_routes
from ollm.daemon.auth import (
    MAX_BODY_BYTES,
    METHODS_WITH_BODY,
    Application,
    Guard,
    Receive,
    Scope,
    Send,
    WebAccess,
)
from ollm.daemon.bodies import TITLES, UUID_FORMAT, Problem, TooLargeError, make_problem
from ollm.daemon.devices import BadTicketError, Device
from ollm.daemon.hub import ClosingError, DaemonSession, TooManyClientsError
from ollm.daemon.service import BadFieldError, BadPathError, DaemonService, parse_id
from ollm.daemon.web_routes import serve_pages
from ollm.domain.errors import (
    BusyError,
    DamagedError,
    DeniedError,
    NoServerError,
    NotFoundError,
    OllmError,
    UnsavedError,
    UsageError,
)

STATUSES: tuple[tuple[type[OllmError], int], ...] = (
    (BadPathError, 400),
    (BadTicketError, 401),
    (DeniedError, 403),
    (BadFieldError, 422),
    (NotFoundError, 404),
    (BusyError, 409),
    (TooLargeError, 413),
    (ClosingError, 503),
    (TooManyClientsError, 503),
    (NoServerError, 502),
    (UsageError, 422),
    (DamagedError, 422),
    (UnsavedError, 507),
)


class DaemonApplication(Litestar):
    """Litestar for msgspec alone: loading its support for pydantic and attrs takes as long as everything else."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin(), BodySchemas()]

    def register(self, value: ControllerRouterHandler) -> None:  # type: ignore[override]  # as in Litestar
        """Drop the OPTIONS answer of a path that gets another method; the new one names them all."""
        for route in self.routes:
            if isinstance(route, HTTPRoute) and isinstance(value, HTTPRouteHandler) and route.path in value.paths:
                route.route_handlers = [one for one in route.route_handlers if "OPTIONS" not in one.http_methods]
        super().register(value)


class BodySchemas(StructSchemaPlugin):
    """Describes that a body with an unknown field is refused."""

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        schema = super().to_openapi_schema(field_definition, schema_creator)
        if field_definition.type_.__struct_config__.forbid_unknown_fields:
            schema.additional_properties = False
        return schema


TOKEN = SecurityScheme(
    type="http", scheme="bearer", description="Needed over TCP; the Unix socket is for its owner only."
)
ANY_ERRORS = (400, 401, 403, 500, 503)
BODY_ERRORS = (413, 415)
NAME_ERRORS = (404, 409)  # Errors of requests that name a session or a folder.
SAVE_ERRORS = (502, 507)  # Errors of requests that change a session.
NOT_SENT = {"service", "web", "request", "device"}  # These parameters come from the server, not from the client.


def find_handlers() -> list[HTTPRouteHandler]:
    """List the handlers of all routes, each with the problems that its method and its parameters make possible."""
    modules = (routes, checkpoint_routes, setup_routes, web_routes)
    found = [one for module in modules for one in vars(module).values() if isinstance(one, HTTPRouteHandler)]
    for handler in found:
        codes = find_error_codes(handler)
        problems = {code: ResponseSpec(Problem, False, TITLES[code], "application/problem+json") for code in codes}
        handler.responses = {**problems, **(handler.responses or {})}
    return found


def find_error_codes(handler: HTTPRouteHandler) -> list[int]:
    (path,), sent = handler.paths, handler.fn.__annotations__.keys() - {*NOT_SENT, "return"}
    names = "{" in path or not sent.isdisjoint({"data", "workspace", "name"})
    changes = path.startswith(("/sessions", "/snapshots")) and "GET" not in handler.http_methods
    body = not handler.http_methods.isdisjoint(METHODS_WITH_BODY)
    kinds = ((True, ANY_ERRORS), (sent, (422,)), (names, NAME_ERRORS), (body, BODY_ERRORS), (changes, SAVE_ERRORS))
    return sorted(code for possible, codes in kinds if possible for code in codes)


def parse_session(session_id: Annotated[str, Parameter(schema_extra=UUID_FORMAT)]) -> str:
    return parse_id(session_id)


def get_open_session(service: DaemonService, session: str, device: Device | None) -> DaemonSession:
    held = service.hub.get(session)
    service.require_access(device, held.workspace)
    return held


def get_device(request: Request[Any, Any, Any]) -> Device | None:
    """The paired device that a request came from; None for this machine's own user."""
    return request.scope.get("device")  # type: ignore[return-value]  # a key of ours


def build_application(service: DaemonService, token: str, web: WebAccess) -> Application:
    inner = DaemonApplication(
        route_handlers=find_handlers(),
        dependencies={
            "service": Provide(lambda: service, sync_to_thread=False),
            "web": Provide(lambda: web, sync_to_thread=False),
            "device": Provide(get_device, sync_to_thread=False),
            "session": Provide(parse_session, sync_to_thread=False),
            "held": Provide(get_open_session, sync_to_thread=False),
        },
        exception_handlers={
            OllmError: handle_ollm_error,
            HTTPException: handle_http_error,
            RecursionError: lambda *_: make_problem_response(400, "The request body is nested too deeply."),
            UnicodeDecodeError: handle_encoding_error,
            Exception: handle_unexpected_error,
        },
        openapi_config=OpenAPIConfig(
            title="ollm",
            version=__version__,
            path="/schema",
            render_plugins=[JsonRenderPlugin()],
            operation_id_creator=lambda handler, _method, _path: handler.fn.__name__,
            components=Components(security_schemes={"token": TOKEN}),
            security=[{"token": []}, {}],
            use_handler_docstrings=True,
        ),
        request_max_body_size=MAX_BODY_BYTES,
        before_request=require_exact_types,
        logging_config=None,
    )
    return Guard(serve_pages(route_raw_paths(cast("Application", inner))), token, web, lambda: service.hub.closing)


def route_raw_paths(inner: Application) -> Application:
    """Route by the path as it was sent: an encoded slash separates nothing."""

    async def route_request(scope: Scope, receive: Receive, send: Send) -> None:
        raw: bytes = scope.get("raw_path", b"")
        if raw.startswith(b"/workspaces/"):
            scope = {**scope, "path": raw.decode("ascii", "replace")}
        elif b"%2f" in raw.lower():
            kept = re.sub("%2f", "%252F", raw.decode("ascii", "replace"), flags=re.IGNORECASE)
            scope = {**scope, "path": unquote(kept)}
        await inner(scope, receive, send)

    return route_request


def handle_ollm_error(_request: Request[Any, Any, Any], error: OllmError) -> Response[bytes]:
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
    return make_problem_response(status, error.message, error.action)


def handle_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    status = error.status_code
    if isinstance(error, ValidationException):
        empty = request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers
        if empty and request.method in METHODS_WITH_BODY:
            return make_problem_response(400, "The request needs a JSON body.")
        status = 400 if isinstance(error.__cause__, SerializationException) else 422
    details = error.extra if isinstance(error.extra, list) else []
    found = "; ".join(f"{item.get('key', '')}: {item.get('message', '')}" for item in details if isinstance(item, dict))
    return make_problem_response(status, found or error.detail, headers=error.headers)


async def require_exact_types(request: Request[Any, Any, Any]) -> None:
    """Refuse bodies that only fit after conversion, such as "false" for a boolean. A body that is not JSON is reported
    later."""
    if field := request.route_handler.parsed_data_field:
        try:
            msgspec.convert(await request.json(), field.annotation)
        except msgspec.ValidationError as error:
            raise ValidationException(str(error)) from error
        except (HTTPException, SerializationException, ValueError, RecursionError):
            return


def handle_encoding_error(request: Request[Any, Any, Any], error: UnicodeDecodeError) -> Response[bytes]:
    """Report a request that is not UTF-8; the same error in our own files is unexpected."""
    if request.method in METHODS_WITH_BODY:
        return make_problem_response(400, "The request body is not UTF-8.", "Send JSON in UTF-8.")
    return handle_unexpected_error(request, error)


def handle_unexpected_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    import logging

    logging.getLogger("ollm.daemon").error("A request failed.", exc_info=error, extra={"operation": request.url.path})
    return make_problem_response(500, f"Internal error: {type(error).__name__}.", "See the log for details.")


def make_problem_response(
    status: int, detail: str, action: str = "", headers: dict[str, str] | None = None
) -> Response[bytes]:
    content = msgspec.json.encode(make_problem(status, detail, action))
    return Response(content, status_code=status, media_type="application/problem+json", headers=headers)
