"""`no_secrets`: a secret is reported by its place and kind, and never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.rules.files import no_secrets as module
from handrail.rules.files.no_secrets import no_secrets
from handrail.rules.function_rule import FINDINGS_MAX
from rules.on_project import committed, found, git, reported, setting_of, write

# Put together here, so that no tool takes this file for one that holds secrets.
GITHUB = "ghp_" + "a1B2" * 9
AWS_ID = "AKIA" + "ABCDEFGH12345678"
AWS_KEY = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
PRIVATE = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIabc123\n" * 3 + "-----END RSA PRIVATE KEY-----"
URL = "postgres://me:" + "hunter2hunter2" + "@db/x"


async def test_a_secret_in_a_changed_file_is_reported_by_its_place(tmp_path: Path) -> None:
    project = committed(tmp_path, {"old.py": f"x = '{GITHUB}'\n", "a.py": "a = 1\n"})
    assert await reported(no_secrets, project) == []
    write(project, {"a.py": f"a = 1\n  token = '{GITHUB}'  # mine\n", "new.py": "fine\n"})
    [finding] = await found(no_secrets, project)
    assert finding.where == "a.py:2:12"
    assert finding.message == "this is a secret: github token"
    assert finding.excerpt == "token = '[github token]'  # mine"
    assert GITHUB not in repr(finding)
    git(project, "commit", "-qam", "oh no")
    assert await reported(no_secrets, project) == []
    assert [where for where, _ in await reported(no_secrets, project, against="HEAD~1")] == ["a.py:2:12"]
    assert await reported(no_secrets, project, against="HEAD~1", paths=["*.md"]) == []


async def test_named_files_are_looked_at_whether_they_changed_or_not(tmp_path: Path) -> None:
    project = committed(tmp_path, {"old.py": f"x = '{GITHUB}'\n", "b/c.md": URL, ".gitignore": ".env\n"})
    write(project, {".env": GITHUB})
    assert [where for where, _ in await reported(no_secrets, project, paths=["**"])] == ["b/c.md:1:15", "old.py:1:6"]
    assert [where for where, _ in await reported(no_secrets, project, paths=["b"])] == ["b/c.md:1:15"]


async def test_without_a_repository_named_files_are_looked_at(tmp_path: Path) -> None:
    write(tmp_path, {"a": GITHUB, "node_modules/b": GITHUB})
    assert [where for where, _ in await reported(no_secrets, tmp_path, paths=["."])] == ["a:1:1"]
    [finding] = await found(no_secrets, tmp_path)
    assert finding.where == "checks"
    assert "or give only `paths`" in finding.fix


async def test_every_secret_of_a_line_is_left_out_of_every_excerpt(tmp_path: Path) -> None:
    write(tmp_path, {"a": f"one {AWS_ID} two {AWS_KEY} three {GITHUB}\n{PRIVATE}\nend\n"})
    findings = await found(no_secrets, tmp_path, paths=["a"])
    kinds = [one.message.removeprefix("this is a secret: ") for one in findings]
    assert kinds == ["aws access key", "aws secret key", "github token", "private key"]
    assert findings[0].excerpt == "one [aws access key] two [aws secret key] three [github token]"
    assert findings[3].where == "a:2:1"
    assert findings[3].excerpt == "[private key]"
    for secret in (AWS_ID, AWS_KEY, GITHUB, "MIIabc123"):
        assert secret not in repr(findings)


async def test_what_two_forms_know_is_one_secret_and_hidden_whole(tmp_path: Path) -> None:
    write(tmp_path, {"a": f"git clone https://me:{GITHUB}-and-more@host/x"})
    [finding] = await found(no_secrets, tmp_path, paths=["a"])
    assert finding.excerpt == "git clone https://me:[github token]@host/x"


async def test_files_that_are_no_text_are_left_out_and_wide_texts_are_read(tmp_path: Path) -> None:
    write(tmp_path, {"bin": b"\0\1" + GITHUB.encode(), "wide": f"x {GITHUB}".encode("utf-16"), "odd": b"\xff" + b"x"})
    (tmp_path / "link").symlink_to("wide")
    (tmp_path / "gone").symlink_to("none")
    assert [where for where, _ in await reported(no_secrets, tmp_path, paths=["."])] == ["wide:1:3"]


async def test_what_is_too_large_is_reported_and_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a": "x" * 50, "b": "x" * 50, "c": b"\0" * 500})
    monkeypatch.setattr(module, "FILE_BYTES_MAX", 49)
    [(where, message), _] = await reported(no_secrets, tmp_path, paths=["."])
    assert (where, message) == ("a", "a is larger than 49 bytes, so it was not searched for secrets")
    monkeypatch.setattr(module, "FILE_BYTES_MAX", 50)
    monkeypatch.setattr(module, "BYTES_MAX", 60)
    [(where, message)] = await reported(no_secrets, tmp_path, paths=["."])
    assert (where, message) == ("checks", "the files have more than 60 bytes; those from b on were not searched")
    monkeypatch.setattr("handrail.rules.files.tree.FILES_MAX", 2)
    [(where, message)] = await reported(no_secrets, tmp_path, paths=["."])
    assert (where, message) == ("checks", "the project has more than 100,000 files")


async def test_a_file_full_of_secrets_takes_no_time(tmp_path: Path) -> None:
    write(tmp_path, {"a": f"{GITHUB}\n" * 50_000, "b": GITHUB})
    assert len(await found(no_secrets, tmp_path, paths=["."])) == FINDINGS_MAX + 1


async def test_what_it_depends_on_is_the_tree_and_the_commit(tmp_path: Path) -> None:
    project = committed(tmp_path, {"a": "x"})
    setting = setting_of(project)
    first, named = await no_secrets.inputs({}, setting), await no_secrets.inputs({"paths": ["."]}, setting)
    assert first == await no_secrets.inputs({}, setting)
    git(project, "commit", "-q", "--allow-empty", "-m", "second")
    assert await no_secrets.inputs({}, setting) != first
    assert await no_secrets.inputs({"paths": ["."]}, setting) == named
    write(project, {"a": "y"})
    assert await no_secrets.inputs({"paths": ["."]}, setting) != named
    assert await no_secrets.inputs({"against": "none"}, setting) == ""


@pytest.mark.parametrize(
    "address",
    [
        "user:password@localhost",
        "postgres:postgres@localhost:5432/test",
        "root:root@127.0.0.1:3306",
        "me:hunter2@[::1]:5432",
        "app:app@db:5432",
        "user:pass@host/name",
        "user:changeme1@postgres",
        "user:hunter2@example.com",
        "user:xxxx@server",
        "user:letmein@db.test",
    ],
)
async def test_a_placeholder_in_an_address_is_no_secret(tmp_path: Path, address: str) -> None:
    write(tmp_path, {"a.py": f"URL = 'postgres://{address}'\n"})
    assert await reported(no_secrets, tmp_path, paths=["."]) == []


@pytest.mark.parametrize(
    "address",
    [
        "user:password@db.acme.com",
        "user:hunter2@db",
        "user:k3Jd92mXq81Z@localhost",
        "user:k3Jd92mXq81Z@example.com",
        "user:hunter2@localhost.acme.com",
        "user:hunter2@10.0.0.1",
        "user:hunter2@notexample.com",
        "user:password12345@db",
    ],
)
async def test_a_password_of_a_real_service_or_a_random_one_is_a_secret(tmp_path: Path, address: str) -> None:
    write(tmp_path, {"a.py": f"URL = 'postgres://{address}'\n"})
    assert await reported(no_secrets, tmp_path, paths=["."]) == [("a.py:1:24", "this is a secret: password")]
