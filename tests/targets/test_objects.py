"""Removal of the objects of a killed plan from a bucket, on a small S3 server."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from conftest import StrakesRunner, one_in
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.targets.marker import MARKER_NAME
from strakes.targets.removal import NOTE, Left, remove_workspace

PAGE = 3
MOST_UPLOADS = 2
EMPTY = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"


class Store(ThreadingHTTPServer):
    """S3 server with one bucket of keys and unfinished uploads, listed in small pages; attributes inject faults."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.keys: set[str] = set()
        self.uploads: dict[str, str] = {}
        self.refuses = self.endless = self.keeps = self.page = self.tag = self.range = self.drips = self.upload = ""
        self.pages, self.version = 0, ""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Store

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, text: str = "") -> None:
        if self.command == self.server.drips:
            self.send_drops()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        tags = {"ETag": self.server.tag, "x-amz-version-id": self.server.version, "Content-Range": self.server.range}
        for name, value in tags.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    def handle_any(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        key = unquote(url.path).removeprefix("/lab").removeprefix("/")
        assert "secret" not in str(self.headers)
        if self.server.refuses and self.server.refuses.startswith(self.command):
            self.server.keys |= {key} if "keep" in self.server.refuses else set()
            return self.answer(403, "<Error><Code>AccessDenied</Code><Message>not you</Message></Error>")
        if self.command == "PUT":
            self.rfile.read(int(self.headers["Content-Length"]))
            self.server.keys.add(key)
            return self.answer(200)
        if self.command == "POST":
            self.rfile.read(int(self.headers["Content-Length"]))
            return self.answer(200, self.server.upload) if self.server.upload else self.answer(501)
        if self.command == "HEAD":
            return self.answer(200 if key in self.server.keys else 404)
        if self.command == "DELETE":
            if "uploadId" in query:
                self.server.uploads.pop(query["uploadId"][0])
            elif key != self.server.keeps:
                self.server.keys.discard(key)
            return self.answer(204)
        ends = self.server.endless not in ("bytes", "headers") and self.server.endless not in self.headers
        if "range" in self.headers or not ends:
            return self.answer(206, "x") if ends else self.send_without_end()
        prefix = query["prefix"][0]
        if "uploads" in query:
            items = [
                f"<Upload><Key>{key}</Key><UploadId>{number}</UploadId></Upload>"
                for number, key in self.server.uploads.items()
                if key.startswith(prefix)
            ]
            truncated = str(len(items) > MOST_UPLOADS).lower()
            page = f"{''.join(items[:MOST_UPLOADS])}<IsTruncated>{truncated}</IsTruncated>"
            return self.answer(200, f"<ListMultipartUploadsResult>{page}</ListMultipartUploadsResult>")
        after = query.get("continuation-token", [""])[0]
        found = sorted(key for key in self.server.keys if key.startswith(prefix) and key > after)
        page = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in found[:PAGE])
        if "mark" in self.server.endless:
            self.server.pages += 1
            mark = {"other marks": self.server.pages, "no mark": ""}.get(self.server.endless, 1)
            page = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{mark}</NextContinuationToken>"
        elif len(found) > PAGE:
            mark = escape(found[PAGE - 1])
            page += f"<IsTruncated>true</IsTruncated><NextContinuationToken>{mark}</NextContinuationToken>"
        else:
            page += "<IsTruncated>false</IsTruncated>"
        status, _, page = (self.server.page or f"200 <ListBucketResult>{page}</ListBucketResult>").partition(" ")
        return self.answer(int(status), page)

    def send_drops(self) -> None:
        with suppress(OSError):
            for byte in itertools.chain(b"HTTP/1.1 200 ", itertools.repeat(0x20)):
                self.wfile.write(bytes((byte,)))
                time.sleep(1)

    def send_without_end(self) -> None:
        self.send_response(200)
        if self.server.endless == "headers":
            with suppress(OSError):
                while True:
                    self.send_header(f"x-{self.server.pages}", "x" * 8000)
                    self.flush_headers()
                    self.server.pages += 8000
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        piece = b"x" * 65536
        with suppress(OSError):
            while True:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.server.pages += len(piece)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 - names of the base class


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with Store() as store:
        threading.Thread(target=store.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("STRAKES_S3_BUCKET", "lab")
        yield store
        store.shutdown()


@pytest.fixture
def workspace(tmp_path: Path, store: Store) -> Path:
    """Make a workspace with a note of its prefix, and keys and uploads below the prefix and elsewhere; return it."""
    directory = tmp_path / "w"
    directory.mkdir()
    (directory / MARKER_NAME).write_text("{}")
    (directory / f"{NOTE}p").write_text(json.dumps({"endpoint": store.address, "bucket": "lab", "prefix": "w/p/"}))
    store.keys = {"w/p/.strakes-marker", "w/q/theirs", "w/p", "other"} | {f"w/p/a&b {i}" for i in range(8)}
    store.uploads = {str(number): f"w/p/half {number}" for number in range(7)} | {"x": "w/q/theirs"}
    return directory


def remove(directory: Path) -> tuple[Left, ...]:
    parent = os.open(directory.parent, os.O_RDONLY)
    opened = os.open(directory, os.O_RDONLY)
    try:
        return remove_workspace(parent, directory.name, opened, str(directory))
    finally:
        os.close(opened)
        os.close(parent)


def test_all_objects_and_uploads_below_the_prefix_are_removed_and_nothing_else(store: Store, workspace: Path) -> None:
    assert remove(workspace) == ()
    assert store.keys == {"w/q/theirs", "w/p", "other"} and store.uploads == {"x": "w/q/theirs"}
    assert not workspace.exists()


def test_without_the_marker_nothing_is_removed_and_objects_are_named(store: Store, workspace: Path) -> None:
    store.keys.discard("w/p/.strakes-marker")
    before = set(store.keys)
    [left] = remove(workspace)
    assert "objects are listed, but not the one that marks them" in left.why
    assert store.keys == before and workspace.exists()
    store.refuses = "HEAD"
    assert "the key may not read them" in remove(workspace)[0].why
    store.keys = {"w/q/theirs"}
    assert remove(workspace) == ()


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "STRAKES_S3_BUCKET"])
def test_without_the_keys_the_note_stays_and_the_message_names_them(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name)
    [left] = remove(workspace)
    assert left.path == "s3://lab/w/p/" and re.search(f"{name} is not set.*strakes clean", left.why)
    assert (workspace / f"{NOTE}p").exists() and (workspace / MARKER_NAME).exists()
    assert len(store.keys) == 12


def test_the_message_of_a_store_that_refuses_is_reported_and_the_note_stays(store: Store, workspace: Path) -> None:
    store.refuses = "DELETE"
    [left] = remove(workspace)
    assert (
        "status 403, AccessDenied: not you" in left.why.replace("\n", "")
        and "aws s3 rm --recursive s3://lab/w/p/" in left.why
    )
    assert (workspace / f"{NOTE}p").exists()
    store.refuses = ""
    assert remove(workspace) == () and not workspace.exists()


def test_another_store_and_a_foreign_prefix_are_left_alone(store: Store, workspace: Path) -> None:
    note = workspace / f"{NOTE}p"
    for change in ({"endpoint": "http://127.0.0.1:1"}, {"prefix": "w/"}, {"prefix": ""}, {"prefix": "x/p/"}):
        note.write_text(json.dumps({"endpoint": store.address, "bucket": "lab", "prefix": "w/p/"} | change))
        assert len(remove(workspace)) == 1
    for text in ("nonsense", "[" * 60000):
        note.write_text(text)
        assert [left.why for left in remove(workspace)] == ["the file that lists its S3 objects cannot be read"]
    assert len(store.keys) == 12


@pytest.mark.parametrize(
    ("fault", "value", "why"),
    [
        *(("endless", value, "does not end") for value in ("one mark", "other marks", "no mark")),
        *(("endless", value, "libcurl says") for value in ("bytes", "headers")),
        *(
            ("page", page, "no whole list of S3")
            for page in (
                "200 <html>Please log in</html>",
                "200 ",
                "204 ",
                f"206 {EMPTY}",
                "200 <ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>w/p/a",
                "200 <ListBucketResult></ListBucketResult>",
                "200 " + EMPTY.replace("<I", "<Contents><Key>&a;</Key></Contents><I"),
            )
        ),
        ("page", f"200 {EMPTY}", "the store lists no marker although it has one"),
        ("keeps", "w/p/a&b 1", "still listed"),
    ],
)
def test_objects_that_cannot_be_listed_to_the_end_are_not_called_removed(
    store: Store, workspace: Path, fault: str, value: str, why: str
) -> None:
    setattr(store, fault, value)
    (left,) = remove(workspace)
    assert why in left.why and store.pages <= (200 if "mark" in value else 100 << 20)
    assert (workspace / f"{NOTE}p").exists() and store.keys >= {"w/p/a&b 1", "w/p/.strakes-marker"}


def test_a_marker_that_the_server_keeps_is_not_called_removed(store: Store, workspace: Path) -> None:
    store.keeps = "w/p/.strakes-marker"
    (left,) = remove(workspace)
    assert "says that the marker is removed, and keeps it" in left.why and (workspace / f"{NOTE}p").exists()


@pytest.mark.parametrize("drips", ["HEAD", "GET"])
@pytest.mark.long
def test_an_answer_of_a_byte_a_second_ends_at_a_limit_that_the_message_names(
    store: Store, workspace: Path, drips: str
) -> None:
    store.drips = drips
    (left,) = remove(workspace)
    assert "timed out after 60" in left.why and "bytes received" in left.why and "objects removed: 0" in left.why


@pytest.mark.parametrize(
    ("name", "trusted", "newest", "why"),
    [
        ("IP:127.0.0.1", True, ssl.TLSVersion.TLSv1_3, ""),
        ("IP:127.0.0.1", False, ssl.TLSVersion.TLSv1_3, "certificate"),
        ("DNS:elsewhere", True, ssl.TLSVersion.TLSv1_3, "name"),
        ("IP:127.0.0.1", True, ssl.TLSVersion.TLSv1_1, "SSL routines"),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_only_a_trusted_certificate_of_this_name_over_tls_1_2_gets_a_signed_request(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch, name: str, trusted: bool, newest: int, why: str
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    certificate, key = workspace.parent / "pem", workspace.parent / "key"
    words = (
        f"req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -subj /CN=x -addext subjectAltName={name}"
    )
    subprocess.run(["openssl", *words.split()], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion(newest)
    context.set_ciphers("ALL:@SECLEVEL=0")
    store.socket = context.wrap_socket(store.socket, server_side=True)
    address = store.address.replace("http:", "https:")
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    if trusted:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    note = workspace / f"{NOTE}p"
    note.write_text(note.read_text().replace(store.address, address))
    assert [why in each.why for each in remove(workspace)] == [True] * bool(why)
    assert len(store.keys) == (12 if why else 3)


OBJECTS = Plan(
    ranks=1,
    phases=(
        MetadataPhase("objects", "file-create", "shared", items=4, depth=0, branch=1, backend="s3", file_bytes=100),
    ),
)


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    with LocalEngine() as engine:
        if "built without" in engine.start().absent.get("s3", {}).get("why", ""):
            pytest.skip("the engine was built without libcurl")
        yield engine


@pytest.mark.parametrize("endless", ["", "one mark", "other marks", "no mark"])
def test_the_engine_gives_up_a_list_that_does_not_end(
    store: Store, engine: LocalEngine, tmp_path: Path, endless: str
) -> None:
    (tmp_path / MARKER_NAME).write_text("{}")
    store.endless = endless
    result = engine.run(OBJECTS, tmp_path, "p", limit_s=60)
    assert store.pages <= 400  # two attempts
    if endless:
        assert result.ended == "failed" and "does not end" in f"{result.errors} {result.left}"
    else:
        assert result.ended == "ok" and result.cleaned and not store.keys


@pytest.mark.parametrize("answered", ["", "bytes 0-0/4096", "bytes 1-1/2", "without end"])
def test_a_part_of_a_range_is_not_taken_for_the_end_of_the_object(
    store: Store, engine: LocalEngine, tmp_path: Path, answered: str
) -> None:
    (tmp_path / MARKER_NAME).write_text("{}")
    write = TransferPhase("write", "write", "file-per-process", "segmented", 65536, 65536, backend="s3")
    store.range, store.endless = answered, "range" * (answered == "without end")
    plan = Plan(ranks=1, phases=(write, replace(write, name="read", operation="read")))
    result = engine.run(plan, tmp_path, "p", limit_s=60)
    assert result.ended == "failed" and result.errors[0].where["operation"] == "read"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("tag", "e" * 60_000, "libcurl says"),
        ("version", "v1", "keeps old versions of removed objects"),
        ("refuses", "PUT, but keep it", "AccessDenied: not you"),
        ("upload", f"<UploadId>{'u' * 1025}</UploadId>", "Protocol error"),
        ("upload", "x" * 100_000, "libcurl says"),
    ],
)
def test_long_etags_and_ids_are_not_kept_and_versions_are_refused(
    store: Store, engine: LocalEngine, tmp_path: Path, name: str, text: str, why: str
) -> None:
    (tmp_path / MARKER_NAME).write_text("{}")
    setattr(store, name, text)
    parts = TransferPhase("parts", "write", "file-per-process", "segmented", 5 << 20, 10 << 20, backend="s3")
    result = engine.run(Plan(ranks=1, phases=(parts,)) if name == "upload" else OBJECTS, tmp_path, "p", limit_s=60)
    assert result.ended == "failed" and why in result.errors[0].why and (name in ("tag", "upload") or not store.keys)


@pytest.mark.parametrize(
    ("name", "value"),
    one_in(
        4,
        [
            ("AWS_ENDPOINT_URL", value)
            for value in (
                "javascript:1",
                "-x",
                "http://",
                "http://127.0.0.1:99999",
                "http://a\r\nb",
                f"http://{'a' * 100_000}",
            )
        ]
        + [("STRAKES_S3_BUCKET", value) for value in ("../x", "a/b", "..", "b?x", "ab", "b" * 64, "a..b", "-abc")]
        + [("AWS_ACCESS_KEY_ID", "k\r"), ("AWS_SESSION_TOKEN", "t\n"), ("AWS_REGION", "r\r\nrange: bytes=0-1")],
    ),
)
def test_an_invalid_address_or_bucket_is_refused_before_any_request(
    store: Store, engine: LocalEngine, strakes: StrakesRunner, tmp_path: Path, name: str, value: str
) -> None:
    plan, place = tmp_path / "plan.toml", tmp_path / "place"
    plan.write_text(
        'title = "Objects"\nranks = 1\n[[phase]]\nkind = "metadata"\nname = "objects"\nbackend = "s3"\n'
        'operation = "file-create"\ndirectory = "shared"\nitems = 4\n'
    )
    place.mkdir()
    done = strakes("run", plan, place, "--budget", "2s", "-q", environment={name: value})
    assert done.returncode == 3 and name in done.stderr, done.stderr
    assert not any(place.iterdir()) and not store.keys and "visits" not in done.stderr
