"""Ask a model about long dialogues: `python -m benchmarks.evals --model … --base-url …`, or `--scripted` without one.

Whatever an endpoint answers is kept in `--work` as it comes, and not asked for again: a run that was broken off is
taken up by the same command. The figures are printed, and appended to results/evals.jsonl with commit and machine.
This module knows nothing of how anything is scored.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from memci.llm import Chat

from ..recall.sentences import sentences
from ..results import CONSOLE, HERE, headline, keep, progress, record
from . import prompt
from .calls import Kept, append
from .dialogues import CATEGORIES, Dialogue, read, source
from .figures import figures, show
from .oracle import Oracle
from .running import Models, Stopped, answers
from .serving import served
from .systems import BUDGET, DEFAULT, WINDOW, Limits, systems

SCRIPTED = "scripted"


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Ask what the *arguments* say (default: those of the command line), print the figures, keep and return them."""
    options = _options(arguments)
    file = source(options.data)
    if file is None:
        CONSOLE.print("evals: skipped, the dialogues are not here; name their file with --data, or set MEMCI_DATA")
        return record(_chosen(options), {})
    dialogues = _asked(read(file), options)
    rows: list[dict[str, Any]] = []
    complete = True
    with _models(options, dialogues) as models:
        for row in _run(dialogues, models, options):
            if isinstance(row, str):
                CONSOLE.print(f"stopped: {row}. The same command goes on from here.")
                complete = False
            else:
                rows.append(row)
    found = figures(rows, dialogues)
    chosen = _chosen(options) | {"dialogues": [each.name for each in dialogues], "complete": complete}
    result = record(chosen, found)
    keep(result, log=options.results / "evals.jsonl" if complete else None, file=options.json)
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    show(found, scripted=options.scripted)
    return result


def _run(dialogues: Sequence[Dialogue], models: Models, options: argparse.Namespace) -> Iterator[dict[str, Any] | str]:
    """Yield the rows as they come, and the reason if it stopped."""
    made = {name: make for name, make in systems().items() if name in options.systems}
    embedder = sentences(options.embedder) if options.embedder else None
    if embedder is None and not made.keys().isdisjoint({"memoryos", "vectors"}):
        CONSOLE.print(
            "no sentence model (--embedder): memoryos and vectors go by spelling, which is not how they are meant"
        )
    limits = Limits(options.budget, options.window, embedder)
    log = options.work / "answers.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("", encoding="utf-8")
    with progress() as bar:
        task = bar.add_task("questions", total=len(made) * sum(len(each.asked) for each in dialogues))

        def watch(system: str, dialogue: str) -> None:
            bar.update(task, description=f"{system}, {dialogue}")

        try:
            for row in answers(made, dialogues, limits, models, workers=options.workers, watch=watch):
                append(log, row)
                bar.advance(task, "question" in row)
                yield row
        except Stopped as stopped:
            yield str(stopped)


def _asked(dialogues: Sequence[Dialogue], options: argparse.Namespace) -> list[Dialogue]:
    """Return the dialogues with the questions that are to be asked: the first of each, in its categories."""
    chosen = []
    for dialogue in dialogues[: options.dialogues]:
        asked = [each for each in dialogue.asked if each.category in options.categories]
        chosen.append(replace(dialogue, asked=tuple(asked[: options.questions])))
    return chosen


@contextmanager
def _models(options: argparse.Namespace, dialogues: Sequence[Dialogue]) -> Iterator[Models]:
    """Open the models; a scripted one is served on this machine."""
    with ExitStack() as opened:
        address, key = options.base_url, None
        if options.scripted:
            address, key = opened.enter_context(served(Oracle(dialogues))), "none"

        def kept(name: str, tokens: int | None) -> Kept:
            chat = Chat(
                name,
                base_url=address,
                api_key=key,
                timeout=options.timeout,
                max_tokens=tokens,
                temperature=options.temperature,
            )
            where = SCRIPTED if options.scripted else options.base_url
            settings = json.dumps([name, where, tokens, options.temperature])
            return Kept(opened.enter_context(chat), options.work / "calls.jsonl", model=settings)

        answering = kept(options.model, options.answer_tokens or None)
        yield Models(answering, kept(options.memory_model or options.model, None), bool(options.memory_model))


def _chosen(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is kept of the options: no address and no path."""
    names = ("model", "memory_model", "scripted", "systems", "questions", "categories", "budget", "window", "workers")
    chosen = {name: getattr(options, name) for name in (*names, "temperature", "answer_tokens")}
    return chosen | {"prompt": prompt.VERSION, "sentences": options.embedder is not None}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evals", description="Ask a model about long dialogues.")
    add = parser.add_argument
    add("--data", type=Path, help="LoCoMo's file, or its folder; default: MEMCI_DATA")
    add("--model", default=os.environ.get("MEMCI_MODEL"), help="who answers; default: MEMCI_MODEL")
    add("--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="of any OpenAI-compatible server")
    add("--memory-model", help="gives memci's memory a model; memoryos has one anyway, by default that of --model")
    add("--systems", type=_listed(str, tuple(systems())), default=list(DEFAULT), help="some of " + ",".join(systems()))
    add("--dialogues", type=int, help="how many, from the first")
    add("--questions", type=int, help="how many of each dialogue, from the first")
    add("--categories", type=_listed(int, CATEGORIES), default=[1, 2, 3, 4], help="5 asks what was never said")
    add("--budget", type=int, default=BUDGET, help="tokens of notes, of memci and sliding")
    add("--window", type=int, default=WINDOW, help="tokens that the model takes, for full")
    add("--temperature", type=_or_none(float), default=0.0, help='"none" where the model takes none')
    add("--answer-tokens", type=int, default=200, help="of an answer at most; 0: no bound, for models that reason")
    add("--timeout", type=float, default=60.0, help="seconds")
    add("--workers", type=int, default=4, help="questions that are asked at a time")
    add("--embedder", type=Path, help="folder of a sentence model, for memoryos and vectors")
    add("--work", type=Path, default=Path(".evals"), help="where answers are kept as they come")
    add("--results", type=Path, default=HERE, help="where figures are kept")
    add("--json", type=Path, help="write the figures to this file, too")
    add("--scripted", action="store_true", help="no model: a script that answers if the evidence is in the prompt")
    options = parser.parse_args(arguments)
    if options.scripted:
        options.model, options.memory_model = SCRIPTED, None
    if not options.model:
        parser.error("name a model with --model or MEMCI_MODEL, or take --scripted")
    return options


def _listed(kind: Callable[[str], Any], allowed: Sequence[Any]) -> Callable[[str], list[Any]]:
    def listed(text: str) -> list[Any]:
        chosen = [kind(each.strip()) for each in text.split(",")]
        if wrong := [each for each in chosen if each not in allowed]:
            raise argparse.ArgumentTypeError(f"{wrong[0]} is none of {', '.join(map(str, allowed))}")
        return chosen

    return listed


def _or_none(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def read_one(text: str) -> Any:
        return None if text == "none" else kind(text)

    return read_one


if __name__ == "__main__":
    main()
