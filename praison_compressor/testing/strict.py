"""What every protocol shares: refusals in the words of real providers, and the pieces of an answer
on the wire.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from .replies import JSON, Asked, Call, Reply, Usage

__all__ = [
    "Dialect",
    "Refusal",
    "Rules",
    "call_id",
    "openai_error",
    "parse_body",
    "pieces",
    "sse",
]


# -------------------------------------------------------------- strict


@dataclass(frozen=True)
class Rules:
    """How strict the provider is where real ones differ; the defaults are OpenAI's."""

    alternate: bool = False
    """Refuse two user or two assistant messages in a row, as many chat templates do."""

    system_first: bool = False
    """Refuse a system message anywhere but first, as many chat templates do."""

    blank_text: bool = True
    """Accept text of white space only (Anthropic never does)."""

    empty_tool_output: bool = True
    """Accept an empty string as a tool's result: a command without output is no mistake."""

    unknown_parameters: bool = False
    """Accept top-level parameters that the API does not know."""

    extra_message_keys: frozenset[str] = frozenset()
    """Further keys of chat messages to accept, such as DeepSeek's `reasoning_content`."""

    count_completion: bool = True
    """Refuse too when prompt and requested completion together pass the window. A cap that alone
    passes it is taken as none: clients know larger windows than a test gives its models."""

    reasoning_by_call_id: bool = False
    """Responses: demand a call's reasoning item even where the call came back without its item id
    (the API cannot know such a call again)."""


class Refusal(Exception):
    """The request is refused: what the error body will say."""

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
        type: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status
        self.type = type


def parse_body(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a request, or refuse what is no valid JSON on a real wire."""
    try:
        body = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
        # Half a surrogate pair survives Python's parser; no real API takes it.
        json.dumps(body, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise Refusal(
            f"We could not parse the JSON body of your request. ({error})", code="invalid_json"
        ) from error
    if not isinstance(body, dict):
        wrong_type("body", "an object", body)
    return body


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def kind(value: Any) -> str:
    """Return the name that the APIs' errors have for a JSON value's type."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "a string"}
    return names.get(type(value)) or ("an array" if isinstance(value, list) else "an object")


def missing(param: str) -> NoReturn:
    """Refuse for want of a required parameter."""
    raise Refusal(
        f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter"
    )


def wrong_type(param: str, expected: str, got: Any) -> NoReturn:
    """Refuse a value of the wrong JSON type."""
    raise Refusal(
        f"Invalid type for '{param}': expected {expected}, but got {kind(got)} instead.",
        param=param,
        code="invalid_type",
    )


def bad_value(param: str, got: Any, supported: Iterable[str]) -> NoReturn:
    """Refuse a value outside an enumeration."""
    names = [f"'{name}'" for name in supported]
    listed = ", ".join(names[:-1]) + f", and {names[-1]}" if len(names) > 1 else names[0]
    raise Refusal(
        f"Invalid value: '{got}'. Supported values are: {listed}.",
        param=param,
        code="invalid_value",
    )


def empty(param: str, what: str) -> NoReturn:
    """Refuse an empty string or array; `what` is `string` or `array`."""
    article = "an" if what == "array" else "a"
    raise Refusal(
        f"Invalid '{param}': empty {what}. Expected {article} {what} with minimum length 1, "
        f"but got an empty {what} instead.",
        param=param,
        code=f"empty_{what}",
    )


def known_keys(value: Mapping[str, Any], allowed: Collection[str], path: str) -> None:
    """Refuse the first key that the API does not know."""
    for key in value:
        if key not in allowed:
            param = f"{path}.{key}" if path else key
            raise Refusal(f"Unknown parameter: '{param}'.", param=param, code="unknown_parameter")


def an_object(value: Any, path: str) -> dict[str, Any]:
    """Return the value if it is a JSON object, else refuse."""
    if not isinstance(value, dict):
        wrong_type(path, "an object", value)
    return value


def an_array(value: Any, path: str) -> list[Any]:
    """Return the value if it is an array with something in it, else refuse."""
    if not isinstance(value, list):
        wrong_type(path, "an array of objects", value)
    if not value:
        empty(path, "array")
    return value


def a_string(holder: Mapping[str, Any], key: str, path: str, *, filled: bool = True) -> str:
    """Return the string under a key, else refuse; `filled` refuses the empty one too."""
    param = f"{path}.{key}" if path else key
    if key not in holder:
        missing(param)
    value = holder[key]
    if not isinstance(value, str):
        wrong_type(param, "a string", value)
    if filled and not value:
        empty(param, "string")
    return value


def json_object_text(holder: Mapping[str, Any], path: str) -> None:
    """Refuse tool-call arguments that are not a string holding a JSON object."""
    text = a_string(holder, "arguments", path, filled=False)
    param = f"{path}.arguments"
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise Refusal(
            f"Invalid '{param}': the string is not valid JSON ({error}).",
            param=param,
            code="invalid_value",
        ) from error
    if not isinstance(parsed, dict):
        wrong_type(param, "a string that holds a JSON object", parsed)


# -------------------------------------------------------------- wire


class Dialect(Protocol):
    """One protocol: pure functions between JSON bodies and our values, no HTTP."""

    name: str

    def check(self, body: JSON, rules: Rules) -> None:
        """Raise Refusal for what the API refuses."""

    def asked(self, body: JSON) -> Asked:
        """Read a request that passed the checks, into the chat API's shape."""
        ...

    def overflow(self, window: int, messages: int, tools: int, completion: int) -> Refusal:
        """Return the refusal of a request that does not fit the window."""
        ...

    def error(self, refusal: Refusal) -> JSON:
        """Return an error body."""
        ...

    def whole(self, reply: Reply, asked: Asked, usage: Usage) -> JSON:
        """Return the body of a reply that is not streamed."""
        ...

    def frames(self, reply: Reply, asked: Asked, usage: Usage) -> Iterator[bytes]:
        """Yield the server-sent events of a streamed reply."""
        ...


def openai_error(refusal: Refusal) -> JSON:
    """Return OpenAI's error body."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.type,
            "param": refusal.param,
            "code": refusal.code,
        }
    }


def sse(payload: Mapping[str, Any], event: str | None = None) -> bytes:
    """Return one server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def pieces(text: str) -> Iterator[str]:
    """Cut a text as a stream would: a few letters at a time, at most about 64 pieces."""
    size = max(12, -(-len(text) // 64))
    return (text[start : start + size] for start in range(0, len(text), size))


def call_id(call: Call, asked: Asked, index: int) -> str:
    """Return the call's own id, or one that no other request to this provider gets."""
    return call.id or f"call_{asked.number:06d}_{index}"
