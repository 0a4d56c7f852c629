"""The grammar of Gemini's `generateContent`.

    reference    https://ai.google.dev/api/caching#Content
    calling      https://ai.google.dev/gemini-api/docs/function-calling
    signatures   https://ai.google.dev/gemini-api/docs/thought-signatures

Names of keys may be in camelCase, as on the wire, or in snake_case, as in the SDK.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_DATA: Final[list[str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["parts"]
_TOOL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")  # names of functions (reference: FunctionDeclaration)


def problems(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield what Gemini would refuse in *request*: the arguments of `client.models.generate_content`."""
    contents = request.get("contents")
    if not isinstance(contents, list) or not contents:
        yield "contents: a list that is not empty is required"
        return
    if contents[0].get("role") != "user":
        yield "contents[0].role: the user speaks first"  # calling: a turn of calls comes behind one of the user
    asked: list[Mapping[str, Any]] = []
    role_before = ""
    turn = _current_turn(contents)
    for at, content in enumerate(contents):
        path, role, parts = f"contents[{at}]", content.get("role"), content.get("parts")
        if role not in {"user", "model"}:
            yield f"{path}.role: expected 'user' or 'model', got {role!r}"
        if not isinstance(parts, list) or not parts:
            yield f"{path}.parts: expected a list that is not empty"
            parts = []
        for number, part in enumerate(parts):
            yield from _part(part, str(role), f"{path}.parts[{number}]")
        yield from _answers(parts, asked, path)
        asked = [call for part in parts if (call := _value(part, "functionCall")) is not None]
        if asked and role_before != "user":  # calling: no turn of calls behind another turn of the model
            yield f"{path}: a turn of calls comes behind a turn of the user or of results"
        if asked and at > turn:
            # signatures: the first call of each step of the current turn has one
            first = next(part for part in parts if _value(part, "functionCall") is not None)
            if not _value(first, "thoughtSignature"):
                yield f"{path}: the first call of a step has no thoughtSignature"
        role_before = str(role)
    if asked:
        yield f"contents: the calls of {[call.get('name') for call in asked]} at the end have no result"
    config = request.get("config", {})
    yield from _tools(config.get("tools", ()) if isinstance(config, Mapping) else ())


def _current_turn(contents: Sequence[Mapping[str, Any]]) -> int:
    """Return the position of the last content in which the user says something that is no result of a call."""
    for at in range(len(contents) - 1, -1, -1):
        parts = contents[at].get("parts") or []
        if contents[at].get("role") == "user" and any(_value(part, "functionResponse") is None for part in parts):
            return at
    return -1


def _answers(parts: Sequence[Mapping[str, Any]], asked: Sequence[Mapping[str, Any]], path: str) -> Iterator[str]:
    """Yield violations in the results among *parts* (calling): one for each call, of the same name and id."""
    given = [answer for part in parts if (answer := _value(part, "functionResponse")) is not None]
    if [each.get("name") for each in given] != [each.get("name") for each in asked]:
        wanted = [each.get("name") for each in asked]
        yield f"{path}: results of {[each.get('name') for each in given]}, where the turn before calls {wanted}"
        return
    for answer, call in zip(given, asked, strict=True):
        if answer.get("id", call.get("id")) != call.get("id"):
            yield f"{path}: the result {answer['id']!r} is in the place of the result of {call.get('id')!r}"


def _part(part: Mapping[str, Any], role: str, path: str) -> Iterator[str]:
    kinds = [kind for kind in _DATA if _value(part, kind) is not None]
    signed = _value(part, "thoughtSignature")
    if len(kinds) != 1 and not (signed and not kinds):
        yield f"{path}: a part is one of {', '.join(_DATA)}; this is {kinds}"
        return
    if kinds == ["text"] and not part["text"] and not signed:
        yield f"{path}.text: is empty"  # signatures: a part that only carries a signature may have an empty text
    if ("functionCall" in kinds and role != "model") or ("functionResponse" in kinds and role != "user"):
        yield f"{path}: a {kinds[0]} may not be in a turn of the {role}"
    for kind in kinds:
        body = _value(part, kind)
        if kind in {"functionCall", "functionResponse"}:
            given = body.get("args", {}) if kind == "functionCall" else body.get("response")
            if not body.get("name") or not isinstance(body["name"], str):
                yield f"{path}.{kind}.name: is missing"
            elif not _TOOL.fullmatch(body["name"]):
                yield f"{path}.{kind}.name: {body['name']!r} is no name of a function"
            if not isinstance(given, dict):
                yield f"{path}.{kind}: expected an object of {'args' if kind == 'functionCall' else 'response'}"
        if kind == "inlineData" and not (_value(body, "mimeType") and body.get("data")):
            yield f"{path}.inlineData: expected a mimeType and data"
        if kind == "fileData" and not _value(body, "fileUri"):
            yield f"{path}.fileData.fileUri: is missing"


def _tools(tools: Any) -> Iterator[str]:
    names: list[str] = []
    for at, tool in enumerate(tools):
        for number, function in enumerate(_value(tool, "functionDeclarations") or []):
            names.append(str(function.get("name")))
            if not _TOOL.fullmatch(names[-1]):
                yield f"config.tools[{at}].functionDeclarations[{number}].name: {names[-1]!r} is no name of a function"
    if len({*names}) < len(names):
        yield f"config.tools: two functions have the same name: {names}"


def _value(item: Mapping[str, Any], key: str) -> Any:
    """Return the value of *key*, in camelCase or in snake_case; None if there is none."""
    return item.get(key, item.get(re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), key)))
