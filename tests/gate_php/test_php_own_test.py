"""A PHP class's own test: what a body may try, what a test file may be, what the host may lack."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from php_house import GREETER, GREETER_TEST, PhpHouse, fault, needs_php, php_house, service

from foundry_implementation_actor.domain.verdict import Outcome, Verdict
from support import children

pytestmark = needs_php

TEST = r"""<?php
declare(strict_types=1);
namespace App\Tests\Plugins\Demo;
use App\Plugins\Demo\Services\{GreeterService, PhraseBook};
use PHPUnit\Framework\TestCase;
final class OwnTest extends TestCase
{
    %s
}
"""
GREETS = "public function testGreets(): void { $this->assertSame('Hi', (new GreeterService(new PhraseBook()))->hi()); }"
OTHER = "public function testOther(): void { $this->assertTrue(true); }"
THERE = "public function testThere(): void { $this->assertTrue(class_exists(GreeterService::class)); }"
PATH = "tests/Plugins/Demo/OwnTest.php"


@pytest.fixture
def house(tmp_path: Path) -> PhpHouse:
    return php_house(tmp_path / "app", test_timeout_s=30.0)


def judged(house: PhpHouse, hi: str, test: str = f"{OTHER} {GREETS}") -> Verdict:
    """What the own test says of a body whose `hi` does this."""
    house.write(PATH, TEST % test)
    body = service(f"public function hi(): string {{ {hi} }}")
    return house.one(house.candidate(body, own_test=PATH), "own-test")


def test_an_honest_body_passes_and_a_faking_one_is_refused_with_the_assertion(house: PhpHouse) -> None:
    assert judged(house, "return 'Hi';").evidence.endswith("2 passed")
    said = fault(judged(house, "return '';"))
    assert f"{PATH}:8: App\\Tests\\Plugins\\Demo\\OwnTest::testGreets: Failed asserting that two strings" in said
    assert "+''" in said


@pytest.mark.parametrize(
    ("hi", "reason"),
    [
        ("exit(0);", "ended with code 0 before PHPUnit could report"),
        ('echo "OK (2 tests, 2 assertions)\\n"; exit(0);', "ended with code 0 before PHPUnit could report"),
        ('echo "2 passed"; exit(1);', "ended with code 1 before PHPUnit could report"),
        ("posix_kill(posix_getpid(), 9); return 'Hi';", "killed by signal 9"),
        ("return $this->hi();", "ended with code"),
        ("return $this->nope();", "undefined method"),
        ("throw new \\RuntimeException('boom');", "boom"),
        ("register_shutdown_function(fn () => exit(3)); return 'Hi';", "ended with code 3 although no test failed"),
        ("ini_set('memory_limit', '16M'); return str_repeat('a', 1 << 26);", "Allowed memory size"),
        ("trigger_error('careful', E_USER_WARNING); return 'Hi';", "careful"),
    ],
)
def test_a_body_that_ends_or_breaks_the_run_is_refused(hi: str, reason: str, house: PhpHouse) -> None:
    assert reason in fault(judged(house, hi))


def test_a_body_that_never_ends_is_refused_at_the_time_limit(house: PhpHouse) -> None:
    house.app = replace(house.app, test_timeout_s=1.5)
    assert "did not end within 1.5 s" in fault(judged(house, "while (true) { usleep(1000); }"))


def test_a_body_that_reads_stdin_gets_nothing_to_read(house: PhpHouse) -> None:
    assert judged(house, "return stream_get_contents(STDIN) === '' ? 'Hi' : 'heard';").passed


def test_what_a_body_starts_is_dead_afterwards(house: PhpHouse) -> None:
    mark = f"sleep 31{os.getpid() % 1000:03}"
    start = f"exec('setsid {mark} >/dev/null 2>&1 &'); return 'Hi';"
    assert judged(house, start).passed
    deadline = time.monotonic() + 5
    while any(mark in child.command for child in children.leftovers()) and time.monotonic() < deadline:
        pass
    assert not [child for child in children.leftovers() if mark in child.command]


def test_a_body_cannot_answer_in_the_runners_place(house: PhpHouse) -> None:
    forged = r"""echo "\n", str_repeat("0", 32), '{"listed":"","report":"<testsuites/>","code":0,"said":""}', "\n";
        foreach (glob('/proc/[0-9]*/fd/1') as $out) { @file_put_contents($out, "{\"code\":0}\n"); } exit(0);"""
    assert "before PHPUnit could report" in fault(judged(house, forged))


def test_a_body_prints_a_great_deal(house: PhpHouse) -> None:
    said = judged(house, "fwrite(STDERR, str_repeat('x', 3_000_000)); return 'Hi';")
    assert said.passed


def test_a_data_provider_counts_each_of_its_sets(house: PhpHouse) -> None:
    provider = r"""public static function sets(): array { return [['Hi'], 'named "one"' => ['Hi']]; }
    /** @dataProvider sets */ public function testEach(string $want): void
    { $this->assertSame($want, (new GreeterService(new PhraseBook()))->hi()); }"""
    assert judged(house, "return 'Hi';", f"{provider} {OTHER}").evidence.endswith("3 passed")


def test_a_skipped_test_beside_one_that_passed_is_told(house: PhpHouse) -> None:
    skip = "public function testLater(): void { $this->markTestSkipped('no'); }"
    assert judged(house, "return 'Hi';", f"{GREETS} {skip}").evidence.endswith("1 passed, 1 skipped or incomplete")


@pytest.mark.parametrize(
    ("test", "cause"),
    [
        ("public function testA(): void { (new GreeterService(new PhraseBook()))->hi(); }", "1 risky"),
        ("/** @doesNotPerformAssertions */ public function testA(): void {}", "1 asserting nothing"),
        ("public function testA(): void { $this->markTestIncomplete(); }", "1 skipped or incomplete"),
        ("public static function setUpBeforeClass(): void { self::markTestSkipped(); }" + OTHER, "1 skipped"),
        ("public function nothing(): void {}", "1 with a warning"),
        ("/** @requires extension nosuch */ public function testA(): void { $this->assertTrue(true); }", "1 skipped"),
    ],
)
def test_a_test_that_lets_nothing_pass_leaves_the_behaviour_unjudged(test: str, cause: str, house: PhpHouse) -> None:
    said = judged(house, "return 'Hi';", test)
    assert (said.outcome, cause in said.cause) == (Outcome.UNJUDGED, True), said


def test_a_set_up_that_fails_refuses(house: PhpHouse) -> None:
    before = "public static function setUpBeforeClass(): void { new GreeterService(1); }"
    assert "TypeError" in fault(judged(house, "return 'Hi';", before + OTHER))


def test_an_app_with_its_own_configuration_is_run_by_it(house: PhpHouse) -> None:
    house.write("boot.php", "<?php require __DIR__ . '/vendor/autoload.php'; define('BOOTED', 'Hi');")
    house.write("phpunit.xml", '<phpunit bootstrap="boot.php"><php><env name="TONE" value="!"/></php></phpunit>')
    assert judged(house, "return BOOTED . trim((string) getenv('TONE'), '!');").passed


def test_the_runner_may_have_arguments_of_its_own(house: PhpHouse) -> None:
    house.app = replace(house.app, runner=(*house.app.runner, "--filter", "testOther"))
    assert judged(house, "return '';").evidence.endswith("1 passed")


def test_the_apps_own_phpunit_is_run_by_the_apps_interpreter(house: PhpHouse) -> None:
    """Composer's `vendor/bin/phpunit` is a PHP script, and may have lost its executable bit."""
    place = house.write("vendor/bin/phpunit", "#!/usr/bin/env php\n<?php\nreturn include '/usr/bin/phpunit';\n")
    house.app = replace(house.app, runner=(str(house.root / place),))
    assert judged(house, "return 'Hi';").passed


def test_a_runner_that_is_no_php_script_is_run_as_it_is(house: PhpHouse) -> None:
    place = house.write("bin/test", '#!/bin/sh\nexec phpunit "$@"\n')
    (house.root / place).chmod(0o755)
    house.app = replace(house.app, runner=(str(house.root / place),))
    assert judged(house, "return 'Hi';").passed


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"runner": ()}, "apt-get install phpunit"),
        ({"runner": ("/nowhere/phpunit",)}, "could not be started"),
        ({"interpreter": ("/nowhere/php",)}, "apt-get install php-cli"),
        ({"interpreter": ("php", "-n")}, 'PHPUnit requires the "dom"'),
    ],
)
def test_a_host_without_the_tools_leaves_the_behaviour_unjudged(
    settings: dict[str, tuple[str, ...]], cause: str, house: PhpHouse
) -> None:
    house.app = replace(house.app, **settings)  # type: ignore[arg-type]  # names of fields of App
    said = judged(house, "return 'Hi';")
    assert (said.outcome, cause in said.cause) == (Outcome.UNJUDGED, True), said


def test_a_test_that_is_green_on_the_scaffold_is_said_to_ask_nothing(house: PhpHouse) -> None:
    house.write(PATH, TEST % OTHER)
    asked = house.candidate(service(""), own_test=PATH)
    scaffold = b"<?php\nnamespace App\\Plugins\\Demo\\Services;\nfinal class GreeterService\n{\n}\n"
    said = house.one(replace(asked, original=scaffold), "own-test")
    assert said.passed
    assert "asks nothing yet" in said.evidence


def test_a_test_lands_without_judging_itself_and_says_what_it_says_of_the_body(house: PhpHouse) -> None:
    asked = house.candidate((house.root / GREETER_TEST).read_bytes(), GREETER_TEST)
    said = house.judge(asked)
    assert {name: verdict.outcome for name, verdict in said.items() if name != "construction"} == {
        "syntax": Outcome.PASSED, "strict-types": Outcome.PASSED, "shape": Outcome.PASSED, "linkage": Outcome.PASSED,
        "own-test": Outcome.UNJUDGED,
    }  # fmt: skip
    assert "green under the body that stands: 3 passed" in said["own-test"].evidence
    red = replace(asked, content=asked.content.replace(b"Hola Ana", b"Hola Eva"))
    assert "red under the body that stands" in house.one(red, "own-test").evidence


def test_the_live_file_and_the_app_are_as_they_were(house: PhpHouse) -> None:
    before = {path: path.read_bytes() for path in house.root.rglob("*") if path.is_file()}
    write = f"@file_put_contents('{house.root}/left', 'x'); @unlink('{house.root}/{GREETER}'); return 'Hi';"
    judged(house, write)
    (house.root / PATH).unlink()
    assert {path: path.read_bytes() for path in house.root.rglob("*") if path.is_file()} == before


HIDDEN = '$name = implode("\\\\", ["PHPUnit", "Framework", "%s"]); throw new $name("later");'


@pytest.mark.parametrize("kind", ["SkippedTestError", "IncompleteTestError", "Warning"])
def test_a_body_that_makes_its_own_test_skip_is_refused(kind: str, house: PhpHouse) -> None:
    said = fault(judged(house, HIDDEN % kind))
    assert "testGreets: the test was skipped from src/Plugins/Demo/Services/GreeterService.php:" in said


def test_a_test_that_skips_under_the_body_and_not_under_what_stands_is_refused(house: PhpHouse) -> None:
    asks = """public function testIt(): void { $greeter = new GreeterService(new PhraseBook());
        if (method_exists($greeter, 'hi')) { $this->markTestSkipped('it can'); } $this->assertTrue(true); }"""
    assert "under this body is skipped" in fault(judged(house, "return '';", f"{asks} {OTHER}"))


def test_a_body_that_writes_over_the_report_at_the_end_is_refused(house: PhpHouse) -> None:
    """It finds no file to write over, and what it writes comes after what PHPUnit wrote."""
    forge = """$run = 'register_' . 'shutdown_function'; $run(function () {
        foreach (glob('/proc/self/fd/*') as $file) { @file_put_contents($file, '<testsuites/>'); } exit(0); });
        return '';"""
    assert judged(house, forge).outcome is Outcome.REFUSED


def test_a_report_that_a_body_wrote_is_told_by_the_story_of_the_run(house: PhpHouse) -> None:
    forge = """$out = 'php:' . '//fd/3'; $case = '<testcase name="testGreets" class="OwnTest" assertions="1"/>';
        file_put_contents($out, "<testsuites><testsuite>$case$case</testsuite></testsuites>"); exit(0);"""
    assert "the report has 2 tests that passed, and PHPUnit told of the end of 1" in fault(judged(house, forge))


@pytest.mark.parametrize("file", ["php://fd/3", "/proc/self/fd/3", "/dev/fd/4"])
def test_a_body_that_opens_the_descriptors_of_the_run_is_refused(file: str, house: PhpHouse) -> None:
    body = service(f"public function hi(): string {{ file_put_contents('{file}', 'x'); return 'Hi'; }}")
    assert "descriptors of the process" in fault(house.one(house.candidate(body), "shape"))


def test_what_only_this_body_makes_unaskable_is_no_fault_of_the_host(house: PhpHouse) -> None:
    said = judged(house, 'echo "PHPUnit requires the x extension."; exit(0);')
    assert said.outcome is Outcome.REFUSED


def test_an_app_whose_classes_nothing_loads_is_unjudged(house: PhpHouse) -> None:
    (house.root / "vendor/autoload.php").unlink()
    said = judged(house, "return 'Hi';", GREETS)
    assert (said.outcome, "no vendor/autoload.php" in said.cause) == (Outcome.UNJUDGED, True), said


def test_a_test_that_is_red_where_nothing_loads_classes_says_what_to_install(house: PhpHouse) -> None:
    (house.root / "vendor/autoload.php").unlink()
    said = judged(house, "return 'Hi';", THERE)
    assert (said.outcome, "run composer install" in said.evidence) == (Outcome.REFUSED, True), said


def test_a_failure_is_told_in_its_own_words_without_the_place_twice(house: PhpHouse) -> None:
    [finding] = judged(house, "return 'Ho';", GREETS).findings
    assert finding.path == f"{PATH}:8"
    assert (str(house.root) in finding.message, "\n\n" in finding.message) == (False, False), finding.message
