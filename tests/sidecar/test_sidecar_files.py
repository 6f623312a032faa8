import os
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.error import ConfigError
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.sidecar.lint import lint
from foundry_implementation_actor.sidecar.load import MAX_BYTES, SIDECAR

SOUND = b"""\
context: foundry-implementation-actor/agentic-context/v1
engine: claude-code
capability: ACME.CAP.WID
source_repo: acme-lab/wid
registry_repo: acme-lab/governance
components: [{name: web, path: web/, dockerfile: web}]
ground_in: []
"""


def bomb() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ": the file is empty; write a sidecar"),
        (b"# nothing but a comment\n", ": the file is empty"),
        (b"- 1\n", ":1:1: must be a mapping, not a list; write the keys of a sidecar"),
        (b"text\n", ":1:1: must be a mapping, not a string"),
        (b"~\n", ":1:1: must be a mapping, not null"),
        (b"a: \xff\n", ":1:4: byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"a: 1\nb: caf\xe9\n", ":2:7: byte 0xe9 is not UTF-8"),
        ("context: x".encode("utf-16"), ":1:1: the file is UTF-16; save it as UTF-8"),
        (b"a: \x00\n", ":1:4: a control character (0x00)"),
        (b"#" * (MAX_BYTES + 1), ": larger than 256 KiB"),
        (b"[" * 20_000, ":1:33: nested deeper than 32 levels"),
        (b"a: [" * 5_000, ":1:65: nested deeper than 32 levels"),
        (b"- x\n" * 10_001, ":10000:3: more than 10,000 values"),
        (bomb(), ":4:"),
    ],
    ids=lambda value: repr(value[:24]),
)
def test_a_file_that_is_no_sidecar_is_one_clear_error(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / SIDECAR).write_bytes(content)
    report = lint(tmp_path)
    assert len(report.errors) > 0
    assert report.errors[0].startswith(f"{tmp_path / SIDECAR}{expected}")


def test_a_ten_megabyte_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / SIDECAR
    with path.open("wb") as file:
        file.truncate(10 * 1024 * 1024)
    assert lint(tmp_path).errors == [f"{path}: larger than 256 KiB; a sidecar is a page of YAML"]


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    (tmp_path / SIDECAR).write_bytes(b"\xef\xbb\xbf" + SOUND.replace(b"\n", b"\r\n"))
    assert lint(tmp_path).errors == []


@pytest.mark.parametrize(
    "name", ["actor-agentic-context.yml", "actor_agentic_context.yaml", "Actor-Agentic-Context.yaml"]
)
def test_a_sidecar_under_nearly_its_name_is_to_be_renamed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(SOUND)
    assert lint(tmp_path).errors == [f"{tmp_path / SIDECAR}: no such file; rename {name} to {SIDECAR}"]


def test_a_folder_without_the_file_says_what_to_create(tmp_path: Path) -> None:
    expected = f"{tmp_path / SIDECAR}: no such file; create {SIDECAR} there; README shows one to start from"
    assert lint(tmp_path).errors == [expected]


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert lint(tmp_path / "none").errors[0].startswith(f"{tmp_path / 'none'}: no such file")
    (tmp_path / "file").touch()
    assert lint(tmp_path / "file" / "below").errors[0].startswith(f"{tmp_path / 'file' / 'below'}: no such file")


def test_a_directory_a_pipe_or_a_loop_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    for name in ("directory", "pipe", "loop"):
        (tmp_path / name).mkdir()
    (tmp_path / "directory" / SIDECAR).mkdir()
    os.mkfifo(tmp_path / "pipe" / SIDECAR)
    (tmp_path / "loop" / SIDECAR).symlink_to(SIDECAR)
    assert "not a file; put the sidecar there" in lint(tmp_path / "directory").errors[0]
    assert "not a file; put the sidecar there" in lint(tmp_path / "pipe").errors[0]
    assert "cannot be read (Too many levels of symbolic links)" in lint(tmp_path / "loop").errors[0]


def test_a_linked_sidecar_is_read_as_mounted_configuration_is(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_bytes(SOUND)
    (tmp_path / SIDECAR).symlink_to("real.yaml")
    assert lint(tmp_path).errors == []


def test_an_unreadable_name_is_shown_and_not_raised(tmp_path: Path) -> None:
    assert lint("a\0b").errors == ["'a\\x00b': no path can hold a NUL; name another folder"]
    assert "cannot be read (File name too long)" in lint("x" * 300).errors[0]
    strange = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n"))
    strange.mkdir()
    error = lint(strange).errors[0]
    assert error.isprintable()
    assert "no such file" in error


def test_a_file_of_another_name_is_read_when_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.yml").write_bytes(SOUND)
    assert CapabilityConfig.load(tmp_path / "other.yml").capability == "ACME.CAP.WID"
    with pytest.raises(ConfigError, match="no such file"):
        CapabilityConfig.load(tmp_path)


def test_aliases_that_do_not_explode_are_read(tmp_path: Path) -> None:
    text = SOUND.replace(b"acme-lab/wid", b"&repo acme-lab/wid").replace(b"acme-lab/governance", b"*repo")
    (tmp_path / SIDECAR).write_bytes(text.replace(b"dockerfile: web", b"dockerfile: &d web, verify: [*d, *d]"))
    config = CapabilityConfig.load(tmp_path)
    assert (config.registry_repo, config.components[0].verify) == ("acme-lab/wid", ("web", "web"))


def test_an_error_behind_an_alias_stands_where_the_alias_is(tmp_path: Path) -> None:
    text = SOUND.replace(
        b"[{name: web, path: web/, dockerfile: web}]", b"[&c {name: web, path: web/, dockerfile: web}, *c]"
    )
    (tmp_path / SIDECAR).write_bytes(text)
    errors = lint(tmp_path).errors
    assert [error.split(f"{SIDECAR}:")[1].split(";")[0] for error in errors] == [
        "6:59: components[1].name: 'web' is used twice",
        "6:59: components[1].path: 'web/' is used twice",
    ]
