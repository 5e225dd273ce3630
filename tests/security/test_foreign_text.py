"""Untrusted names and results are displayed as text, on terminals, in shells, spreadsheets and pages."""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from strakes.base.errors import BadInputError, MeasurementError
from strakes.base.foreign_text import (
    command_line,
    escaped,
    for_csv,
    for_shell,
    for_terminal,
    shell_words,
    shown_command,
    source_without_secrets,
    without_secrets,
)
from strakes.cli.main import cli, run, write_log
from strakes.cli.options import Output
from strakes.control.drill_undo import RunCommand
from strakes.control.fault import Ask, CommandFault
from strakes.control.knob_journal import KnobJournal
from strakes.control.knob_place import KnobPlace
from strakes.interop.export_rows import to_csv
from strakes.interop.formats import read_file
from strakes.interop.importing import keep
from strakes.report.html import PLOTLY, render_html, resource
from strakes.runs.store import Store
from strakes.runs.store_files import replace_text
from strakes.runs.watchdog import advice
from strakes.targets.command import Servers
from strakes.targets.mountinfo import parse_mountinfo
from strakes.tuning.portraits import build_portrait

EVIL = "\x1b]0;owned\x07\x1b[2J\nstrakes: error: forged\r\u202e"


@given(st.text())
def test_any_text_becomes_one_line_without_control_characters(text: str) -> None:
    shown = for_terminal(text)
    assert shown.isprintable() and for_terminal(shown) == shown


@given(st.text(st.characters(exclude_categories=["C", "Z"]) | st.sampled_from(" \t'\"\\;|&$()<>`*?~#!\n")))
def test_a_quoted_command_line_has_the_same_words_in_a_shell(text: str) -> None:
    line = for_shell(text)
    assert line == shlex.join(shlex.split(line)) or not text.isprintable()
    with suppress(ValueError):
        assert shlex.split(text) == shell_words(text)


@pytest.mark.parametrize("words", [("clean", EVIL), ("target", EVIL), ("clean", f"no {EVIL}")])
def test_a_directory_whose_name_steers_a_terminal_is_shown_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, str]
) -> None:
    (tmp_path / EVIL / f"strakes-{EVIL}").mkdir(parents=True)
    assert run([words[0], str(tmp_path / words[1])]) in (0, 2)
    said = "".join(capsys.readouterr())
    assert "forged" in said and all(line.isprintable() for line in said.splitlines())
    assert not any(line.startswith("strakes: error: forged") for line in said.splitlines())


def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("STRAKES_STORE", str(tmp_path / "store"))
    text = next((Path(__file__).parents[1] / "interop").glob("samples/ior-4.1.txt")).read_text()
    file = tmp_path / "result.txt"
    file.write_text(re.sub("(?m)^(Command line *: ).*", r"\1ior -a POSIX; rm -rf ~ $(id) `id` -o =cmd()", text))
    store = Store()
    list(keep(file, read_file(file), store, "=cmd()" + EVIL))
    return store


def test_an_imported_result_can_be_copied_to_a_shell_and_opened_in_a_spreadsheet_or_as_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = imported(tmp_path, monkeypatch).open("latest")
    (repeat, *_) = build_portrait(stored).reproduce
    assert "rm -rf" in repeat and repeat == shlex.join(shlex.split(repeat))
    assert "\r" not in to_csv(stored)
    for row in csv.reader(io.StringIO(to_csv(stored))):
        assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in row)
    said = CliRunner().invoke(cli, ["runs"]).output
    assert all(line.isprintable() for line in said.splitlines()) and os.fsencode(said)
    page = render_html(build_portrait(stored)).replace(resource("vendor", PLOTLY), "")
    assert not re.search("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert r"\x1b" in page and r"\u202e" in page


def test_a_name_in_a_command_to_paste_is_one_word(tmp_path: Path) -> None:
    file = tmp_path / "result.txt"
    file.write_text("Writing output to out/x;id\n")
    with pytest.raises(BadInputError) as refused:
        read_file(file)
    assert refused.value.remedy.endswith("strakes import 'out/x;id'") and "strakes clean 'a;id' " in advice("a;id")


def test_the_journal_of_a_killed_command_is_listed_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAKES_STORE", str(tmp_path / "store"))
    root = tmp_path / "store"
    journal = KnobJournal.begin(root, f"/x/{EVIL}", ("strakes", "tune", EVIL))
    journal.will(KnobPlace(EVIL, EVIL, file="/nowhere"), EVIL, EVIL)
    journal.note("held")
    journal.release()
    for words in (["knobs", "journal"], ["knobs", "restore"]):
        output = CliRunner().invoke(cli, words).output
        assert output and all(line.isprintable() for line in output.splitlines()), words
        assert not any(line.startswith("strakes: error: forged") for line in output.splitlines()), words


def test_a_cell_whose_first_visible_character_begins_a_formula_is_text() -> None:
    for start in ("=", "-", "\t=", "\r=", "\uff1d", " =", "\u200b=", "\ufeff@", "\x00+", "\u00a0-", "\u202e\uff0b"):
        assert str(for_csv(f"{start}1")).startswith("'"), start


def test_invisible_characters_stay_out_of_documents_and_names_need_not_be_utf8(tmp_path: Path) -> None:
    assert str(for_csv(EVIL)).replace("\n", "").replace("\r", "").isprintable()
    name = os.fsdecode(b"/scratch/\xff\xfe") + EVIL
    assert rb"\udcff" in str(for_csv(name)).encode() and escaped(name).encode().startswith(rb"/scratch/\udcff\udcfe")
    replace_text(tmp_path / "report.html", name)
    Output(tmp_path / "asked.html").write(name)
    for page in ("report.html", "asked.html"):
        assert rb"\udcff" in (tmp_path / page).read_bytes()


@pytest.mark.parametrize(
    "address",
    [
        *("https://me:hidden@host", "HTTPS://me:hidden@host/x", "redis:/:hidden@host:6379/1"),
        *("https://me:hid/den@host/x", "https://me:hid@hidden@host/x", "https://me:it's-hidden@host"),
        *("https://host/hidden", "https://host?token=hidden", "https://host#hidden", "s3://me:hidden@lab/w?sig=hidden"),
    ],
)
def test_the_log_of_a_bug_has_no_secret_of_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log = Path(write_log(ValueError(f"no {address}"), ["watch", f"--command=send {address}"]))
    assert log.is_relative_to(tmp_path) and not re.search("hid|den", log.read_text())


COMMANDS = [
    "curl 'https://me:hidden@host/hidden?token=hidden' -H Authorization:hidden",
    "sshpass -p hidden ssh -p 22 host; sshpass -phidden ssh host; mysql -p 'hid den'",
    "setenv A_TOKEN hidden; set -x A_TOKEN hidden; tool --password hidden --token=hidden --secret 'hid den'",
    "env API_TOKEN=hidden AWS_SECRET_ACCESS_KEY='hid den' 'SSHPASS=hid den' PW=hidden DB_PW='hid den' ssh host",
    "mpiexec -genv A_TOKEN hidden --auth-token hidden --passphrase 'hid den' --userpass hidden:hidden -password hidden --authkey hidden",
    "elbencho --s3key hidden --s3secret hidden --s3sessiontoken 'hid den' //me:hidden@srv/share me:hidden@srv:/share",
    "env: \u2018//me:hidden@srv/share\u2019: No such file, \u201cme:hidden@srv\u201d `me:hidden@srv` /m//me:hid/den@srv",
    "curl --access-key hidden -H 'x-amz-security-token: hidden' 'CREDENTIAL=hidden/x,Signature=hidden' Signature=hidden",
    "tool --secret-key: hidden --sasl.password hidden --pw hidden -p=hidden --user=me:hidden sig=hidden Pwd=hidden",
    """tool '{"password": "hidden"}' --header 'X-Auth-Token: hidden'""",
    "ior --secret-key hidden --secret_key hidden --secretkey 'hid den' --S3-libs3.secret-key hidden --S3.secret-key hidden",
    "ior -S3-libs3.secret-key hidden --private-key hidden --cred hidden --creds 'hid den' '--secret-key' 'hid den'",
    "ior --key hidden --hmac-key hidden --jwt=hidden --bearer=hidden --secret-key = hidden --encryption-key hidden a",
    "mount -o ro,username=me%hidden //srv/share /m && smbclient -U 'D\\me%hidden' //srv/share",
    "mysql -uroot -phidden d; pcs host auth -p hidden; ipmitool -Phidden -k hidden --bmcpass hidden; mount -o 'user=u,password=hid den,ro'",
    "curl 'https://me:hid den@host' 'Authorization: Digest a, response=hidden' -u 'me:hid den'; mount 'me:hid den@srv:/a'",
    """tool 'Cookie: a=hidden; b=hidden' Bearer hidden-hidden-hidden shared-secret 'hid den' password = 'hid den'""",
    "env A_JWT=hidden A_PAT=hidden A_AUTH='hid den' --cred=hidden curl -u me:hidden -H 'Authorization: Bearer hidden'",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_user_is_shown_and_stored_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_names, **_options: "/bin/true")
    fault = CommandFault(Ask(directory=tmp_path, fault_command=command, restore_command=command))
    assert isinstance(fault.undo, RunCommand) and fault.undo.argv == tuple(shlex.split(command))
    words = ["strakes", "run", "plan", "--servers", f"{command} {{host}}", f"--launcher-command={command} {{engine}}"]
    monkeypatch.setattr("sys.argv", [*words, *shlex.split(command)])
    store = Store(tmp_path)
    writer = store.create("run", "plan", tmp_path, options={"command": shlex.join(command_line())}, environment={})
    kept = (tmp_path / "runs" / writer.id / "run.json").read_text()
    writer.close()
    unreachable = MeasurementError(command, where=shlex.join(shlex.split(command)), why=command, remedy=command)
    for shown in (fault.text, fault.undo.text, kept, *unreachable.lines(), str(unreachable), without_secrets(command)):
        assert "hid" not in shown and "den" not in shown and "..." in shown
    assert without_secrets(without_secrets(command)) == without_secrets(command)


@given(st.text(st.sampled_from("ab'\"\\ ;$,)=-"), max_size=6), st.integers(0, 3))
def test_a_secret_of_any_characters_is_hidden_also_in_a_command_within_a_command(text: str, depth: int) -> None:
    secret = f"Q{text}Q"
    for words in (["--token", secret], [f"--token={secret}"], [f"API_KEY={secret}"], ["-p", secret], [f"-p{secret}"]):
        argv = ["x", *words, "end"]
        for _ in range(depth):
            argv = ["sh", "-c", shlex.join(argv)]
        for shown in (shown_command(argv), for_shell(shlex.join(argv)), without_secrets(shlex.join(argv))):
            assert "Q" not in without_secrets(shown) and "end" in without_secrets(shown)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["strakes", *argv])
            assert len(command_line()) == 1 + len(argv) and "end" in command_line()[-1]
            assert "Q" not in " ".join(command_line())


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "KEY", "a.", "'KEY=\"KEY=", "-p ", "-u ", "https://"),
        *("--token '", "a@", "KEY='\"", " ", "a'", "\\", "-U a", "a%", "key ", "--pw.", "'token': ", "'--cred' '"),
    ],
)
def test_secrets_are_looked_for_in_texts_of_any_length(piece: str) -> None:
    assert without_secrets("-env " + piece * 200_000) and source_without_secrets(piece * 200_000)


def test_texts_of_tools_and_files_have_no_secret() -> None:
    text = 'name="passwd" value="hidden" {"privateKey": "hid den", "pass": "hid den"} {\\"passphrase\\": \\"hidden\\"}'
    assert not re.search("hid|den", without_secrets(text)) and without_secrets(text).count("...") == 4


def test_a_command_without_secrets_is_shown_as_it_is() -> None:
    for command in (
        *("ssh -p 2222 {host} sudo", "mkdir -p /scratch/a", "jsrun -n {ranks} -r4 {engine}", "a -u me b"),
        *(
            "cibadmin -p -quiet",
            "see https://host:80 or ask me@host",
            '<nvpair name="password_script" value="/etc/pw"/>',
        ),
    ):
        assert without_secrets(command) == command
    assert Servers("ssh -p 2222 {host}").argv("a", ["true"]) == ("ssh", "-p", "2222", "a", "true")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        *((f"{a}me:hidden@srv{b}", f"{a}...@srv{b}") for a, b in (("//", "/a"), ("", ":/a"), ("s3fs#", ""))),
        *((f"{srv}?{word}=hidden", f"{srv}?...") for srv, word in (("srv:/a", "token"), ("//srv/a", "password"))),
        ("https://me:hidden@dav.example.org/hidden?token=hidden", "https://dav.example.org/..."),
        *((f"{a}hidden", f"{a}...") for a in ("rclone:remote,pass=", "jdbc:x;password=", '{"password":')),
        *((':sftp,user=u,pass="hid:den":x', ":sftp,user=u,pass=..."), ("u%hidden@h:/x", "u%...@h:/x")),
        (":s3,access_key_id=hid,secret_access_key=hidden:b", ":s3,access_key_id=...,secret_access_key=..."),
        (":sftp,key_pem=hidden,key=hidden,key_file=/k:x", ":sftp,key_pem=...,key=...,key_file=/k:x"),
        *((same, same) for same in ("srv:/a@b", "1.2.3.4@tcp:5.6.7.8@tcp:/fs", "[fe80::1]:/a@b", "h:6789:/a@b")),
        *((same, same) for same in ("/a?b", "me@1-2.keyfs=/", "tank/a%b", "/dev/mapper/token-a", "srv:/pass=1")),
    ],
)
def test_the_source_and_the_options_of_a_mount_have_no_secret(source: str, shown: str) -> None:
    (mount,) = parse_mountinfo(f"36 35 0:9 / /a rw - x {source} rw,password=hidden,user=me%hidden,user_id=0\n")
    assert mount.source == shown and "hid" not in repr(mount) and "user_id=0" in mount.all_options
