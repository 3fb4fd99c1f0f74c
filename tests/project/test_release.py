"""What is released: wheel and sdist build, say the truth about themselves, and work when installed.

Built without isolation, so nothing is fetched; the wheel is tried in a new environment that finds
its dependencies in this one, and the package itself nowhere but in the wheel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = "praison_compressor"


def run(*command: object, cwd: Path, **environment: str) -> str:
    """A command's standard output; a failure shows all that it said."""
    known = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**known, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel, built from the sdist as an index's users would, and the sdist."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def data_files() -> set[str]:
    """Every file of the package in the working tree."""
    found = (path for path in (ROOT / PACKAGE).rglob("*") if path.is_file())
    return {str(p.relative_to(ROOT)) for p in found if "__pycache__" not in p.parts}


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    """Code, vocabularies, templates, vendored script, docs and `py.typed`."""
    wheel, _ = built
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name for name in names if ".dist-info/" not in name}
    assert inside == data_files()
    assert f"{PACKAGE}/py.typed" in inside
    assert [n for n in names if n.endswith("licenses/LICENSE")]


def test_the_sdist_can_be_tested(built: tuple[Path, Path]) -> None:
    """Package, tests, examples, and what a reader looks for first."""
    with tarfile.open(built[1]) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert tops >= {PACKAGE, "tests", "examples", "README.md", "CHANGELOG.md", "LICENSE"}


def test_an_index_would_take_both(built: tuple[Path, Path]) -> None:
    """`twine check --strict`: the description renders, the metadata are sound and say extras."""
    said = run(sys.executable, "-m", "twine", "check", "--strict", *built, cwd=built[0].parent)
    assert said.count("PASSED") == 2
    with zipfile.ZipFile(built[0]) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    assert f"## [{metadata['Version']}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert metadata["Requires-Python"] == ">=3.10"
    extras = set(metadata.get_all("Provides-Extra") or ())
    assert extras == {"encryption", "otel", "postgres", "realtime", "test"}


TRY = """
import json, pathlib
from importlib.metadata import distribution, entry_points
import praison_compressor
from praison_compressor import CompressorConfig, ContextCompressor

said = "The shelf holds boxes, and each is counted. " * 40
messages = [{"role": "user", "content": said + str(n)} for n in range(40)]
config = CompressorConfig(model="gpt-4o", context_window=8_000, protect_last_n_tokens=1_000)
result = ContextCompressor(config).compress_sync(messages)
(plugin,) = entry_points(group="praisonai.plugins", name="praison-compressor")
print(json.dumps({
    "where": str(pathlib.Path(praison_compressor.__file__).parent.parent),
    "version": [praison_compressor.__version__, distribution("praison-compressor").version],
    "status": result.context_status,
    "plugin": plugin.load()().info.name,
}))
"""


def test_the_wheel_works_in_an_environment_of_its_own(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    """It imports, compresses, offers its plugin to the host and its command to a shell."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index"),
        *("--quiet", "--disable-pip-version-check", built[0]),
        cwd=tmp_path,
    )
    # After its own packages the environment finds this one's, which has the package as well.
    own = sysconfig.get_path("purelib", "posix_prefix", {"base": str(home)})
    paths = {"PYTHONPATH": os.pathsep.join([own, sysconfig.get_path("purelib")])}
    told = json.loads(run(python, "-c", TRY, cwd=tmp_path, **paths).splitlines()[-1])
    assert Path(told["where"]).is_relative_to(home)
    assert told["version"][0] == told["version"][1]
    assert told["status"] == "summarized"
    assert told["plugin"] == "praison-compressor"
    command = python.parent / "praison-compressor"
    page, transcript = tmp_path / "page.html", tmp_path / "transcript.json"
    transcript.write_text(json.dumps([{"role": "user", "content": "Count."}]))
    run(command, "report", transcript, "--out", page, cwd=tmp_path, **paths)
    assert "uPlot" in page.read_text("utf-8")
