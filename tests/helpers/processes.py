"""Start processes from a fork server that has imported litellm: an import takes seconds."""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 600
ROOT = Path(__file__).parents[2]


def own_environment(**more: str) -> dict[str, str]:
    """Return this process's environment with a key and without the user's settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PRAISON", "OPENAI"))}
    return {**kept, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "sk", **more}


def install_plugin(folder: Path) -> str:
    """Write our entry point as an installed package has it; return the `PYTHONPATH`."""
    info = folder / "site" / "praison_compressor-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: praison-compressor\nVersion: 0\n")
    entry = "praison-compressor = praison_compressor.praisonai.plugin:plugin"
    (info / "entry_points.txt").write_text(f"[praisonai.plugins]\n{entry}\n")
    return os.pathsep.join([str(info.parent), str(ROOT)])


def begun(work: Callable[..., object], *given: Any, method: str = "forkserver") -> Any:
    """Start work in a process with this one's environment and folder."""
    return _process(method, dict(os.environ), os.getcwd(), work, given)


def python(
    *words: str, folder: str | Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run Python's `-c SCRIPT` or `-m MODULE` with arguments to its end."""
    with tempfile.TemporaryDirectory() as place:
        files = [str(Path(place, name)) for name in ("out", "err")]
        process = _process("forkserver", dict(environment), str(folder), _run, (words, files))
        process.join(PATIENCE_SECONDS)
        process.kill()
        out, err = (Path(file).read_text("utf-8") for file in files)
        return subprocess.CompletedProcess(words, process.exitcode, out, err)


def _process(
    method: str, environment: dict[str, str], folder: str, work: Callable[..., object], given: Any
) -> Any:
    context: Any = multiprocessing.get_context(method)
    context.set_forkserver_preload(["openai", "litellm"])
    process = context.Process(target=_begin, args=(environment, folder, work, given), daemon=True)
    process.start()
    return process


def _begin(
    environment: dict[str, str], folder: str, work: Callable[..., object], given: Any
) -> None:
    os.environ.clear()  # the server has its own
    os.environ.update(environment)
    os.chdir(folder)
    work(*given)


def _run(words: tuple[str, ...], files: list[str]) -> None:
    for number, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    sys.path[:] = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *sys.path]
    sys.argv = [*words[:1], *words[2:]]
    if words[0] == "-c":
        exec(words[1], {"__name__": "__main__"})
    else:
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
