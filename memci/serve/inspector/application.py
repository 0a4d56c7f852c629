"""The inspector as an application: its addresses, and who may open them.

Every answer forbids the browser to run or load anything that is not the inspector's own.
"""

import hmac
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ...errors import InvalidSetting, MemciError
from ...storage import Storage
from ...storage.opening import name_of, open_store
from ..door import TOKEN, Door
from . import markup
from .language import choose
from .views import View, Views

COOKIE: Final = "memci_token"
LANGUAGE: Final = "memci_language"  # the cookie with the language that was chosen
HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_ASSETS: Final = {"inspector.css": "text/css", "inspector.js": "text/javascript", "icon.svg": "image/svg+xml"}
PLAIN: Final = "text/plain; charset=utf-8"
_WHERE: Final = "It was printed where memci ui was started."
Page = Callable[[Views, Mapping[str, str]], View | str]
_PAGES: Final[dict[str, Page]] = {
    "/": Views.conversations,
    "/window": Views.window,
    "/request": Views.request,
    "/pages": Views.pages,
    "/page": Views.page,
    "/search": Views.search,
    "/why": Views.why,
    "/costs": Views.costs,
    "/memory": Views.memory,
    "/health": Views.health,
    "/raw": Views.raw,
    "/metrics": Views.metrics,
}


def app(store: str | os.PathLike[str] | Storage, *, token: str | None = None, hosts: Iterable[str] = ()) -> Starlette:
    """Return the application that shows one store; a path is opened for reading when the application starts.

    Args:
        store: A path, a URL of a database, or a store, which stays open.
        token: What a browser must give once; default: nothing.
        hosts: Names by which it may be called, besides those of this machine.
    """
    inspector = Inspector(store, token=token, hosts=hosts)
    routes = [Route(path, inspector.route_to(page)) for path, page in _PAGES.items()]
    routes += [Route("/static/{name}", inspector.asset), Route("/enter", inspector.enter, methods=["POST"])]
    handlers: dict[Any, Any] = {404: inspector.missing}
    return Starlette(routes=routes, lifespan=inspector.lifespan, exception_handlers=handlers)


class Inspector:
    """The handlers of all requests, with access control."""

    def __init__(self, store: str | os.PathLike[str] | Storage, *, token: str | None, hosts: Iterable[str]) -> None:
        self._store, self._token = store, token
        self._door = Door(secrets.token_bytes(32), token=token, hosts=tuple(hosts))
        self._name = "a store" if isinstance(store, Storage) else name_of(os.fspath(store))
        self._views: Views | None = None

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Keep the store open while the application runs."""
        storage = self._store if isinstance(self._store, Storage) else open_store(self._store, read_only=True)
        self._views = Views(storage, place="" if storage is self._store else str(self._store))
        try:
            yield
        finally:
            if storage is not self._store:
                storage.close()

    def route_to(self, page: Page) -> Callable[[Request], Response]:
        """Return the handler of requests for *page*: a view as HTML, or a plain text."""
        return lambda request: self._refuse(request) or self._show(page, request)

    def asset(self, request: Request) -> Response:
        """Answer with a file of the inspector itself."""
        wanted = request.path_params["name"]
        if (refusal := self._refuse(request, needs_token=False)) is not None:
            return refusal
        if wanted not in _ASSETS:
            return self._problem(request, 404, "Not here", "There is no such file.")
        return Response(markup.asset(wanted), 200, HEADERS, f"{_ASSETS[wanted]}; charset=utf-8")

    async def enter(self, request: Request) -> Response:
        """Take a token, and keep it in the browser."""
        if (refusal := self._refuse(request, needs_token=False)) is not None:
            return refusal
        form = parse_qs((await request.body())[:4_096].decode("utf-8", "replace"))
        given = form.get("token", [""])[0].strip()
        if self._token is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            return self._problem(request, 401, "That is another token", _WHERE, asks=True)
        response = RedirectResponse("/", 303, HEADERS)
        response.set_cookie(COOKIE, given, httponly=True, samesite="strict")
        return response

    def missing(self, request: Request, _error: Exception) -> Response:
        """Answer a request for an unknown address."""
        return self._refuse(request) or self._problem(request, 404, "Not here", "There is no such page.")

    def _show(self, page: Page, request: Request) -> Response:
        query = request.query_params
        assert self._views is not None, "an application answers while it runs"
        try:
            shown = page(self._views, query)
            return self._html(request, shown) if isinstance(shown, View) else Response(shown, 200, HEADERS, PLAIN)
        except InvalidSetting as error:
            return self._problem(request, 404, "Not here", str(error))
        except MemciError as error:
            return self._problem(request, 500, "It can't be read", str(error))

    def _refuse(self, request: Request, *, needs_token: bool = True) -> Response | None:
        headers: Mapping[str, str] = {TOKEN: request.cookies.get(COOKIE, ""), **request.headers}
        refusal = self._door.refusal(headers, needs_token=needs_token)
        if refusal is None:
            return None
        if refusal[0] == 401:
            return self._problem(request, 401, "A token, please", _WHERE, asks=True)
        return self._problem(
            request, 403, "Not from here", "This name is none of the inspector's: see memci ui --allow-host."
        )

    def _problem(self, request: Request, status: int, title: str, text: str, *, asks: bool = False) -> Response:
        return self._html(request, View("problem.html", {"title": title, "text": text, "asks": asks}), status)

    def _html(self, request: Request, view: View, status: int = 200) -> Response:
        """Return *view* in the language that was chosen by a link, or else the browser's."""
        chosen = request.query_params.get("lang") or request.cookies.get(LANGUAGE)
        language = choose(chosen or request.headers.get("accept-language", ""))
        text = markup.template(view.template, language, store=self._name, **{"tab": "", "context": None, **view.values})
        body = text.encode("utf-8", "backslashreplace")
        response = Response(body, status, HEADERS, "text/html; charset=utf-8")
        if request.query_params.get("lang"):
            response.set_cookie(LANGUAGE, language, samesite="strict")
        return response
