"""Linkage by the app's own PHPStan: an executable that speaks its raw format, well and badly."""

from __future__ import annotations

from pathlib import Path

import pytest
from php_house import GREETER, PhpHouse, fault, needs_php, php_house

from foundry_implementation_actor.domain.verdict import Outcome, Verdict

pytestmark = needs_php

# Says of every line with `bad(...)` what is between the parentheses, as PHPStan's raw format does.
SPEAKS = r"""#!/bin/sh
echo "$@" >"$TMPDIR/asked"
for file; do :; done
grep -n 'bad(' "$file" | sed -E "s|^([0-9]+):.*bad\((.*)\).*|$file:\1:\2|"
! grep -q 'bad(' "$file"
"""


def shipping(place: Path, script: str, **settings: object) -> PhpHouse:
    """A house whose app ships this script as its PHPStan."""
    app = place / "app"
    house = php_house(app, analyser=(str(app.resolve() / "vendor/bin/phpstan"),), **settings)
    house.write("vendor/bin/phpstan", script)
    (house.root / "vendor/bin/phpstan").chmod(0o755)
    return house


def judged(house: PhpHouse, body: str, before: str = "<?php // as it was\n") -> Verdict:
    house.write(GREETER, before)
    return house.one(house.candidate(body), "linkage")


def test_findings_of_phpstan_refuse_with_its_words(tmp_path: Path) -> None:
    house = shipping(tmp_path, SPEAKS)
    said = judged(house, "<?php\n// bad(Call to an undefined method A::b().)\n")
    assert fault(said) == f"phpstan: {GREETER}:2: Call to an undefined method A::b()."


def test_no_finding_and_code_0_passes(tmp_path: Path) -> None:
    assert judged(shipping(tmp_path, SPEAKS), "<?php\n").passed


def test_findings_that_the_file_had_before_do_not_count_wherever_they_move(tmp_path: Path) -> None:
    house = shipping(tmp_path, SPEAKS)
    before = "<?php\n// bad(old one)\n// bad(old one)\n"
    assert judged(house, "<?php\n\n\n\n// bad(old one)\n// bad(old one)\n", before).passed
    again = judged(house, "<?php\n// bad(old one)\n// bad(old one)\n// bad(old one)\n// bad(new one)\n", before)
    assert [one.message for one in again.findings] == ["old one", "new one"]


def test_it_is_asked_at_level_0_in_raw_format_with_the_apps_autoloader(tmp_path: Path) -> None:
    house = shipping(tmp_path, '#!/bin/sh\nfor file; do :; done\necho "$file:1:$*"\nexit 1\n')
    asked = judged(house, "<?php\n").findings
    assert asked == ()  # the same was said of the original, so it does not count
    house = shipping(tmp_path / "second", '#!/bin/sh\nfor file; do :; done\necho "$file:1:$* $(cat "$file")"\nexit 1\n')
    message = judged(house, "<?php").findings[0].message
    assert message.startswith("analyse --level=0 --error-format=raw --no-progress")
    assert f"--autoload-file {house.root}/vendor/autoload.php {house.root}/{GREETER} <?php" in message


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("echo 'PHP Fatal error: Allowed memory size exhausted' >&2; exit 255", "ended with 255"),
        ("exit 1", "ended with 1 and named nothing"),
        ("echo 'At least one path must be specified to analyse.'; exit 1", "At least one path must be specified"),
        ("echo '?:?:Child process error (exit code 255): '; exit 1", "trouble of its own: Child process error"),
        ('for f; do :; done; echo "$f:3:Internal error: null given"; exit 1', "trouble of its own: Internal error"),
        ("echo '/somewhere/Else.php:3:Class Foo not found.'; exit 1", "named only other files: /somewhere/Else.php"),
        ('for f; do :; done; echo "$f:3:said but not meant"; exit 0', "ended with 0 and named nothing"),
        ("kill -9 $$", "and named nothing"),
        ("exec sleep 600", "did not end within"),
    ],
)
def test_an_analyser_in_trouble_leaves_the_body_unjudged(script: str, cause: str, tmp_path: Path) -> None:
    house = shipping(tmp_path, f"#!/bin/sh\n{script}\n", probe_timeout_s=1.0)
    said = judged(house, "<?php\n")
    assert (said.outcome, cause in said.cause) == (Outcome.UNJUDGED, True), said


def test_an_analyser_that_is_not_there_leaves_the_body_unjudged(tmp_path: Path) -> None:
    house = php_house(tmp_path / "app", analyser=("/nowhere/phpstan",))
    said = judged(house, "<?php\n")
    assert (said.outcome, said.cause) == (Outcome.UNJUDGED, "the app's analyser /nowhere/phpstan is not there")


def test_a_line_in_the_context_of_a_class_is_the_files_too(tmp_path: Path) -> None:
    script = r"""#!/bin/sh
for file; do :; done
grep -q bad "$file" || exit 0
echo "$file (in context of class App\\Other):7:Access to an undefined property."
exit 1
"""
    said = judged(shipping(tmp_path, script), "<?php // bad\n")
    assert fault(said) == f"phpstan: {GREETER}:7: Access to an undefined property."
