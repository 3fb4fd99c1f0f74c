"""What PowerShell's commands do to files: named parameters, several names for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .programs import Effect, is_file

__all__ = ["of_cmdlet"]

_ACTIONS = {
    **dict.fromkeys("get-content gc type import-csv select-string get-filehash".split(), "read"),
    **dict.fromkeys("set-content out-file new-item ni export-csv tee-object".split(), "created"),
    **dict.fromkeys("add-content clear-content".split(), "edited"),
    **dict.fromkeys("remove-item ri del erase".split(), "deleted"),
    **dict.fromkeys("move-item mi move rename-item rni ren".split(), "moved"),
    **dict.fromkeys("copy-item ci copy".split(), "copied"),
}
_NAMES = ("-path", "-literalpath", "-filepath")
_TARGETS = ("-destination", "-newname")
_SWITCHES = frozenset("-recurse -force -raw -append -whatif -passthru -verbose -nonewline".split())


def of_cmdlet(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    """The files that `Set-Content -Path a.txt -Value x` and its like touch."""
    action = _ACTIONS.get(name.lower())
    if action is None:
        return
    paths, target = _paths(name.lower(), arguments)
    for path in paths:
        if action == "copied":
            yield Effect(target or path, "created", name)
        else:
            yield Effect(path, action, name, target if action == "moved" else "")


def _paths(name: str, arguments: Sequence[str]) -> tuple[list[str], str]:
    """The files, and where they go."""
    given: dict[str, str] = {}
    placed: list[str] = []
    option = ""
    for word in arguments:
        if word.startswith("-"):
            option = "" if word.lower() in _SWITCHES else word.lower()
        elif option:
            given[option] = word
            option = ""
        else:
            placed.append(word)
    if name == "select-string" and not any(key in given for key in ("-pattern", *_NAMES)):
        placed = placed[1:]
    named = next((given[key] for key in _NAMES if key in given), None)
    if named is None and placed:
        named, placed = placed[0], placed[1:]
    target = next((given[key] for key in _TARGETS if key in given), "".join(placed[:1]))
    paths = [path.strip("() ") for path in (named or "").split(",")]
    return [path for path in paths if is_file(path)], target
