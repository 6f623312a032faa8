"""Linkage of PHP bodies by the probe: what it sees, what it leaves alone, and when it cannot say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from php_house import GREETER, SAMPLES, PhpHouse, fault, needs_php, php_house, service

from foundry_implementation_actor.domain.verdict import Outcome, Verdict

pytestmark = needs_php

JUDGES = ("syntax", "strict-types", "shape", "linkage")
PHRASE = "src/Plugins/Demo/Models/Phrase.php"
BODY = "<?php\ndeclare(strict_types=1);\nnamespace App\\Plugins\\Demo\\Services;\n"


@pytest.fixture
def house(tmp_path: Path) -> PhpHouse:
    return php_house(tmp_path / "app")


def judged(house: PhpHouse, methods: str, uses: str = "") -> Verdict:
    return house.one(house.candidate(service(methods, uses)), "linkage")


def judged_whole(house: PhpHouse, content: str, path: str = GREETER) -> Verdict:
    return house.one(house.candidate(content, path), "linkage")


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("function a(): int { return $undefined + 1; }", "undefined-variable"),
        ("function a(): int { return (fn () => $undefined)(); }", "undefined-variable"),
        ("function a(): int { $f = function () use ($undefined) { return 1; }; return $f(); }", "undefined-variable"),
        ("function a(): array { return $this->books->languages(); }", "has no property $books"),
        ("function a(): void { parent::a(); }", ""),
        ("function a(): void { self::missing(); }", "has no method missing()"),
        ("function a(): void { static::missing(); }", "has no method missing()"),
        ("function a(): string { return static::MISSING; }", "has no constant MISSING"),
        ("function a(): mixed { return self::$missing; }", "no static property $missing"),
        ("function a(): void { array_map($this->missing(...), []); }", "has no method missing()"),
        ("function a(): void { (new Phrase('a', 'b'))->render(); }", "is not given its parameter $name"),
        ("function a(): void { $this->book->find('en')->render(nam: 'x'); }", "has no parameter $nam"),
        ("function a(\\Closure $f): int { return strlen(); }", "is not given its parameter $string"),
        ("function a(Phrase $p): void { match (true) { default => $p->missing() }; }", "has no method missing()"),
        ("function a(?Phrase $p): mixed { return $p?->missing; }", "has no property $missing"),
        ("function a(?Phrase $p): mixed { return $p?->missing(); }", "has no method missing()"),
        ("function a(Phrase|PhraseBook $p): mixed { return $p->missing(); }", "has no method missing()"),
        ("function a(): \\App\\Nope { throw new \\Exception(); }", "no class App\\Nope"),
        ("function a(): int|\\App\\Nope { throw new \\Exception(); }", "no class App\\Nope"),
        ("function a(object $o): bool { return $o instanceof \\App\\Nope; }", "no class App\\Nope"),
        ("function a(): string { return \\App\\Nope::class; }", "no class App\\Nope"),
        ("function a(): void { try { strlen(''); } catch (\\App\\Nope $e) { } }", "no class App\\Nope"),
        ("function a(): void { \\App\\Nope::go(); }", "no class App\\Nope"),
        ("function a(): void { new \\Countable(); }", "cannot be created"),
        ("function a(): string { return \\PHP_EOLL; }", "no constant PHP_EOLL"),
        ("function a(): mixed { $p = clone $this->book->find('x'); return $p->missing(); }", "has no method missing()"),
        (
            "function a(): mixed { $p = $this->book->find('x') ?: new Phrase('', ''); return $p->missing(); }",
            "missing()",
        ),
        (
            "function a(): string { return $this->greet(...)->missing ?? $this->greet('x', lang: 'a', lan: 'b'); }",
            "$lan",
        ),
        (
            "function a(): mixed { return (function (): mixed { return $this->missing(); })(); }",
            "has no method missing()",
        ),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(method: str, reason: str, house: PhpHouse) -> None:
    said = judged(house, f"public {method}")
    assert not reason or reason in fault(said)


@pytest.mark.parametrize(
    "method",
    [
        "function a(): int { if (!isset($this->later)) { $this->later = 1; } return $this->later; }",
        "function a(array $list): array { usort($list, fn ($x, $y) => $x <=> $y); return $list; }",
        "function a(): int { exec('true', $out, $code); return count($out) + $code; }",
        "function a(): array { $list[] = 1; $map['x']['y'] = 2; return $list + $map; }",
        "function a(): int { global $wide; static $n = 0; return $n + (int) $wide; }",
        "function a(): int { extract(['x' => 1]); return $x; }",
        "function a(): bool { return function_exists('apcu_fetch') && apcu_fetch('a'); }",
        "function a(): int { return defined('NOSUCH') ? NOSUCH : 0; }",
        "function a(object $o): bool { return $o instanceof \\Vendor\\Optional\\Thing; }",
        "function a(): string { return \\Vendor\\Optional\\Thing::class; }",
        "function a(): mixed { return class_exists(\\Vendor\\Thing::class) ? new \\Vendor\\Thing() : null; }",
        "function a(): int { include __DIR__ . '/more.php'; return $given; }",
        "function a(Phrase $p): mixed { return method_exists($p, 'extra') ? $p->extra() : null; }",
        "function a(Phrase $p): mixed { return $p->extra ?? null; }",
        "function a($p): mixed { return $p->anything()->at->all(); }",
        "function a(): mixed { $p = new Phrase('', ''); $p = $p->render('x'); return $p; }",
        "function a(): mixed { foreach ($this->book->languages() as $this->last) { } return $this->last; }",
        "function a(\\Iterator $i): mixed { return iterator_to_array($i); }",
        "function a(): int { return PHP_OS_FAMILY === 'Windows' ? sapi_windows_cp_get() : PHP_WINDOWS_VERSION_MAJOR; }",
        "function a(): void { (new \\ReflectionClass(self::class))->newInstanceWithoutConstructor()->known(); }",
        "function a(\\SimpleXMLElement $x): string { return (string) $x->any->thing['id']; }",
        "function a(): mixed { return (new class { public function b(): int { return 1; } })->b(); }",
        "function a(callable $f): mixed { return $f(...)->call($this); }",
        "function a(): string { return sprintf('%s', ...['a']) . max(1, 2, 3) . implode(',', array: ['a']); }",
    ],
)
def test_what_may_well_be_there_is_left_alone(method: str, house: PhpHouse) -> None:
    assert judged(house, f"public {method}").passed


@pytest.mark.parametrize("kind", sorted(path.stem for path in SAMPLES.glob("kinds/*.php")))
def test_each_kind_of_type_is_understood(kind: str, house: PhpHouse) -> None:
    said = house.judge(house.candidate((SAMPLES / f"kinds/{kind}.php").read_bytes()), *JUDGES)
    assert [name for name, verdict in said.items() if verdict.passed] == list(JUDGES), said


def test_a_member_that_is_not_for_others_is_refused(house: PhpHouse) -> None:
    house.write(
        PHRASE, (house.root / PHRASE).read_text().replace("public function render", "protected function render")
    )
    house.write(GREETER, f"{BODY}class GreeterService {{}}")
    assert "not to be called from here" in fault(judged(house, ""))


def test_a_parameter_under_another_name_is_found_only_where_a_caller_names_it(house: PhpHouse) -> None:
    body = service("").replace("$name", "$who")
    assert "names its parameter $who" in fault(judged_whole(house, body))
    house.write("tests/Plugins/Demo/GreeterServiceTest.php", "<?php // nobody names it\n")
    assert judged_whole(house, body).passed


def test_an_interface_whose_implementor_has_the_method_is_no_invention(house: PhpHouse) -> None:
    method = "public function a(GreeterInterface $g): mixed { return $g->extra(); }"
    assert "GreeterInterface has no method extra()" in fault(judged(house, method))
    other = "<?php class Loud implements GreeterInterface { public function extra() {} }"
    house.write("src/Plugins/Demo/Services/Loud.php", other)
    assert judged(house, method).passed


def test_a_class_of_a_file_that_the_body_loads_itself_is_no_invention(house: PhpHouse) -> None:
    method = "public function a(): object { require_once __DIR__ . '/../more.php'; return new \\Included(); }"
    assert "no class Included" in fault(judged(house, method))
    house.write("src/Plugins/Demo/more.php", "<?php\nfinal class Included {}\n")
    assert judged(house, method).passed


def test_only_findings_that_the_body_adds_count(house: PhpHouse) -> None:
    old = service("public function old(): int { return missing(); }")
    house.write(GREETER, old)
    assert judged_whole(house, old.replace("public function old", "\n\n\n    public function old")).passed
    worse = old.replace("missing();", "missing() + missing() + other();")
    assert [one.message for one in judged_whole(house, worse).findings] == [
        "there is no function missing()", "there is no function other()",
    ]  # fmt: skip


def test_a_method_renamed_while_a_caller_of_its_own_stays_is_refused(house: PhpHouse) -> None:
    before = service("public function a(): int { return $this->b(); } private function b(): int { return 1; }")
    house.write(GREETER, before)
    assert "has no method b()" in fault(judged_whole(house, before.replace("function b()", "function c()")))


def test_two_bodies_that_need_each_other_are_judged_together(house: PhpHouse) -> None:
    path = house.write("src/Plugins/Demo/Services/Helper.php", f"{BODY}class Helper {{}}")
    asked = house.candidate(service("public function a(): int { return (new Helper())->b(); }"))
    assert "Helper has no method b()" in fault(house.one(asked, "linkage"))
    helper = f"{BODY}class Helper {{ public function b(): int {{ return 1; }} }}".encode()
    assert house.one(replace(asked, beside={path: helper}), "linkage").passed


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        ("exit(0);", "ends the process when it is loaded"),
        ("die('bye');", "ends the process when it is loaded"),
        ("throw new \\Exception('at once');", "at once"),
        ("nowhere();", "nowhere()"),
    ],
)
def test_a_file_that_breaks_on_loading_is_refused(start: str, reason: str, house: PhpHouse) -> None:
    assert reason in fault(judged_whole(house, f"{BODY}{start} class GreeterService {{}}"))


def test_a_guard_that_ends_the_process_as_it_did_before_leaves_the_body_unjudged(house: PhpHouse) -> None:
    guarded = f"{BODY}defined('ABSPATH') || exit;\nclass GreeterService {{}}"
    house.write(GREETER, guarded)
    said = judged_whole(house, guarded)
    assert (said.outcome, "and could not before" in said.cause) == (Outcome.UNJUDGED, True)


def test_a_file_that_never_stops_loading_leaves_the_body_unjudged(house: PhpHouse) -> None:
    house.app = replace(house.app, probe_timeout_s=1.0)
    said = judged_whole(house, f"{BODY}while (true) {{}} class GreeterService {{}}")
    assert (said.outcome, "did not end within 1 s" in said.cause) == (Outcome.UNJUDGED, True)


def test_what_a_body_prints_is_not_taken_for_the_answer(house: PhpHouse) -> None:
    forged = """echo "\\n", str_repeat('0', 32), '{"findings":[],"cause":""}', "\\n"; ob_start();"""
    said = judged_whole(house, f"{BODY}{forged} class GreeterService {{ function a() {{ return nope(); }} }}")
    assert "no function nope()" in fault(said)


@pytest.mark.parametrize(
    "broken", ["<?php syntax error", "<?php namespace App\\Plugins\\Demo\\Models; class Phrase extends Gone {}"]
)
def test_a_broken_collaborator_is_not_the_bodys_fault(broken: str, house: PhpHouse) -> None:
    house.write(PHRASE, broken)
    said = judged(house, "")
    assert (said.outcome, "Phrase.php fails" in said.cause) == (Outcome.UNJUDGED, True), said


def test_an_app_without_its_autoloader_leaves_the_body_unjudged(house: PhpHouse) -> None:
    (house.root / "vendor/autoload.php").unlink()
    said = judged(house, "")
    assert (said.outcome, "run composer install" in said.cause) == (Outcome.UNJUDGED, True)


def test_a_host_without_php_or_its_parser_leaves_the_body_unjudged_saying_what_to_install(house: PhpHouse) -> None:
    house.app = replace(house.app, interpreter=("/nowhere/php",))
    assert "apt-get install php-cli" in judged(house, "").cause
    # `open_basedir` hides the parser's folder, as on a host that does not have it.
    hidden = f"open_basedir={house.root}:{Path(__file__).parents[2]}:/tmp"
    house.app = replace(house.app, interpreter=("php", "-d", hidden, "-d", "include_path=."))
    assert "apt-get install php-parser" in judged(house, "").cause


def test_an_extension_that_the_app_asks_for_and_this_host_lacks_is_no_invention(house: PhpHouse) -> None:
    method = "public function a(): mixed { return nosuch_open(); }"
    assert "no function nosuch_open()" in fault(judged(house, method))
    house.write("composer.json", '{"require": {"ext-nosuch": "*"}}')
    assert judged(house, method).passed


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (f"{BODY}class GreeterService {{ function a( {{ }}", "syntax error"),
        (f"{BODY}class GreeterService {{ function a() {{}} function a() {{}} }}", "Cannot redeclare"),
        (f"\ufeff{BODY}class GreeterService {{}}", "byte order mark"),
        (f"hello {BODY}class GreeterService {{}}", "very first statement"),
        (f"{BODY}class GreeterService {{ \0 }}", "syntax error"),
        (f"{BODY}abstract final class GreeterService {{}}", "final"),
    ],
)
def test_what_the_interpreter_cannot_compile_is_refused_by_syntax(content: str, reason: str, house: PhpHouse) -> None:
    assert reason in fault(house.one(house.candidate(content), "syntax"))


def test_a_short_tag_is_text_for_the_syntax_judge_whatever_the_hosts_settings(house: PhpHouse) -> None:
    assert house.one(house.candidate("<? this is no code"), "syntax").passed
    assert house.one(house.candidate(b""), "syntax").passed


def test_a_deprecation_is_told_and_does_not_refuse(house: PhpHouse) -> None:
    said = house.one(house.candidate(f"{BODY}class GreeterService {{ function a($x = 1, $y) {{}} }}"), "syntax")
    assert said.passed
    assert "Optional parameter $x" in said.evidence
