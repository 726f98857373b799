"""``dsguard run --guard`` in a process that asks for DeepSpeed before it imports it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsguard.runtime.autoload import environment_with_guard

WRAPPED = "import deepspeed; print(hasattr(deepspeed.initialize, '__wrapped__'))"


def python(text: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    before = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join([*map(str, paths), before]).strip(os.pathsep)
    return subprocess.run(
        [sys.executable, "-c", text],
        env=environment_with_guard({**os.environ, "PYTHONPATH": path}),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def deepspeed(tmp_path: Path) -> Path:
    """A folder with a package of this name that fails where ``FAIL`` is set in ``os.environ``."""
    package = tmp_path / "deepspeed"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import os\nif os.environ.get('FAIL'): raise ImportError\ndef initialize(): pass\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    "first",
    [
        "",
        "import importlib.util as u; assert u.find_spec('deepspeed') is not None",
        "import importlib.util as u; [u.find_spec('deepspeed') for _ in range(3)]",
        """
import os
os.environ["FAIL"] = "1"
try:
    import deepspeed
except ImportError:
    del os.environ["FAIL"]
else:
    raise AssertionError
""",
        """
import sys, threading, importlib.util as u
asks = [threading.Thread(target=u.find_spec, args=("deepspeed",)) for _ in range(4)]
for ask in asks: ask.start()
for ask in asks: ask.join()
""",
    ],
)
def test_a_module_that_was_asked_for_first_is_guarded_when_it_is_loaded(
    first: str, deepspeed: Path
) -> None:
    done = python(
        f"{first}\n{WRAPPED}\n"
        "import sys; print(hasattr(deepspeed.initialize.__wrapped__, '__wrapped__'))\n"
        "print(any('Wait' in type(finder).__name__ for finder in sys.meta_path))",
        deepspeed,
    )
    assert done.stdout.split() == ["True", "False", "False"], done.stderr


def test_a_loader_that_takes_no_attribute_loads_it_without_a_guard(deepspeed: Path) -> None:
    done = python(
        """
import sys
from importlib.machinery import ModuleSpec
class Loader:
    __slots__ = ()
    def create_module(self, spec): return None
    def exec_module(self, module): module.initialize = print
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return ModuleSpec(name, Loader()) if name == "deepspeed" else None
sys.meta_path.insert(1, Finder)
import deepspeed
print(deepspeed.initialize is print)
""",
        deepspeed,
    )
    assert done.stdout == "True\n", done.stderr


def test_without_deepspeed_nothing_is_found() -> None:
    done = python(
        "import sys, importlib.util as u\n"
        "sys.path[:] = [p for p in sys.path if 'packages' not in p]\n"
        "print(u.find_spec('deepspeed'))"
    )
    assert done.stdout == "None\n", done.stderr


@pytest.mark.deepspeed
def test_the_front_ends_that_ask_whether_deepspeed_is_there() -> None:
    pytest.importorskip("deepspeed")
    for package in ("accelerate", "transformers"):
        pytest.importorskip(package)
    done = python(
        f"import accelerate\nfrom transformers import Trainer, TrainingArguments\n{WRAPPED}"
    )
    assert done.stdout.splitlines()[-1:] == ["True"], done.stderr
