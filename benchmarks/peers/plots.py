"""Plots of peers: cost against evidence, and the window over time. It needs matplotlib: `pip install -e '.[plots]'`.

This module knows nothing of how anything was measured.
"""

from pathlib import Path
from typing import Any

from ..cache.replay import merged
from .compare import OVER, SYSTEM

_TERMS = "0.1/expires"
_OTHER = ("r 0.5", "kept", "drawn", "no clock")
"""ends of the names of memci in other terms"""
_SHOWN = {
    "memci economy, r 0.1": "memci, economy",
    "memci balanced, r 0.1": "memci, balanced",
    "LangChain summarize, keep 20 messages": "LangChain summarize",
    "deepagents": "deepagents",
    "pydantic-ai sliding window, keep a half": "pydantic-ai sliding window",
    "drop and forget, half": "drop and forget",
}
"""whose windows are drawn over time"""


_MAKERS = {
    "memci": "memci, economy and balanced",
    "LangChain": "LangChain",
    "deepagents": "deepagents",
    "LlamaIndex": "LlamaIndex",
    "OpenAI": "OpenAI Agents",
    "Strands": "Strands",
    "pydantic": "pydantic-ai",
    "AutoGen": "AutoGen",
    "Framework": "Agent Framework",
    "": "plain windows",
}
"""parts of the names of systems, and who they are of"""


def draw(figures: list[dict[str, Any]], folder: Path) -> None:
    """Draw *figures* into *folder*, as peers-evidence.png and peers-window.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    _evidence(figures, folder / "peers-evidence.png")
    _windows(figures, folder / "peers-window.png")


def _evidence(figures: list[dict[str, Any]], file: Path) -> None:
    from matplotlib import pyplot as plt

    found = [each for each in merged(figures, *SYSTEM) if each["over"] <= OVER and not each["system"].endswith(_OTHER)]
    names = [name for name in ("airline", "dialogues", "chats") if any(e["conversation"] == name for e in found)]
    windows = sorted({each["window"] for each in found if each["conversation"] in names})
    drawing, places = plt.subplots(
        len(names), len(windows), figsize=(4.2 * len(windows), 3.4 * len(names)), layout="constrained", squeeze=False
    )
    for row, name in zip(places, names, strict=True):
        for place, window in zip(row, windows, strict=True):
            for each in found:
                if (each["conversation"], each["window"]) != (name, window):
                    continue
                at = each["verbatim"] + each["line"], each["costs"][_TERMS] + each["recalls"][_TERMS] + each["own"]
                maker = next(maker for maker in _MAKERS if maker in each["system"] or not maker)
                mine = maker == "memci"
                colour = f"C{list(_MAKERS).index(maker)}"
                label = _MAKERS[maker] if _MAKERS[maker] not in place.get_legend_handles_labels()[1] else None
                place.scatter(
                    *at,
                    color="black" if mine else colour,
                    marker="*" if mine else "o",
                    s=90 if mine else 22,
                    label=label,
                )
                if mine:
                    shown, cost = at
                    place.scatter(shown + each["listed"], cost, marker="*", s=90, facecolors="none", edgecolors="black")
            place.set(title=f"{name}, {window:,} tokens", yscale="log")
            place.grid(alpha=0.3)
            if not place.has_data():  # nothing was measured there
                place.set_axis_off()
                place.set_title("")
    places[0][0].legend(fontsize=6)
    for place in places[-1]:
        place.set_xlabel("evidence, verbatim or on a line\n(hollow: or on a listed page)")
    for row in places:
        row[0].set_ylabel("cost of a call, expiring cache, r .1")
    drawing.savefig(file, dpi=110, metadata={"Software": None})
    plt.close(drawing)


def _windows(figures: list[dict[str, Any]], file: Path) -> None:
    from matplotlib import pyplot as plt

    names = [name for name in ("airline", "dialogues") if any(each["conversation"] == name for each in figures)]
    drawing, places = plt.subplots(len(names), 1, figsize=(10, 3.2 * len(names)), layout="constrained", squeeze=False)
    for place, name in zip(places.flat, names, strict=True):
        for each in figures:
            if (
                each["phase"] == 0
                and (each["conversation"], each["window"]) == (name, 32_000)
                and each["system"] in _SHOWN
            ):
                sizes = each["sizes"]
                place.plot([5 * at for at in range(len(sizes))], sizes, label=_SHOWN[each["system"]], linewidth=0.8)
        place.set(title=f"{name}, a window of 32,000 tokens", ylabel="tokens of a request", xlabel="call")
        place.legend(fontsize=7, ncols=3)
        place.grid(alpha=0.3)
    drawing.savefig(file, dpi=110, metadata={"Software": None})
    plt.close(drawing)
