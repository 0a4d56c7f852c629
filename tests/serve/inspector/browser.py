"""The inspector in a headless browser: every page, three widths, two themes; axe-core; hostile texts; 100,000 pages.

Run by `make ui`. Pictures go to build/inspector, or where PICTURES says: those of the documents are made so.
"""

import os
import shutil
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from memci.serve.inspector.application import app
from memci.serve.inspector.standalone import standalone
from tests.serve.inspector.prepared import LONG, NAME, long_store, prepared

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / os.environ.get("PICTURES", "build/inspector")
WIDTHS = {"desktop": (1440, 900), "tablet": (768, 1024), "phone": (390, 800)}
LOOKS = (
    [(width, scheme) for width in WIDTHS for scheme in ("light", "dark")]
    if "MEMCI_EXAMPLES" in os.environ
    else [("desktop", "light"), ("phone", "dark")]
)
"""the looks of each page that are tried; all of them with MEMCI_EXAMPLES, in four minutes"""
DESK = "id=travel-desk"
PAGES = {
    "conversations": "/",
    "window": f"/window?{DESK}",
    "request": f"/request?{DESK}&turn=60",
    "pages": f"/pages?{DESK}",
    "page": f"/page?{DESK}&n=20",
    "search": f"/search?{DESK}&q=breakfast+hours",
    "why": f"/why?{DESK}&q=breakfast",
    "costs": f"/costs?{DESK}",
    "memory": "/memory?owner=ada",
    "health": "/health?check=1",
    "missing": "/window?id=nobody",
    "chinese": f"/why?{DESK}&q=breakfast&lang=zh",
}
HUGE = 100_000
"""pages of a long conversation"""


def chromium():
    """The browser, from Debian or where CHROMIUM says."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert found, "make ui needs Chromium: apt-get install chromium, or set CHROMIUM to its path"
    return found


class Server:
    """The inspector of *storage* at an address of this machine."""

    def __init__(self, storage):
        config = uvicorn.Config(app(storage), port=0, log_level="error", ws="none", timeout_keep_alive=75)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return f"http://localhost:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def __exit__(self, *error):
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    storage = prepared(str(tmp_path_factory.mktemp("inspector") / "desk.db"))
    with Server(storage) as served:
        yield served
    storage.close()


@pytest.fixture(scope="module")
def browser():
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def tab(browser):
    """Makes a tab; what its console or the network complains of fails the test."""
    complaints, opened = [], []

    def made(width="desktop", scheme="light"):
        w, h = WIDTHS[width]
        context = browser.new_context(viewport={"width": w, "height": h}, color_scheme=scheme)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}"))
        opened.append(context)
        return page

    yield made
    for context in opened:
        context.close()
    assert [each for each in complaints if "404" not in each] == []


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_well_made(tab, address, name, width, scheme):
    """No serious finding of axe-core, nothing wider than the screen."""
    page = tab(width, scheme)
    page.goto(address + PAGES[name])
    page.screenshot(path=PICTURES / f"{name}-{width}{'' if scheme == 'light' else '-dark'}.png")

    found = [
        f"{each['impact']}: {each['id']}: {[node['html'][:120] for node in each['nodes'][:3]]}"
        for each in Axe().run(page).response["violations"]
        if each["impact"] in {"serious", "critical"}
    ]

    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_texts_do_nothing(tab, address):
    """Scripts, marks of direction and a message of a megabyte are shown as text."""
    page = tab()
    page.goto(address + "/")
    page.get_by_role("link", name="<img").first.click()
    window = page.url
    for path in ("window", "request", "search", "why", "costs", "pages"):
        page.goto(window.replace("/window?", f"/{path}?q=%3Cscript%3E&"))
        assert "owned" not in page.title()
        assert page.locator("main img, main script, main style, main b").count() == 0
    page.get_by_role("link", name="#5").click()

    page.get_by_text("more characters").wait_for()  # the page of a megabyte is being shown
    assert NAME[:10] in page.title()
    page.screenshot(path=PICTURES / "hostile.png")


@pytest.mark.parametrize(("name", "width", "scheme"), [("door-code", "desktop", "light"), (NAME, "phone", "dark")])
def test_a_file_is_well_made_and_inert(tab, tmp_path, name, width, scheme):
    """A conversation as one file: no serious finding, nothing wider than the screen, and no text of others runs."""
    storage, file = prepared(str(tmp_path / "desk.db"), turns=20), tmp_path / "file.html"
    file.write_bytes(standalone(storage, name, memory=True).html)
    storage.close()
    page = tab(width, scheme)
    page.goto(file.as_uri())
    page.screenshot(path=PICTURES / f"file-{width}.png")
    page.locator("details").first.click()

    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in {"serious", "critical"}] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("form, img, iframe, main style, main script").count() == 0
    assert "owned" not in page.title()


def test_a_file_finds_the_page_that_holds_a_fact(tab, tmp_path):
    """Typed letter by letter, or in its words, a fact leads to its page; a link shows all pages again."""
    storage, file = prepared(str(tmp_path / "desk.db"), turns=20), tmp_path / "file.html"
    file.write_bytes(standalone(storage, "door-code").html)
    storage.close()
    page = tab()
    page.goto(file.as_uri())
    field, shown = page.get_by_role("searchbox"), page.locator("#pages > details:visible")

    field.fill("The LIFT needs\tno key")
    assert page.get_by_text("1 of 16 pages has it: #2").is_visible()
    assert shown.count() == 1
    assert page.get_by_text("4471-KX").first.is_visible()
    page.screenshot(path=PICTURES / "file-found.png")
    field.fill("lift harbour alarm")
    assert page.get_by_text("has all of these words, not side by side: #2").is_visible()
    field.fill("<b>nowhere")
    assert page.get_by_text("No page of this file has it").is_visible()
    page.evaluate("location.hash = '#page-3'")
    page.locator("#page-3[open]").wait_for()
    assert shown.count() == 16


def test_the_slider_shows_each_turn_at_once(tab, address):
    """The slider changes the request and the address without a new page, by keys too."""
    page = tab()
    page.goto(f"{address}/request?{DESK}&turn=60")
    slider = page.get_by_role("slider")

    slider.focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name="The request after turn 61").wait_for()
    page.get_by_label("Format").select_option("anthropic")
    page.wait_for_url("**format=anthropic")
    page.get_by_role("heading", name="The request after turn 61").click()  # no field is typed in
    page.keyboard.press("j")
    page.get_by_role("heading", name="The request after turn 62").wait_for()

    assert "format=anthropic" in page.url


def test_the_theme_is_kept(tab, address):
    """The switch turns the colours, and the next page has them as well."""
    page = tab()
    page.goto(address)
    light = page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
    page.get_by_role("button", name="Switch").click()
    page.goto(f"{address}/window?{DESK}")

    assert page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor") != light


CASES = [
    ("door-code", "lift needs no key", "Only a line stood for it"),
    ("allergy", "cashew nuts", "Not listed any more"),
    ("contract", "ninety days of notice", "Clipped away"),
]


@pytest.mark.parametrize(("name", "fact", "verdict"), CASES)
def test_why_it_was_not_visible_is_answered_by_clicking(tab, address, name, fact, verdict):
    """From the list of conversations to the reason, and from there to the message itself."""
    page = tab()
    page.goto(address)
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("link", name="Why not?").click()
    page.wait_for_url("**/why**")
    page.keyboard.press("/")
    page.keyboard.type(fact)
    page.keyboard.press("Enter")

    page.get_by_role("heading", name=verdict).first.wait_for()
    page.screenshot(path=PICTURES / f"why-{name}.png")
    page.locator(".quote a").first.click()

    assert fact in page.locator("article.message:target pre").inner_text()


def test_a_store_of_100000_pages_pages_through(tab, tmp_path):
    """Each tab opens, and older pages are a click away."""
    with closing(long_store(str(tmp_path / "long.db"), HUGE)) as storage, Server(storage) as served:
        page = tab()
        for path in LONG:
            assert page.goto(f"{served}{path}").ok
        page.goto(f"{served}/pages?id=long")
        page.get_by_role("link", name="older pages").click()
        page.get_by_role("link", name="#100153", exact=True).wait_for()
