"""The judges of bodies: which there are for a language, and what loading them takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.judges.bodies import body_judges
from foundry_implementation_actor.system.install import install

WITHOUT_GRAMMAR = "import sys\nsys.modules['tree_sitter_php'] = None\n"
LISTS = """
from foundry_implementation_actor.judges.bodies import body_judges
print(*(one.name for one in body_judges({!r})))
"""


def listed_without_grammar(language: str) -> subprocess.CompletedProcess[str]:
    script = WITHOUT_GRAMMAR + LISTS.format(language)
    return subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=False)


def test_a_python_app_needs_no_grammar_of_php() -> None:
    assert listed_without_grammar("python").stdout == "syntax shape linkage construction own-test\n"


def test_a_php_app_without_the_grammar_is_told_what_to_install() -> None:
    done = listed_without_grammar("php")
    assert "the judges for php need tree_sitter_php" in done.stderr
    assert install("gate") in done.stderr


def test_a_language_that_nobody_knows_is_a_mistake_in_what_was_asked() -> None:
    with pytest.raises(ActorError) as caught:
        body_judges("cobol")
    assert (caught.value.code, caught.value.hint) == (Code.BAD_REQUEST, "use one of php, python")
