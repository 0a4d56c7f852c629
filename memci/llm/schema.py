"""The schema of an answer, as a server takes it that makes a model keep to it.

    class Title(BaseModel):             {"type": "json_schema", "json_schema": {"name": "Title", "strict": true,
        title: str                        "schema": {"type": "object", "properties": {"title": {"type": "string"}},
                                                     "required": ["title"], "additionalProperties": false}}}

Strict mode takes a part of JSON Schema only: what it does not know is left out, since the answer is validated here
anyway; what it can't express at all (a dict of any keys, a tuple) is asked for without it. This module knows nothing
of requests.
"""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

_DROPPED = frozenset({"title", "default", "examples", "minLength", "maxLength", "uniqueItems", "discriminator"})


def response_format(answer: "type[BaseModel]") -> dict[str, Any]:
    """Return the `response_format` that asks for an *answer*; strict where its schema allows that."""
    schema = answer.model_json_schema()
    try:
        strict = _strict(schema) if schema.get("type") == "object" else None
    except _Inexpressible:
        strict = None
    form: dict[str, Any] = {"name": answer.__name__[:64], "schema": schema if strict is None else strict}
    return {"type": "json_schema", "json_schema": form if strict is None else {**form, "strict": True}}


def instruction(answer: "type[BaseModel]") -> str:
    """Return the sentence that asks for an *answer* where a server takes no schema."""
    schema = json.dumps(answer.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON object and nothing else. It has this JSON schema: {schema}"


class _Inexpressible(Exception):
    """The schema has something that strict mode does not know."""


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict) or not schema or "prefixItems" in schema or "patternProperties" in schema:
        raise _Inexpressible
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if len(schema.get("allOf", ())) == 1:
        return _strict(schema["allOf"][0])
    strict = {key: value for key, value in schema.items() if key not in _DROPPED}
    if not strict.keys() & {"type", "anyOf", "oneOf", "enum", "const"}:
        raise _Inexpressible
    for key in ("anyOf", "oneOf"):
        if key in strict:
            strict["anyOf"] = [_strict(each) for each in strict.pop(key)]
    if "$defs" in strict:
        strict["$defs"] = {name: _strict(each) for name, each in strict["$defs"].items()}
    if strict.get("type") == "array":
        strict["items"] = _strict(strict.get("items"))
    if strict.get("type") == "object":
        if "properties" not in strict or strict.get("additionalProperties"):
            raise _Inexpressible
        strict["properties"] = {name: _strict(each) for name, each in strict["properties"].items()}
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict
