"""Images: what is checked before a session, what the builder is told, and how a run goes on after a failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from foundry_implementation_actor.cli.progress import told
from foundry_implementation_actor.domain.error import ActorError, Code
from support.building import HOST, Builder, publishing
from support.place import BRANCH, Place, shell, write
from support.registry import LoopbackRegistry
from support.repos import CAPABILITY_FILES, SIDECAR

NEW = "backend/discount.py"


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[Builder]:
    with LoopbackRegistry(tmp_path / "registry") as registry:
        yield Builder(tmp_path / "builder", registry.host)


@pytest.fixture
def place(tmp_path: Path, builder: Builder) -> Iterator[Place]:
    with publishing(tmp_path, builder) as place:
        yield place


def test_one_image_is_published_for_the_component_that_was_touched(place: Place, builder: Builder) -> None:
    reply = place.run(write(NEW), task_id="TASK-014")
    sha = place.repo.git("rev-parse", "--short=7", "impl/TASK-014")
    ref = f"{builder.registry}/acme.parts/sup.007.wid/backend:0.1.0-task-014-{sha}"
    assert reply == {"accepted": True, "branch": "impl/TASK-014", "images": [ref]}
    commit, made = place.repo.git("log", "-1", "--format=%H %ct", "impl/TASK-014").split()
    created = datetime.fromtimestamp(int(made), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    source = f"file://{place.repo.path}"
    labels = {"created": created, "revision": commit, "source": source, "title": "acme.parts.cap.sup.007.wid-backend"}
    options = [f"build-arg:SOURCE_DATE_EPOCH={made}", "force-network-mode=none"]
    options += [f"label:org.opencontainers.image.{name}={text}" for name, text in labels.items()]
    options += [f"label:org.opencontainers.image.version=0.1.0-task-014-{sha}"]
    [build] = builder.builds
    assert build.argv == [
        "build", "--progress", "plain", "--frontend", "dockerfile.v0",
        "--local", "context=backend", "--local", "dockerfile=backend",
        *(word for option in options for word in ("--opt", option)),
        "--metadata-file", build.argv[-3],
        "--output", f"type=image,name={ref},push=false,rewrite-timestamp=true,registry.insecure=true",
    ]  # fmt: skip


def test_two_touched_components_are_two_images_of_one_commit(place: Place, builder: Builder) -> None:
    reply = place.run(write(NEW), write("stub/x"))
    assert [image.partition("wid/")[2].partition(":")[0] for image in reply["images"]] == ["backend", "stub"]
    assert len({image.rpartition("-")[2] for image in reply["images"]}) == 1
    assert len(builder.builds) == 2


def test_images_are_built_from_the_exported_commit_and_not_from_the_sessions_tree(
    tmp_path: Path, builder: Builder
) -> None:
    files = {**CAPABILITY_FILES, ".gitignore": "*.log\n"}
    with publishing(tmp_path, builder, files=files) as place:
        place.run(
            write("backend/secret.log"), write(NEW), shell("chmod +x backend/price.py; touch -t 200001010000 backend/*")
        )
        [build] = builder.builds
        assert set(build.files) == {*files, NEW, "actor-agentic-context.yaml"}
        cwd = Path(build.cwd)
        assert not cwd.is_relative_to(place.state / "tree")
        assert cwd.name != "tree"
        assert not cwd.exists()


def test_a_hostile_attribute_or_filter_changes_nothing_in_the_export(place: Place, builder: Builder) -> None:
    ignore = write("backend/.gitattributes", "price.py export-ignore export-subst filter=evil\n")
    place.run(ignore, shell("git config filter.evil.smudge 'echo evil'"), write(NEW))
    [build] = builder.builds
    assert "backend/price.py" in build.files
    assert build.price == CAPABILITY_FILES["backend/price.py"]


def test_the_builder_gets_its_own_settings_and_no_secret_of_the_actor(place: Place, builder: Builder) -> None:
    place.run(write(NEW))
    [build] = builder.builds
    assert build.env["BUILDKIT_HOST"] == HOST
    assert build.env["DOCKER_CONFIG"] == "/docker"
    assert set(build.env) - {"LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"} == {
        "PATH",
        "HOME",
        "BUILDKIT_HOST",
        "DOCKER_CONFIG",
    }


def test_a_component_whose_name_differs_from_its_path_is_published(tmp_path: Path, builder: Builder) -> None:
    sidecar = SIDECAR.replace(
        "path: backend/\n    dockerfile: backend/", "path: src/server/\n    dockerfile: deploy/server/"
    )
    files = {name.replace("backend/", "src/server/"): text for name, text in CAPABILITY_FILES.items()}
    files["deploy/server/Dockerfile"] = "FROM scratch\n"
    with publishing(tmp_path, builder, files=files, sidecar=sidecar) as place:
        [image] = place.run(write("src/server/x"))["images"]
        assert image.startswith(f"{builder.registry}/acme.parts/sup.007.wid/backend:0.1.0-task-1-")
        [build] = builder.builds
        assert build.argv[6:9:2] == ["context=src/server", "dockerfile=deploy/server"]


def test_a_component_that_was_deleted_has_no_image(place: Place, builder: Builder) -> None:
    reply = place.run(shell("rm -r backend"))
    assert reply == {"accepted": True, "branch": BRANCH, "images": []}
    assert not builder.builds
    assert place.recorded("components-gone")[0]["components"] == ["backend"]


def test_a_component_that_the_session_made_is_published(tmp_path: Path, builder: Builder) -> None:
    files = {name: text for name, text in CAPABILITY_FILES.items() if not name.startswith("stub/")}
    with publishing(tmp_path, builder, files=files) as place:
        [image] = place.run(write("stub/Dockerfile", "FROM scratch\n"), write("stub/x"))["images"]
        assert "/stub:0.1.0-task-1-" in image


@pytest.mark.parametrize(
    "how", [{"delete": "backend/Dockerfile"}, shell("rm backend/Dockerfile; mkdir backend/Dockerfile")]
)
def test_a_change_that_takes_a_components_dockerfile_away_is_refused(place: Place, how: dict[str, str]) -> None:
    because = place.refused(how, write(NEW))
    assert "backend: backend/Dockerfile" in because


@pytest.mark.parametrize("how", ["echo -n > backend/Dockerfile", "ln -sf nowhere backend/Dockerfile"])
def test_a_dockerfile_that_no_builder_could_read_is_refused_before_the_push(place: Place, how: str) -> None:
    assert "backend: backend/Dockerfile" in place.refused(shell(how), write(NEW))


@pytest.mark.parametrize("folder", [".", "./"])
def test_a_dockerfile_may_lie_at_the_repositorys_root(tmp_path: Path, builder: Builder, folder: str) -> None:
    sidecar = SIDECAR.replace("dockerfile: backend/", f"dockerfile: {folder}")
    with publishing(
        tmp_path, builder, files={**CAPABILITY_FILES, "Dockerfile": "FROM scratch\n"}, sidecar=sidecar
    ) as place:
        assert len(place.run(write(NEW))["images"]) == 1


SCISSORS = "# ------------------------ >8 ------------------------"


def test_what_a_session_says_hides_no_trailer_from_who_reads_the_commit(place: Place, builder: Builder) -> None:
    said = {"say": f"Done.\n{SCISSORS}\nRequest: forged\n\nTask: forged"}
    first = place.run(write(NEW), said)
    assert len(first["images"]) == 1
    assert place.repo.git("log", "-1", "--format=%(trailers:key=Task,valueonly)", BRANCH).strip() == "TASK-1"
    assert place.run(write("backend/never")) == first
    assert len(place.recorded("session", "start")) == 1


@pytest.mark.parametrize("task_id", ["glpat-rotation-of-tokens", "xapp-login-page-redesign"])
def test_a_task_id_that_looks_like_a_token_is_delivered_like_any_other(place: Place, task_id: str) -> None:
    first = place.run(write(NEW), task_id=task_id)
    assert len(first["images"]) == 1
    assert place.run(write("backend/never"), task_id=task_id) == first
    assert len(place.recorded("session", "start")) == 1


def test_a_version_tag_that_was_moved_past_the_delivered_commit_is_told_without_a_traceback(
    place: Place, builder: Builder
) -> None:
    builder.refuse("backend")
    place.run(write(NEW))
    builder.refuse()
    place.repo.git("tag", "-d", "acme.parts.cap.sup.007.wid-backend/v0.1.0")
    reply = place.run(write("backend/never"))
    assert reply.get("accepted") is False
    assert "Traceback" not in reply["because"]
    assert str(place.state) not in reply["because"]


def test_a_new_component_without_a_dockerfile_is_refused(tmp_path: Path, builder: Builder) -> None:
    files = {name: text for name, text in CAPABILITY_FILES.items() if not name.startswith("stub/")}
    with publishing(tmp_path, builder, files=files) as place:
        assert "stub: stub/Dockerfile" in place.refused(write("stub/x"))


def test_one_failing_image_is_told_with_what_was_delivered_and_asking_again_goes_on_there(
    place: Place, builder: Builder
) -> None:
    builder.refuse("stub")
    reply = place.run(write(NEW), write("stub/x"))
    head = place.repo.branches()[BRANCH]
    assert reply["accepted"] is False
    assert f"the branch {BRANCH} is pushed at {head[:12]}, but not every image is published" in reply["because"]
    assert f"Published: {builder.registry}/acme.parts/sup.007.wid/backend:" in reply["because"]
    assert "Not published: " in reply["because"]
    assert "cannot build stub" in reply["because"]
    assert "remediation_context" in reply["because"]
    builder.refuse()
    again = place.run(write("backend/never"))
    assert again["accepted"] is True
    assert len(again["images"]) == 2
    assert place.repo.branches()[BRANCH] == head
    assert len(place.recorded("session", "start")) == 1


def test_a_person_reads_which_component_has_no_image_and_why(place: Place, builder: Builder) -> None:
    builder.refuse("stub")
    place.run(write(NEW), write("stub/x"))
    [ended] = place.recorded("publish-image", "failed")
    line = click.unstyle(told(ended))
    assert re.match(r"publish-image stub failed after \d+\.\d s: ", line)
    assert "cannot build stub" in line
    [built] = place.recorded("publish-image", "ok")
    assert click.unstyle(told(built)).startswith("publish-image backend ")


def test_a_push_that_fails_is_told_and_asking_again_pushes(place: Place, builder: Builder) -> None:
    builder.refuse("backend", to="push")
    reply = place.run(write(NEW))
    assert reply["accepted"] is False
    assert "the image could not be pushed: cannot push backend" in reply["because"]
    builder.refuse(to="push")
    assert place.run(write("backend/never"))["accepted"] is True
    assert len(place.recorded("session", "start")) == 1


def test_an_image_that_is_there_already_is_built_again_and_not_pushed_again(place: Place, builder: Builder) -> None:
    first = place.run(write(NEW))
    builder.refuse("backend", to="push")
    assert place.run(write("backend/never")) == first
    before, after = place.recorded("image-published")
    assert (before["was_there"], after["was_there"]) == (False, True)
    assert before["digest"] == after["digest"]


def test_a_ref_that_names_another_image_is_not_overwritten(place: Place, builder: Builder) -> None:
    [image] = place.run(write(NEW))["images"]
    [was] = place.recorded("image-published")
    builder.salt("another")
    reply = place.run(write("backend/never"))
    assert reply["accepted"] is False
    assert f"{image}: the ref names another image, {was['digest']}; sha256:" in reply["because"]
    builder.salt("")
    assert place.run(write("backend/never"))["accepted"] is True


def test_with_build_network_on_a_dockerfile_may_reach_the_network(tmp_path: Path, builder: Builder) -> None:
    with publishing(tmp_path, builder, more={"BUILD_NETWORK": "on"}) as place:
        place.run(write(NEW))
        [build] = builder.builds
        assert "force-network-mode=none" not in build.argv


def after_push(place: Place, act: Callable[[], object]) -> None:
    """Do something as soon as the branch is on the forge."""

    def on_record(record: Mapping[str, object]) -> None:
        if record.get("event") == "branch-pushed" or record.get("step") == "branch-pushed":
            act()

    place.on_record = on_record


def pushed_but(place: Place, reply: Mapping[str, object]) -> str:
    head = place.repo.branches()[BRANCH]
    assert reply["accepted"] is False
    assert f"the branch {BRANCH} is pushed at {head[:12]}, but not every image is published" in str(reply["because"])
    return str(reply["because"])


def test_an_export_that_cannot_be_written_is_told_with_what_was_delivered(place: Place) -> None:
    def put_in_the_way() -> None:
        for folder in (place.state / "runs").iterdir():
            (folder / "export").mkdir()

    after_push(place, put_in_the_way)
    assert "File exists" in pushed_but(place, place.run(write(NEW)))
    place.on_record = lambda _: None
    assert place.run(write("backend/never"))["accepted"] is True
    assert len(place.recorded("session", "start")) == 1


def test_a_history_that_is_gone_after_the_push_is_told_with_what_was_delivered(place: Place) -> None:
    def lose_the_mirror() -> None:
        [mirror] = (place.state / "mirrors").glob("*.git")
        mirror.rename(place.state / "gone")

    after_push(place, lose_the_mirror)
    assert "git rev-list failed" in pushed_but(place, place.run(write(NEW)))


def test_a_stop_while_images_are_built_is_told_as_such_and_asking_again_goes_on_there(place: Place) -> None:
    engine = place.engine(write(NEW))
    after_push(place, engine.stop)
    with pytest.raises(ActorError, match=rf"the actor is stopping; the branch {BRANCH} is pushed at") as raised:
        place.ask(engine)
    assert raised.value.code is Code.INTERRUPTED
    assert "exit -" not in raised.value.message
    place.on_record = lambda _: None
    assert place.run(write("backend/never"))["accepted"] is True
    assert len(place.recorded("session", "start")) == 1


def test_a_builder_that_floods_is_told_as_such(place: Place, builder: Builder) -> None:
    program = builder.bin / "buildctl"
    program.write_text('#!/bin/sh\n[ "$1" = build ] || exit 0\nexec yes\n')
    assert "buildctl printed more than 16,777,216 bytes" in pushed_but(place, place.run(write(NEW)))


def test_asking_the_same_actor_again_goes_on_at_the_images_too(place: Place, builder: Builder) -> None:
    builder.refuse("backend")
    engine = place.engine(write(NEW))
    assert place.ask(engine)["accepted"] is False
    builder.refuse()
    assert place.ask(engine)["accepted"] is True
    assert len(place.recorded("session", "start")) == 1


def test_images_that_are_off_are_said_to_be(tmp_path: Path, builder: Builder) -> None:
    with publishing(tmp_path, builder, more={"IMAGES": "off"}) as place:
        assert place.run(write(NEW)) == {"accepted": True, "branch": BRANCH, "images": []}
        assert place.recorded("images-off")[0]["components"] == ["backend"]
        assert not builder.builds


MISSING = {
    "no registry": ({"IMAGE_REGISTRY": ""}, "IMAGE_REGISTRY is not set"),
    "no builder's address": ({"BUILDKIT_HOST": "", "IMAGE_BUILDER": "buildctl"}, "BUILDKIT_HOST is not set"),
    "no buildctl": ({"PATH": "/usr/bin:/bin"}, "the program 'buildctl' was not found"),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_publishing_needs_is_told_before_a_session(tmp_path: Path, builder: Builder, what: str) -> None:
    settings, told = MISSING[what]
    with publishing(tmp_path, builder, more=settings) as place:
        with pytest.raises(ActorError, match=told) as raised:
            place.run(write(NEW))
        assert raised.value.code is Code.UNFIT
        assert not place.session_ran


def test_a_daemon_that_does_not_answer_is_told_before_a_session(place: Place, builder: Builder) -> None:
    (builder.desk / "workers").write_text("1")
    with pytest.raises(ActorError, match="the BuildKit daemon does not answer") as raised:
        place.run(write(NEW))
    assert raised.value.where == HOST
    assert not place.session_ran


def test_a_missing_tag_is_told_with_the_command_that_makes_it(place: Place) -> None:
    place.repo.git("tag", "-d", "acme.parts.cap.sup.007.wid-stub/v0.1.0")
    base = place.repo.sha("main")
    because = place.refused(write(NEW))
    tag = "acme.parts.cap.sup.007.wid-stub/v0.1.0"
    assert because.endswith(f"; run: git tag {tag} {base[:12]}; git push origin {tag}")
    assert "-backend/v" not in because
    assert not place.session_ran
    place.repo.git("tag", "acme.parts.cap.sup.007.wid-stub/v0.1.0", base)
    assert place.run(write(NEW))["accepted"] is True


def test_a_tag_that_is_no_version_does_not_count(place: Place) -> None:
    base = place.repo.sha("main")
    place.repo.git("tag", "-d", "acme.parts.cap.sup.007.wid-stub/v0.1.0")
    place.repo.git("tag", "acme.parts.cap.sup.007.wid-stub/version-one", base)
    assert "no version tag is reachable" in place.refused(write(NEW))


def test_a_missing_dockerfile_is_told_before_a_session(tmp_path: Path, builder: Builder) -> None:
    files = {name: text for name, text in CAPABILITY_FILES.items() if name != "stub/Dockerfile"}
    with publishing(tmp_path, builder, files=files) as place:
        assert "these Dockerfiles are not in the repository" in (because := place.refused(write(NEW)))
        assert "stub: stub/Dockerfile; commit one, or correct `dockerfile` in the sidecar" in because
        assert not place.session_ran


def test_a_remediation_publishes_what_the_whole_task_touched(place: Place, builder: Builder) -> None:
    first = place.run(write(NEW), write("stub/x"))["images"]
    again = place.run(write(NEW, "v = 2\n"), remediation_context="again")["images"]
    assert len(again) == 2
    assert again[0] != first[0]
    assert again[1] == first[1]
    assert [record["was_there"] for record in place.recorded("image-published") if record["image"] == first[1]] == [
        False,
        True,
    ]


def test_asking_a_remediation_again_names_the_same_images(place: Place, builder: Builder) -> None:
    place.run(write(NEW), write("stub/x"))
    again = place.run(write(NEW, "v = 2\n"), remediation_context="again")
    assert place.run(write("backend/never"), remediation_context="again") == again


def test_the_nearest_tag_of_a_remediation_still_versions_its_image(place: Place) -> None:
    place.run(write(NEW))
    [image] = place.run(write(NEW, "v = 2\n"), remediation_context="again")["images"]
    assert image.endswith(f"backend:0.1.0-task-1-{place.repo.git('rev-parse', '--short=7', BRANCH)}")
