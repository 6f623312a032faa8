"""A PHP house in a folder of its own, and what the judges say of bodies in it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pytest

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.unit import Candidate, Place, Target
from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from foundry_implementation_actor.gate.isolate import isolated
from foundry_implementation_actor.judges.bodies import body_judges

SAMPLES = Path(__file__).with_name("samples")
GREETER = "src/Plugins/Demo/Services/GreeterService.php"
GREETER_TEST = "tests/Plugins/Demo/GreeterServiceTest.php"

needs_php = pytest.mark.skipif(
    shutil.which("php") is None or shutil.which("phpunit") is None,
    reason="php-cli and phpunit are not installed; scripts/setup-php does it",
)


@dataclass
class PhpHouse:
    """The house of the samples."""

    app: App

    @property
    def root(self) -> Path:
        return self.app.root

    def write(self, path: str, content: str | bytes) -> str:
        """A file of the app as it stands; gives its path back."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def candidate(self, content: str | bytes, path: str = GREETER, *, own_test: str = "") -> Candidate:
        """A body for the class that the file at `path` is named after; the original is what stands there."""
        return candidate(content, path, (self.root / path).read_bytes(), own_test)

    def judge(self, asked: Candidate, *names: str) -> dict[str, Verdict]:
        """What the named judges (all, when none is named) say, up to the first that refuses."""
        said: dict[str, Verdict] = {}
        with isolated(self.app, [asked]) as run:
            for judge in body_judges("php"):
                if not names or judge.name in names:
                    said[judge.name] = judge.judge(self.app, asked, run)
                    if said[judge.name].outcome is Outcome.REFUSED:
                        break
        return said

    def one(self, asked: Candidate, name: str) -> Verdict:
        """What one judge says."""
        return self.judge(asked, name)[name]


def candidate(content: str | bytes, path: str = GREETER, original: bytes = b"", own_test: str = "") -> Candidate:
    """A body that stands nowhere yet."""
    parts = PurePosixPath(path).with_suffix("").parts
    tree = ("App", "Tests") if parts[0] == "tests" else ("App",)
    place = Place(
        Target("Demo", parts[-1]), path, "\\".join((*tree, *parts[1:-1])), parts[0] == "tests", own_test
    )  # fmt: skip
    return Candidate(place, content if isinstance(content, bytes) else content.encode(), original)


def php_house(place: Path, **settings: object) -> PhpHouse:
    """The samples' house copied to `place`."""
    shutil.copytree(SAMPLES / "house", place)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    runner = (shutil.which("phpunit") or "phpunit",)
    app = App(place.resolve(), "php", "src/Plugins", "tests/Plugins", ("php",), runner=runner, environment=environment)
    return PhpHouse(replace(app, **settings))  # type: ignore[arg-type]  # the tests name fields of App


def fault(verdict: Verdict) -> str:
    """The findings of a refusal as one text; fails when it is none."""
    assert verdict.outcome is Outcome.REFUSED, verdict
    return "\n".join(f"{one.rule}: {one}" for one in verdict.findings)


def service(methods: str, uses: str = "") -> str:
    """A GreeterService with more methods."""
    return f"""<?php
declare(strict_types=1);
namespace App\\Plugins\\Demo\\Services;
use App\\Plugins\\Demo\\Contracts\\GreeterInterface;
use App\\Plugins\\Demo\\Models\\Phrase;
{uses}
final class GreeterService implements GreeterInterface
{{
    public function __construct(private PhraseBook $book) {{}}
    public function greet(string $name, string $lang = 'en'): string
    {{
        return ($this->book->find($lang) ?? new Phrase($lang, 'Hello %s'))->render($name);
    }}
    public function known(): array {{ return $this->book->languages(); }}
{methods}
}}
"""
