"""Strict types, the declared class and the scaffold, seen in the syntax tree: values in, a reading out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from php_house import GREETER_TEST, candidate

from foundry_implementation_actor.languages.php import is_scaffold, shape, strict_types
from foundry_implementation_actor.languages.port import Reading

HEAD = "<?php\ndeclare(strict_types=1);\nnamespace App\\Plugins\\Demo\\Services;\n"
CLASS = "class GreeterService {}\n"


def look(content: str | bytes, original: str = HEAD + CLASS) -> Reading:
    return shape(candidate(content, original=original.encode()))


def rules(reading: Reading) -> list[str]:
    assert not reading.cause, reading.cause
    return [one.rule for one in reading.findings]


@pytest.mark.parametrize(
    "start",
    [
        "<?php declare(strict_types=1);",
        "<?php\n// a remark\n/** another */\ndeclare( STRICT_TYPES = 1 );",
        "<?php declare(ticks=1, strict_types=1);",
        "<?php declare(ticks=1); declare(strict_types=1);",
        "<?php declare(/* here too */ strict_types=1) ?>\n<?php",
        "<?PHP declare(strict_types=0x1);",
        "#!/usr/bin/env php\n<?php\r\n# one\r\ndeclare(strict_types=1);\r\n",
    ],
)
def test_strict_types_are_seen_in_every_spelling(start: str) -> None:
    assert strict_types(candidate(f"{start} class GreeterService {{}}")) == Reading()


@pytest.mark.parametrize(
    "start",
    [
        "<?php ",
        "<?php declare(strict_types=0);",
        "<?php declare(ticks=1);",
        "<?php // declare(strict_types=1);\n",
        "<?php #[declare(strict_types=1)]\n",
        "<?php declare(not_strict_types=1);",
        "<?php declare(ticks=1 /* , strict_types=1) */);",
        "<?php namespace A; declare(strict_types=1);",
        "",
    ],
)
def test_a_body_without_strict_types_is_refused_for_that(start: str) -> None:
    assert [one.rule for one in strict_types(candidate(f"{start} class GreeterService {{}}")).findings] == [
        "strict-types"
    ]


@pytest.mark.parametrize(
    "declaration",
    [
        "class GreeterService {}",
        "#[\\Attribute] final class GreeterService extends Base implements One, Two { use Some; }",
        "abstract class GreeterService { abstract public function a(): int; }",
        "readonly class GreeterService { public function __construct(public int $a) {} }",
        "interface GreeterService extends One { const A = 'a'; public function b(): static; }",
        "trait GreeterService { private static int $n = 0; }",
        "enum GreeterService: string implements Has { case A = 'a'; const B = self::A; }",
        "use function strlen; use const PHP_EOL; class GreeterService { public $f = PHP_EOL; }",
        "class GreeterService { function a() { return new class extends X { function b() {} }; } }",
        "class GreeterService { function a() { return <<<'TEXT'\n  class Other {}\n  TEXT; } }",
        "function helper(): void {} const LIMIT = 3; class GreeterService {}",
        "class GreeterService {} ?>\n",
    ],
)
def test_each_way_to_declare_the_class_passes(declaration: str) -> None:
    assert look(HEAD + declaration) == Reading()


def test_a_namespace_in_braces_is_the_same_namespace() -> None:
    assert look("<?php namespace App\\Plugins\\Demo\\Services { class GreeterService {} }") == Reading()
    assert (
        look("<?php namespace Other { } namespace App\\Plugins\\Demo\\Services { class GreeterService {} }")
        == Reading()
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<?php namespace App\\Plugins\\Demo; class GreeterService {}", "declares GreeterService in the namespace"),
        ("<?php class GreeterService {}", "in no namespace"),
        (f"{HEAD}class greeterService {{}}", "in these letters"),
        (f"{HEAD}class Greeter {{}}", "it declares App\\Plugins\\Demo\\Services\\Greeter"),
        (f"{HEAD}if (true) {{ class GreeterService {{}} }}", "line 4, but not at its top level"),
        (f"{HEAD}function f() {{ class GreeterService {{}} }}", "not at its top level"),
        (f"{HEAD}namespace Second; class GreeterService {{}}", "in the namespace Second"),
        ("<?php\n", "does not declare App\\Plugins\\Demo\\Services\\GreeterService"),
        ("class GreeterService {}", "does not declare"),
        ("", "does not declare"),
    ],
)
def test_a_body_without_its_class_is_refused_saying_what_it_has_instead(content: str, reason: str) -> None:
    reading = look(content)
    assert rules(reading)[0] == "class-missing"
    assert reason in reading.findings[0].message


def test_a_second_class_is_refused_unless_the_file_had_it() -> None:
    beside = f"{HEAD}{CLASS}final class Helper {{}}\n"
    assert rules(look(beside)) == ["class-beside"]
    assert look(beside, original=beside) == Reading()


def test_what_the_file_declared_for_others_may_not_vanish() -> None:
    original = f"{HEAD}function greet() {{}}\nconst LIMIT = 1;\nenum Tone {{}}\n{CLASS}"
    gone = [one.message for one in look(HEAD + CLASS, original=original).findings]
    assert [message.split(",")[0].rpartition("\\")[2] for message in gone] == ["LIMIT", "Tone", "greet"]


def test_the_class_declared_twice_is_refused() -> None:
    assert rules(look(HEAD + CLASS + CLASS)) == ["class-twice"]


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (f"<h1>Hello</h1>\n{HEAD}{CLASS}", "text-outside"),
        (f"\ufeff{HEAD}{CLASS}", "text-outside"),
        (f"#!/usr/bin/env php\n{HEAD}{CLASS}", "text-outside"),
        (f"{HEAD}{CLASS}?>\n<p>Bye</p>\n", "text-outside"),
        (f"<? namespace App\\Plugins\\Demo\\Services; {CLASS}", "short-tag"),
        (f"{HEAD}{CLASS}?>\n<?= 'x' ?>", "short-tag"),
    ],
)
def test_what_would_be_printed_on_loading_is_refused(content: str, rule: str) -> None:
    assert rule in rules(look(content))


def test_text_that_the_file_had_before_is_not_the_candidates_fault() -> None:
    page = f"{HEAD}{CLASS}?>\n<p>Bye</p>\n"
    assert look(page.replace("Bye", "So long"), original=page) == Reading()


def test_syntax_that_the_grammar_does_not_know_leaves_the_shape_unjudged() -> None:
    assert look(f"{HEAD}class GreeterService {{ public int $a {{ get => 1; }} }}").findings == ()
    assert "cannot read" in look(f"{HEAD}((( class GreeterService {{}}").cause


def test_a_test_class_has_the_namespace_of_the_test_tree() -> None:
    body = "<?php\ndeclare(strict_types=1);\nnamespace App\\Tests\\Plugins\\Demo;\nfinal class GreeterServiceTest {}\n"
    assert shape(candidate(body, GREETER_TEST)) == Reading()


@pytest.mark.parametrize(
    ("members", "scaffold"),
    [
        ("", True),
        ("// to do", True),
        ("public function greet(): string { throw new \\LogicException('not implemented'); }", True),
        ("public function __construct(private int $a) {} public function b(): int { throw new \\Exception(); }", True),
        ("public function a(): void {} public function b(): int { /* soon */ throw new \\Exception(); }", True),
        ("public function greet(): string { return ''; }", False),
        ("public function greet(): string { if (1) { throw new \\Exception(); } return ''; }", False),
        ("public function __construct(public readonly int $a) {}", False),
        ("public function a(): int { throw new \\Exception(); } public function b(): int { return 1; }", False),
        ("const A = 1;", False),
    ],
)
def test_a_scaffold_is_a_class_in_which_nothing_is_done_yet(members: str, scaffold: bool) -> None:
    assert is_scaffold(f"{HEAD}class GreeterService {{ {members} }}".encode(), "GreeterService") is scaffold


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: f"<?php {text}".encode()))
def test_any_bytes_give_a_reading(content: bytes) -> None:
    assert strict_types(candidate(content)).findings or b"strict_types" in content.lower()
    reading = shape(candidate(content, original=content))
    assert reading.findings or reading.cause or b"GreeterService" in content
    assert is_scaffold(content, "GreeterService") in {True, False}


@pytest.mark.parametrize(
    "end", ["__halt_compiler();\nmore", "__HALT_COMPILER ( ) ;<?php class B {}", "__halt_compiler() ?>x"]
)
def test_text_where_php_stops_reading_is_refused_unless_it_stood_there(end: str) -> None:
    assert "text-halted" in rules(look(HEAD + CLASS + end))
    assert rules(look(HEAD + CLASS + end, original=HEAD + CLASS + end)) == []


@pytest.mark.parametrize(
    "end", ["__halt_compiler();\n", "// __halt_compiler(); x", "\n$x = '__halt_compiler();' . 'x';"]
)
def test_an_end_of_reading_with_nothing_behind_it_is_no_fault(end: str) -> None:
    assert rules(look(HEAD + CLASS + end)) == []


@pytest.mark.parametrize("broken", ["<?php\nnamespace ;\n" + CLASS, "<?php\nnamespace Elsewhere;\n" + CLASS])
def test_a_file_that_was_broken_or_elsewhere_can_be_mended(broken: str) -> None:
    assert rules(look(HEAD + CLASS, original=broken)) == []


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (r"throw new \PHPUnit\Framework\SkippedTestError('x');", "uses PHPUnit"),
        (r"$c = 'PHPUnit\\Framework\\SkippedTestError'; throw new $c('x');", "uses PHPUnit"),
        ("return $_SERVER['argv'][0];", "reads the command line"),
        ("register_shutdown_function(fn () => exit(0));", "calls register_shutdown_function"),
    ],
)
def test_a_body_that_reaches_for_what_runs_its_tests_is_refused(step: str, message: str) -> None:
    body = f"{HEAD}class GreeterService {{ public function hi() {{ {step} }} }}\n"
    assert message in look(body).findings[0].message
    assert rules(look(body, body)) == []
