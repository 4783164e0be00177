"""Generated documentation is current, and links between files lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "scripts" / "generate_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_generated_documentation_is_current() -> None:
    stale = [path.name for path, text in load_generator().generated() if path.read_text(encoding="utf-8") != text]
    assert not stale, f"run 'make docs': {stale}"


def documents() -> list[Path]:
    folders = ("docs", "examples", "src")
    return [*ROOT.glob("*.md"), *(path for folder in folders for path in (ROOT / folder).rglob("*.md"))]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [link for link in _LINK.findall(text) if not link.startswith(("http:", "https:", "mailto:"))]
    missing = [link for link in targets if not (path.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_headings_find_them(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    pairs = re.findall(r"\[[^\]]*\]\(([\w./-]*\.md)?#([^)]*)\)", text)
    missing = [f"{link}#{name}" for link, name in pairs if name not in headings(path.parent / link if link else path)]
    assert not missing


def headings(path: Path) -> set[str]:
    """What links call the headings of a page."""
    found = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}
