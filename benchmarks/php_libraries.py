"""Judge the linkage of the PHP libraries that Debian installs beside PHPUnit: unmodified, and with one fault each.

    python benchmarks/php_libraries.py [--files N] [--show]

An unmodified class that is refused is either a fault of the probe or a name that this host really lacks
(another extension, another system, an optional package); `--show` prints them. The faults are planted by
patterns: a method of `$this`, a class after `new` or a function gets a name that is nowhere, an import is dropped.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from foundry_implementation_actor.domain.app import App
from foundry_implementation_actor.domain.unit import Candidate, Place, Target
from foundry_implementation_actor.domain.verdict import Verdict
from foundry_implementation_actor.gate.isolate import isolated
from foundry_implementation_actor.judges.bodies import body_judges

HOST = Path("/usr/share/php")
LIBRARIES = ("PhpParser", "PHPUnit", "SebastianBergmann", "DeepCopy", "Composer", "Symfony/Component")
AUTOLOAD = """<?php
foreach (['PHPUnit/Autoload.php', 'PhpParser/autoload.php', 'Composer/autoload.php'] as $file) {
    if (stream_resolve_include_path($file)) { require_once $file; }
}
foreach (glob('/usr/share/php/Symfony/Component/*/autoload.php') as $file) { require_once $file; }
"""
FAULTS = {
    "method of $this": (r"\$this->([a-z]\w+)\(", r"$this->\1Nowhere("),
    "class after new": (r"\bnew ([A-Z]\w+)\(", r"new \1Nowhere("),
    "function": (r"(?<=[ (!])(count|strlen|sprintf|implode|array_map|is_string|in_array)\(", r"\1_nowhere("),
    "import dropped": (r"(?m)^use [\w\\]+\\(\w+);$(?=(?s:.*)\bnew \1\()", ""),
}
NAMESPACE = re.compile(r"^\s*namespace\s+([\w\\]+)", re.MULTILINE)
CLASS = re.compile(r"^\s*(?:abstract |final |readonly )*(?:class|interface|trait|enum)\s+(\w+)", re.MULTILINE)


def bodies(root: Path, most: int) -> Iterator[Candidate]:
    """The class files of the libraries, copied below `root`; always the same ones for the same number."""
    files = [file for name in LIBRARIES for file in sorted((HOST / name).rglob("*.php"))]
    for file in sorted(random.Random(1).sample(files, min(most, len(files)))):
        text = file.read_text("utf-8", "replace")
        namespace, name = NAMESPACE.search(text), CLASS.search(text)
        if name and name[1] == file.stem:
            path = f"src/{file.relative_to(HOST)}"
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(file.read_bytes())
            place = Place(Target("Host", name[1]), path, namespace[1] if namespace else "", is_test=False)
            yield Candidate(place, file.read_bytes(), b"")


def faulty(body: Candidate) -> Iterator[tuple[str, Candidate]]:
    """The same body with each of the faults that its text allows."""
    text = body.content.decode("utf-8", "replace")
    for fault, (pattern, instead) in FAULTS.items():
        changed = re.sub(pattern, instead, text, count=1)
        if changed != text:
            yield fault, Candidate(body.place, changed.encode(), body.content)


def judge(app: App, body: Candidate) -> Verdict:
    linkage = next(one for one in body_judges("php") if one.name == "linkage")
    with isolated(app, [body]) as run:
        return linkage.judge(app, body, run)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--files", type=int, default=200)
    asked.add_argument("--show", action="store_true")
    options = asked.parse_args()
    heard: Counter[tuple[str, str]] = Counter()
    root = Path(tempfile.mkdtemp()).resolve()
    try:
        (root / "vendor").mkdir()
        (root / "vendor/autoload.php").write_text(AUTOLOAD)
        app = App(root, "php", "src", "tests", ("php",), environment={"PATH": "/usr/local/bin:/usr/bin:/bin"})
        for body in bodies(root, options.files):
            verdict = judge(app, body)
            heard["unmodified", verdict.outcome.value] += 1
            if options.show and not verdict.passed:
                print(body.place.path, verdict.cause, *verdict.findings, sep="\n    ")
            for fault, changed in faulty(body) if verdict.passed else ():
                heard[fault, judge(app, changed).outcome.value] += 1
    finally:
        shutil.rmtree(root)
    for (what, outcome), count in sorted(heard.items()):
        print(f"{what:20} {outcome:10} {count}")


if __name__ == "__main__":
    main()
