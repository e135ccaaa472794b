"""A file at a git revision, in repositories of every state."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tcw.workbench.cli.diff import command as diff
from tcw.workbench.cli.diff import operands_of
from tcw.workbench.request.revisions import NoRevision, at_revision, changed_files, find, text_at

Git = Callable[..., str]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    return folder


@pytest.fixture
def git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")

    def run(*arguments: str, folder: Path = repo) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
        command = ["git", "-C", str(folder), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    run("init", "-q", "-b", "main")
    return run


def committed(repo: Path, git: Git, **files: str) -> str:
    for name, text in files.items():
        (repo / f"{name}.py").write_text(text)
    git("add", "-A")
    git("commit", "-qm", "one")
    return git("rev-parse", "HEAD")


def text(file: Path, revision: str) -> str:
    with at_revision(file, revision) as found:
        return found.read_text()


def test_a_dirty_tree_stays_as_it_is(repo: Path, git: Git) -> None:
    committed(repo, git, model="one", helper="1")
    model = repo / "model.py"
    model.write_text("two")
    git("add", "model.py")
    model.write_text("three")
    (repo / "untracked.py").write_text("")
    before = git("status", "--porcelain"), git("diff", "--cached")
    with at_revision(model, "HEAD") as found:
        assert found.read_text() == "one"
        assert (found.parent / "helper.py").read_text() == "1"
        assert not (found.parent / "untracked.py").exists()
    assert not found.exists()
    assert (git("status", "--porcelain"), git("diff", "--cached")) == before
    assert model.read_text() == "three"


def test_a_renamed_file_is_found_by_its_name_then(repo: Path, git: Git) -> None:
    committed(repo, git, old="a\nb\nc\nd\n")
    git("mv", "old.py", "new.py")
    (repo / "new.py").write_text("a\nb\nc\nd\ne\n")
    assert text(repo / "new.py", "HEAD") == "a\nb\nc\nd\n"
    assert find(repo / "new.py", "HEAD").inside == Path("old.py")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--base", "HEAD", "new.py"], ["old.py at HEAD", "new.py"]),
        (["HEAD..HEAD", "new.py"], ["old.py at HEAD", "old.py at HEAD"]),
    ],
)
def test_a_renamed_file_is_called_by_its_name_then(
    arguments: list[str],
    names: list[str],
    repo: Path,
    git: Git,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    committed(repo, git, old="a\nb\nc\nd\n")
    git("mv", "old.py", "new.py")
    monkeypatch.chdir(repo)
    ctx = diff.make_context("diff", arguments)
    assert [operand.name for operand in operands_of(ctx, ctx.params["operands"])] == names


def test_what_is_deleted_now_was_there_then(repo: Path, git: Git) -> None:
    committed(repo, git, model="one")
    (repo / "model.py").unlink()
    assert text(repo / "model.py", "HEAD") == "one"


def test_links_and_files_left_out_of_archives_are_there(repo: Path, git: Git) -> None:
    (repo / ".gitattributes").write_text("helper.py export-ignore\nmodel.py export-subst\n")
    (repo / "data").symlink_to("/nonexistent/data")
    (repo / "above").symlink_to("../..")
    committed(repo, git, model="# $Format:%H$", helper="1")
    with at_revision(repo / "model.py", "HEAD") as found:
        assert found.read_text() == "# $Format:%H$"
        assert (found.parent / "helper.py").exists()
        assert os.readlink(found.parent / "data") == "/nonexistent/data"


def test_no_hook_runs(repo: Path, git: Git) -> None:
    committed(repo, git, model="one")
    hook = repo / ".git/hooks/post-checkout"
    hook.write_text("#!/bin/sh\ntouch it-ran\n")
    hook.chmod(0o755)
    assert text(repo / "model.py", "HEAD") == "one"
    assert not list(repo.glob("**/it-ran"))


def test_the_merge_base(repo: Path, git: Git) -> None:
    committed(repo, git, model="base")
    git("checkout", "-qb", "topic")
    committed(repo, git, model="topic")
    git("checkout", "-q", "main")
    committed(repo, git, model="main")
    git("checkout", "-q", "topic")
    model = repo / "model.py"
    assert [text(model, one) for one in ("main", "main...HEAD", "main...")] == [
        "main", "base", "base",
    ]  # fmt: skip
    git("checkout", "-q", "--orphan", "alone")
    git("commit", "-qm", "alone")
    with pytest.raises(NoRevision, match="main and HEAD share no commit"):
        find(model, "main...HEAD")
    with pytest.raises(NoRevision, match="no git revision 'nowhere'"):
        find(model, "nowhere...HEAD")


def test_a_detached_head_a_linked_worktree_and_a_subfolder(
    repo: Path, git: Git, tmp_path: Path
) -> None:
    (repo / "deep").mkdir()
    (repo / "deep/m.py").write_text("deep")
    first = committed(repo, git, model="one")
    committed(repo, git, model="two")
    git("checkout", "-q", "--detach", first)
    assert text(repo / "model.py", "main") == "two"
    assert text(repo / "deep/m.py", "main") == "deep"
    linked = tmp_path / "linked"
    git("worktree", "add", "-q", str(linked), "main")
    assert text(linked / "model.py", first) == "one"


def test_in_a_hook_of_another_repository(
    repo: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git tells its hooks where they are, which is about that repository alone."""
    committed(repo, git, model="one")
    (repo / "deep").mkdir()
    (repo / "deep/m.py").write_text("")
    git("add", "-A")
    git("commit", "-qm", "deep")
    monkeypatch.setenv("GIT_DIR", str(repo / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    monkeypatch.setenv("GIT_PREFIX", "deep/")
    assert text(repo / "deep/m.py", "HEAD") == ""
    assert changed_files(repo / "deep", "HEAD") == set()


def test_a_submodule_is_an_empty_folder(repo: Path, git: Git, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git("init", "-q", folder=inner)
    git("commit", "-q", "--allow-empty", "-m", "x", folder=inner)
    git("submodule", "--quiet", "add", str(inner), "sub")
    committed(repo, git, model="one")
    with at_revision(repo / "model.py", "HEAD") as found:
        assert not list((found.parent / "sub").glob("*"))


def test_why_there_is_nothing(repo: Path, git: Git, tmp_path: Path) -> None:
    (repo / "model.py").write_text("one")
    with pytest.raises(NoRevision, match="has no commits yet"):
        find(repo / "model.py", "HEAD")
    committed(repo, git, model="one")
    with pytest.raises(NoRevision, match=r"missing\.py does not exist at HEAD"):
        find(repo / "missing.py", "HEAD")
    with pytest.raises(NoRevision, match="no git revision '--all'"):
        find(repo / "model.py", "--all")
    with pytest.raises(NoRevision, match=f"{tmp_path} is not in a git repository"):
        find(tmp_path / "model.py", "HEAD")


def test_what_changed(repo: Path, git: Git) -> None:
    (repo / "a b\n.py").write_text("")
    committed(repo, git, gone="x", renamed="y" * 99, same="z", edited="")
    (repo / "gone.py").unlink()
    git("mv", "renamed.py", "moved.py")
    (repo / "edited.py").write_text("1")
    (repo / "a b\n.py").write_text("1")
    (repo / "new.py").write_text("")
    names = {file.name for file in changed_files(repo, "HEAD")}
    assert names == {"gone.py", "renamed.py", "moved.py", "edited.py", "a b\n.py", "new.py"}
    assert text_at(repo / "gone.py", "HEAD") == b"x"
    assert text_at(repo / "new.py", "HEAD") == b""
