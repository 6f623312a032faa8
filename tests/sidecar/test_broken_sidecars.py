from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ConfigError
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.sidecar.lint import lint

SOUND = """\
context: foundry-implementation-actor/agentic-context/v1
engine: claude-code
capability: ACME.PARTS.CAP.SUP.007.WID
source_repo: acme-lab/wid
registry_repo: acme-lab/governance
components:
  - name: backend
    path: backend/
    dockerfile: backend/deploy
  - name: stub
    path: stub/
    dockerfile: stub/deploy
ground_in:
  - name: business
    answers: why it is there
    fetch: [kpack, pack, "{capability}", --deep]
    into: .foundry/business.md
    load: eager
"""
COMPONENT = "  - {name: more, path: more/, dockerfile: more}"
REMEDIATE = "10:35: components[0].verify.remediate: must be a whole number from 0 to 5, not "
GROUNDING = "  - {name: more, answers: more, fetch: [cat], into: %s, load: eager}"

# One line of the sound sidecar (0 for one before it all) is replaced; then this error is expected.
BROKEN: list[tuple[int, str, str]] = [
    # the file itself
    (2, "engine: claude-code\n\tcapability: x", "3:1: not readable as YAML: a tab; indent with spaces"),
    (2, "engine: claude-code\nengine: claude-code", "3:1: engine: the key is written twice (first in line 2)"),
    (8, "    path: backend/\n    path: other/", "9:5: components[0].path: the key is written twice (first in line 8)"),
    (2, "engine: *other", "2:9: the alias *other names no anchor"),
    (6, "components: &all\n  - *all", "7:5: the alias *all names no anchor that was finished before it"),
    (2, "engine: !secret claude-code", "2:9: engine: the tag '!secret' is not read"),
    (13, "ground_in: !!python/object:os.system", "13:12: ground_in: the tag 'tag:yaml.org,2002:python/object:os.sy"),
    (2, "engine: claude-code: now", "2:20: not readable as YAML: a second `: ` in one value; check the indentation"),
    (2, "engine: 'claude-code", "2:9: not readable as YAML: a quote that is never closed; close it"),
    (18, "    load: [eager", "18:11: not readable as YAML: a bracket that is never closed; close it"),
    (2, "engine: @claude", "2:9: not readable as YAML: a value cannot start with '@'; put the value"),
    (
        8,
        "     path: backend/",
        "8:10: not readable as YAML: the indentation differs from line 7; start what belongs to",
    ),
    (
        9,
        "   dockerfile: x",
        "9:4: not readable as YAML: the indentation differs from line 8; start what belongs togeth",
    ),
    (9, "  dockerfile: x", "9:3: not readable as YAML: the indentation differs from line 8"),
    (6, "- components:", "6:1: not readable as YAML: a key and a list's `- ` stand at the same indentation (see line"),
    (2, "engine: 'claude' code", "2:18: not readable as YAML: more text behind a value that has ended; put the whole"),
    (1, "context", "2:7: not readable as YAML: line 1 is no `key: value`; end each key with `: `"),
    (2, "engine", "2:1: not readable as YAML: a line that is no `key: value`; end each key with `: `"),
    (
        2,
        "engine: - claude-code",
        "2:9: not readable as YAML: a list on its key's line; write each `- ` on a line below",
    ),
    (2, "engine: ]", "2:9: not readable as YAML: ']' where a value belongs; write the value"),
    (16, "    fetch: ['cat' {x}]", "16:19: not readable as YAML: a comma or the closing bracket"),
    (
        2,
        'engine: "\\d"',
        "2:11: not readable as YAML: a backslash in double quotes that is no escape; use single quotes",
    ),
    (2, "engine: |x", "2:10: not readable as YAML: text behind `|` or `>`; start the text on the next line"),
    (2, "engine: *", "2:10: not readable as YAML: `*` at the start of a value; put the value in quotes"),
    (2, "engine: claude-code\n---", "3:1: a second YAML document"),
    (2, 'engine: "\\UFFFFFFFF"', "2:12: not readable as YAML: a number out of range"),
    (2, "engine: claude\x07code", "2:15: a control character (0x07)"),
    (2, "? [engine]\n: claude-code", "2:3: a mapping, a list or an alias stands where a key belongs"),
    (0, "<<: {engine: claude-code}", "1:1: '<<': merge keys are not read; write the keys out"),
    # the seven keys
    (1, "", "1:1: context: is missing; write `context: foundry-implementation-actor/agentic-context/v1`"),
    (1, "context:", "1:9: context: must be a string, not null"),
    (1, "context: ' '", "1:10: context: is empty"),
    (2, "", "1:1: engine: is missing; write `engine: claude-code`"),
    (2, "engine: codex", "2:9: engine: 'codex' is no engine of the cards; write `engine: claude-code`"),
    (2, "engine: true", "2:9: engine: must be a string, not a boolean (true)"),
    (2, "engine: Claude-Code", "2:9: engine: 'Claude-Code' is no engine"),
    (3, "", "1:1: capability: is missing"),
    (4, "", "1:1: source_repo: is missing"),
    (5, "", "1:1: registry_repo: is missing"),
    (5, "registry_repo: ~", "5:16: registry_repo: must be a string, not null"),
    (13, "ground_in:\nground: ", "13:11: ground_in: must be a list, not null"),
    # capability
    (3, "capability: $(id).CAP.X", "3:13: capability: the segment '$(id)' holds more than"),
    (3, "capability: ACME..CAP.X", "3:13: capability: 'ACME..CAP.X' has an empty segment"),
    (3, "capability: .ACME.CAP.X", "3:13: capability: '.ACME.CAP.X' has an empty segment"),
    (3, "capability: ACME.PARTS.SUP", "3:13: capability: no segment is `CAP`; write it as `<ORG>."),
    (3, "capability: ACME.CAP.SUP.CAP.X", "3:13: capability: 2 segments are `CAP`, and one has to be; write it as"),
    (3, "capability: CAP.SUP", "3:13: capability: nothing stands before or after the `CAP` segment"),
    (3, "capability: ACME.cap", "3:13: capability: nothing stands before or after the `CAP` segment"),
    (3, "capability: ACME-.CAP.X", "3:13: capability: 'acme-' cannot stand in an image reference"),
    (3, "capability: ACME.CAP.X___Y", "3:13: capability: 'x___y' cannot stand in an image reference"),
    (3, "capability: ACME.CAP.é", "3:13: capability: the segment 'é' holds more than"),
    (3, "capability: [ACME, CAP, X]", "3:13: capability: must be a string, not a list"),
    (3, "capability: 7.5", "3:13: capability: must be a string, not a number (7.5)"),
    (3, f"capability: A.CAP.{'X' * 200}", "3:13: capability: 206 characters, more than 128"),
    (3, 'capability: "A.CAP.X\\nY"', "3:13: capability: the segment 'X\\nY' holds more than"),
    # repositories
    (4, "source_repo: wid", "4:14: source_repo: 'wid' is not an owner and a repository; write `<owner>/<repo>`"),
    (4, "source_repo: a/b/repo", "4:14: source_repo: 'a/b/repo' is not an owner and a repository"),
    (4, "source_repo: https://github.com/a/b", "4:14: source_repo: 'https://github.com/a/b' is not an owner"),
    (4, "source_repo: -a/b", "4:14: source_repo: '-a' cannot be an owner"),
    (4, "source_repo: a/b c", "4:14: source_repo: 'b c' cannot be a repository"),
    (4, "source_repo: a/..", "4:14: source_repo: '..' cannot be a repository"),
    (4, "source_repo: a/", "4:14: source_repo: '' cannot be a repository"),
    (4, "source_repo: a/b.git", "4:14: source_repo: 'b.git' ends in `.git`; leave `.git` out"),
    (5, "registry_repo: a/$(id)", "5:16: registry_repo: '$(id)' cannot be a repository"),
    # components
    (13, "components: []\nground_in:", "13:1: components: the key is written twice"),
    (13, "components: []\nground_in:", "13:13: components: is empty; write a list with one"),
    (7, "  - name: a b/c", "7:11: components[0].name: 'a b/c' cannot stand in an image reference and a git tag"),
    (7, "  - name: Backend", "7:11: components[0].name: 'Backend' cannot stand"),
    (7, "  - name: $(id)", "7:11: components[0].name: '$(id)' cannot stand"),
    (7, "  - name: a.lock", "7:11: components[0].name: 'a.lock' cannot stand"),
    (7, "  - name: a..b", "7:11: components[0].name: 'a..b' cannot stand"),
    (7, f"  - name: {'a' * 65}", "7:11: components[0].name: 65 characters, more than 64"),
    (7, "  - name: 7", "7:11: components[0].name: must be a string, not a number (7)"),
    (7, "  - named: backend", "7:5: components[0].name: is missing"),
    (10, "  - name: backend", "10:11: components[1].name: 'backend' is used twice"),
    (10, "  - stub\n  - name: stub", "10:5: components[1]: must be a mapping, not a string"),
    (11, "    path: backend/", "11:11: components[1].path: 'backend/' is used twice"),
    (8, "    path: backend", "8:11: components[0].path: 'backend' does not end in `/`; write 'backend/'"),
    (8, "    path: /", "8:11: components[0].path: '/' is absolute"),
    (8, "    path: /srv/", "8:11: components[0].path: '/srv/' is absolute"),
    (8, "    path: ./", "8:11: components[0].path: './' has a part `.`"),
    (8, "    path: ../stub/", "8:11: components[0].path: '../stub/' has a part `..`"),
    (8, "    path: a/../b/", "8:11: components[0].path: 'a/../b/' has a part `..`"),
    (8, "    path: a//b/", "8:11: components[0].path: 'a//b/' has an empty part"),
    (8, "    path: .git/", "8:11: components[0].path: '.git' lies in git's own directory"),
    (8, "    path: a/.GIT/b/", "8:11: components[0].path: 'a/.GIT/b' lies in git's own directory"),
    (8, "    path: --all/", "8:11: components[0].path: the part '--all' is not allowed"),
    (8, "    path: '*/'", "8:11: components[0].path: the part '*' is not allowed"),
    (8, "    path: ':(top)/'", "8:11: components[0].path: the part ':(top)' is not allowed"),
    (8, "    path: 'a\\b/'", "8:11: components[0].path: the part 'a\\\\b' is not allowed"),
    (8, "    path: CLAUDE.md/", "8:11: components[0].path: `CLAUDE.md` is written by the actor itself"),
    (8, '    path: "a\\0/"', "8:11: components[0].path: holds the character '\\x00'"),
    (8, '    path: "a\\ud800/"', "8:11: components[0].path: holds the character '\\ud800'"),
    (9, "    dockerfile: ../deploy", "9:17: components[0].dockerfile: '../deploy' has a part `..`"),
    (9, "    dockerfile: /deploy", "9:17: components[0].dockerfile: '/deploy' is absolute"),
    (9, "    dockerfile: .git/hooks", "9:17: components[0].dockerfile: '.git/hooks' lies in git's own directory"),
    (9, "    dockerfile: ''", "9:17: components[0].dockerfile: is empty"),
    (9, "", "7:5: components[0].dockerfile: is missing"),
    # grounding
    (14, "  - name: $(id)", "14:11: ground_in[0].name: '$(id)' is no name"),
    (15, "    answers:", "15:13: ground_in[0].answers: must be a string, not null"),
    (16, "    fetch: kpack pack", "16:12: ground_in[0].fetch: must be a list, not a string; write the command as a li"),
    (16, "    fetch: []", "16:12: ground_in[0].fetch: is empty"),
    (16, "    fetch: [kpack, '']", "16:20: ground_in[0].fetch[1]: is empty"),
    (16, "    fetch: [kpack, 3]", "16:20: ground_in[0].fetch[1]: must be a string, not a number (3)"),
    (16, "    fetch: [kpack, {capability}]", "16:20: ground_in[0].fetch[1]: must be a string, not a mapping; write"),
    (16, '    fetch: [kpack, "a\\0b"]', "16:20: ground_in[0].fetch[1]: holds the character '\\x00'"),
    (16, "    fetch: [kpack, '{capabilty}']", "16:20: ground_in[0].fetch[1]: {capabilty} is no placeholder; write one"),
    (17, "    into: /etc/motd", "17:11: ground_in[0].into: '/etc/motd' is absolute"),
    (
        17,
        "    into: /tmp/x.md",
        "17:11: ground_in[0].into: '/tmp/x.md' is absolute; write a file's path in the clone, su",
    ),
    (17, "    into: ../x.md", "17:11: ground_in[0].into: '../x.md' has a part `..`"),
    (17, "    into: .git/config", "17:11: ground_in[0].into: '.git/config' lies in git's own directory"),
    (17, "    into: CLAUDE.md", "17:11: ground_in[0].into: `CLAUDE.md` is written by the actor itself"),
    (17, "    into: .foundry/", "17:11: ground_in[0].into: '.foundry/' is a directory"),
    (17, "    into: backend/x.md", "17:11: ground_in[0].into: 'backend/x.md' meets the component root 'backend/'"),
    (17, "    into: backend", "17:11: ground_in[0].into: 'backend' meets the component root 'backend/'"),
    (18, "    load: lazy", "18:11: ground_in[0].load: 'lazy' is no way to load; write `eager`"),
    (18, "    load: eager\n" + GROUNDING % ".foundry/business.md", "19:53: ground_in[1].into: '.foundry/business.md' "),
    (18, "    load: eager\n" + GROUNDING % ".foundry", "19:53: ground_in[1].into: '.foundry' is a directory in"),
    (13, "ground_in: {}\nground:", "13:12: ground_in: must be a list, not a mapping"),
    # keys of this package's own
    (9, "    dockerfile: x\n    verify: make test", "10:13: components[0].verify: must be a list, not a string"),
    (9, "    dockerfile: x\n    verify: []", "10:13: components[0].verify: is empty"),
    (
        9,
        "    dockerfile: x\n    verify: {}",
        "10:13: components[0].verify.run: is missing; write the command as a list",
    ),
    (9, "    dockerfile: x\n    verify: {run: make}", "10:19: components[0].verify.run: must be a list, not a string"),
    (9, "    dockerfile: x\n    verify: {run: []}", "10:19: components[0].verify.run: is empty; write the command as"),
    (
        9,
        "    dockerfile: x\n    verify: {run: [a, 1]}",
        "10:23: components[0].verify.run[1]: must be a string, not a nu",
    ),
    *(
        (9, f"    dockerfile: x\n    verify: {{run: [a], remediate: {value}}}", REMEDIATE + said)
        for value, said in (
            ("yes", "a boolean (yes); write how many sessions may mend what is red, such as `remediate: 1`"),
            ("-1", "-1; write how many"),
            ("6", "6; write how many"),
            ("1.0", "1.0; write"),
            ("'1'", "a string"),
            ("[1]", "a list"),
        )
    ),
    (0, "scratch: build/", "1:10: scratch: must be a list, not a string"),
    (0, "scratch:", "1:9: scratch: must be a list, not null"),
    (0, "scratch: [../x]", "1:11: scratch[0]: '../x' has a part `..`"),
    (0, "scratch: [.git/x]", "1:11: scratch[0]: '.git/x' lies in git's own directory"),
    (0, "scratch: [x, x/]", "1:14: scratch[1]: 'x/' is used twice"),
    (0, "scratch: [backend]", "1:11: scratch[0]: 'backend/' holds a component"),
    (0, "protected: [/etc/*]", "1:13: protected[0]: '/etc/*' starts with `/`"),
    (0, "protected: ['**/../x']", "1:13: protected[0]: '**/../x' has an empty part, `.` or `..`"),
    (0, "gate: yes", "1:7: gate: must be a mapping, not a boolean (yes)"),
    (0, "gate: {root: ../app, writes: all}", "1:14: gate.root: '../app' has a part `..`"),
    (0, "gate: {root: backend}", "1:7: gate.writes: is missing; write `writes: gate`"),
    (0, "gate: {root: app/, writes: gate}", "1:14: gate.root: 'app/' holds no component and lies in none"),
    (0, "gate: {writes: gate}", "1:7: gate: has no `root`, and there are 2 components; add `root: <directory>`"),
]


def broken(line: int, text: str) -> str:
    lines = SOUND.split("\n")
    if line == 0:
        return "\n".join([text, *lines])
    lines[line - 1 : line] = [text] if text else []
    return "\n".join(lines)


@pytest.mark.parametrize(("line", "text", "expected"), BROKEN, ids=[expected[:60] for _, _, expected in BROKEN])
def test_a_broken_sidecar_is_refused_at_its_line_and_column(
    tmp_path: Path, line: int, text: str, expected: str
) -> None:
    path = tmp_path / "actor-agentic-context.yaml"
    path.write_text(broken(line, text), encoding="utf-8")
    report = lint(tmp_path)
    assert any(error.startswith(f"{path}:{expected}") for error in report.errors), report.errors
    assert all("; " in error for error in report.errors), "each says what to write"
    assert not report.oks
    with pytest.raises(ConfigError) as refused:
        CapabilityConfig.load(path)
    assert str(refused.value) == "\n".join(report.errors)


def test_the_sound_sidecar_of_this_table_is_sound(tmp_path: Path) -> None:
    (tmp_path / "actor-agentic-context.yaml").write_text(SOUND)
    assert (lint(tmp_path).errors, lint(tmp_path).warns) == ([], [])


def test_all_errors_of_a_file_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = SOUND.replace("claude-code", "x").replace("acme-lab/wid", "y").replace("path: stub/", "path: /")
    (tmp_path / "actor-agentic-context.yaml").write_text(text.replace("load: eager", "load: z"))
    errors = lint(tmp_path).errors
    assert [error.split(": ")[1] for error in errors] == [
        "engine", "source_repo", "components[1].path", "ground_in[0].load",
    ]  # fmt: skip


def test_a_component_may_lie_inside_another_one(tmp_path: Path) -> None:
    path = tmp_path / "any-name.yaml"
    path.write_text(SOUND.replace("path: stub/", "path: backend/stub/"))
    config = CapabilityConfig.load(path)
    assert config.components_for(["backend/stub/a", "backend/a", "other"]) == ["backend", "stub"]


@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        (0, "note: mine", "1:1: note: is not a key of this release and is ignored; the keys here are"),
        (0, "scrach: [x]", "1:1: scrach: is not a key of this release and is ignored; did you mean `scratch`?"),
        (9, "    dockerfile: x\n    paths: y", "10:5: components[0].paths: is not a key of this release and is ignor"),
        (
            9,
            "    dockerfile: x\n    verify: {run: [a], remediat: 1}",
            "10:24: components[0].verify.remediat: is not a key of this release and is ignored; did you mean `remed",
        ),
        (9, "    dockerfile: x/Dockerfile", "9:5: components[0].dockerfile: 'x/Dockerfile' looks like a file; write"),
        (13, "ground_in: []\nground:", "13:1: ground_in: is empty"),
        (16, "    fetch: [kpack, '|', jq]", "16:20: ground_in[0].fetch[1]: '|' is passed as a word: no shell runs"),
        (16, "    fetch: [cat, '{{capability}}']", "16:18: ground_in[0].fetch[1]: '{{capability}}' is not how a"),
        (16, "    fetch: [cat, '{CAPABILITY}']", "16:18: ground_in[0].fetch[1]: '{CAPABILITY}' is not how a"),
        (16, "    fetch: [cat, '${capability}']", "16:18: ground_in[0].fetch[1]: '${capability}' is not how a"),
        (16, "    fetch: [cat, --of=$CAPABILITY]", "16:18: ground_in[0].fetch[1]: '$CAPABILITY' is not how a"),
        (16, "    fetch: [cat, <source_repo>]", "16:18: ground_in[0].fetch[1]: '<source_repo>' is not how a"),
        (16, "    fetch: [cat, '${HOME}/x']", "16:18: ground_in[0].fetch[1]: no shell fills in '${HOME}'; write the"),
        (16, "    fetch: [cat, $HOME]", "16:18: ground_in[0].fetch[1]: no shell fills in '$HOME'; write the value out"),
        (16, "    fetch: [cat, $(pwd)/x]", "16:18: ground_in[0].fetch[1]: no shell fills in '$(pwd)'"),
        (16, "    fetch: [cat, ~/notes.md]", "16:18: ground_in[0].fetch[1]: no shell fills in '~/'"),
        (16, "    fetch: ['kpack pack']", "16:13: ground_in[0].fetch[0]: no program is called 'kpack pack'"),
    ],
)
def test_a_likely_mistake_is_warned_of_and_conforms(tmp_path: Path, line: int, text: str, expected: str) -> None:
    path = tmp_path / "actor-agentic-context.yaml"
    path.write_text(broken(line, text))
    report = lint(tmp_path)
    assert report.ok
    assert report.oks
    assert any(warn.startswith(f"{path}:{expected}") for warn in report.warns), report.warns
    CapabilityConfig.load(path)


@pytest.mark.parametrize(
    "fetch", ["[sh, -c, 'cat $HOME/x']", "[jq, '.a as $x | $x']", "[cat, 'a{capability}b']", "[awk, '{print $1}']"]
)
def test_what_only_looks_like_a_mistake_is_not_warned_of(tmp_path: Path, fetch: str) -> None:
    (tmp_path / "actor-agentic-context.yaml").write_text(broken(16, f"    fetch: {fetch}"))
    assert (lint(tmp_path).errors, lint(tmp_path).warns) == ([], [])


def test_another_context_is_warned_of_as_unmigrated_and_refused_to_run(tmp_path: Path) -> None:
    path = tmp_path / "actor-agentic-context.yaml"
    path.write_text("context: somebody/else/v9\nengine: [x, y]\nengine: 7\n")
    report = lint(tmp_path)
    assert report.errors == []
    assert len(report.warns) == 1
    assert report.warns[0].startswith(f"{path}:1:10: context: UNMIGRATED: 'somebody/else/v9' is not")
    assert report.warns[0].endswith("nothing else was checked")
    with pytest.raises(ConfigError, match="1:10: context: UNMIGRATED"):
        CapabilityConfig.load(path)
