"""Objects that a plan with the backend s3 left in a bucket, removed as the note in its workspace says.

Usually the engine removes them; this is for what it could not, because it was killed or the store did not answer.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import ssl
import time
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote, urlsplit

# Of a file in a workspace (engine/workspace/workspace.hpp); the plan's id follows.
NOTE = ".strakes-objects-"
_MARKER = ".strakes-marker"
_MOST_NOTE = 65536
_LIMIT_S = 10.0
_MOST_USELESS = 100  # pages one after the other in which nothing is ours
_GONE = 404
_NAMES = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "STRAKES_S3_BUCKET")


def remove_noted_objects(workspace: int) -> Iterator[tuple[str, str]]:
    """Remove what the notes in an open workspace name; yield what is left, and why."""
    for name in sorted(name for name in os.listdir(workspace) if name.startswith(NOTE)):
        where = name
        try:
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=workspace)
            with os.fdopen(opened, "rb") as file:
                note = json.loads(file.read(_MOST_NOTE))
            where = f"s3://{note['bucket']}/{note['prefix']}"
            if why := _other_store(note):
                yield where, why
                continue
            _remove_below(note["prefix"])
        except (OSError, http.client.HTTPException) as error:
            yield where, f"{error}; to remove it yourself: aws s3 rm --recursive {where}"
        except (ValueError, KeyError, TypeError):
            yield where, "the note about its objects cannot be read"
        else:
            os.unlink(name, dir_fd=workspace)


def _other_store(note: dict[str, str]) -> str:
    lacking = [name for name in _NAMES if not os.environ.get(name)]
    if lacking:
        why = f"{', '.join(lacking)} is not set"
    elif os.environ["AWS_ENDPOINT_URL"].rstrip("/") != note["endpoint"] or _bucket() != note["bucket"]:
        why = f"AWS_ENDPOINT_URL and STRAKES_S3_BUCKET name another store than {note['endpoint']}, {note['bucket']}"
    elif note["prefix"].count("/") != 2 or not note["prefix"].endswith("/"):
        why = "strakes makes no such prefix"
    else:
        return ""
    return f"{why}. Set them and run strakes clean again."


def _remove_below(prefix: str) -> None:
    """Remove everything below a prefix that has strakes's marker, the marker last. Raises OSError."""
    marker = prefix + _MARKER
    if _ask("HEAD", marker)[0] == _GONE:
        return
    for upload in re.findall(r"<Upload>(.*?)</Upload>", _ask("GET", "", {"uploads": "", "prefix": prefix})[1], re.S):
        key, number = _text(upload, "Key"), _text(upload, "UploadId")
        if key.startswith(prefix):
            _ask("DELETE", key, {"uploadId": number})
    query = {"list-type": "2", "prefix": prefix}
    marks: set[str] = set()
    useless = 0
    while True:
        useless += 1
        page = _ask("GET", "", query)[1]
        for item in re.findall(r"<Contents>(.*?)</Contents>", page, re.S):
            key = _text(item, "Key")
            if key.startswith(prefix) and key != marker:
                _ask("DELETE", key)
                useless = 0
        if _text(page, "IsTruncated") != "true":
            break
        mark = query["continuation-token"] = _text(page, "NextContinuationToken")
        if not mark or mark in marks or useless > _MOST_USELESS:
            raise OSError("the server's list of objects does not end")
        marks.add(mark)
    _ask("DELETE", marker)


def _text(document: str, element: str) -> str:
    found = re.search(rf"<{element}>(.*?)</{element}>", document, re.S)
    return unescape(found[1]) if found else ""


def _bucket() -> str:
    return os.environ["STRAKES_S3_BUCKET"]


def _ask(method: str, key: str, query: dict[str, str] | None = None) -> tuple[int, str]:
    """Send one signed request. Raises OSError with the server's own words for all that fails but what is gone."""
    url = urlsplit(os.environ["AWS_ENDPOINT_URL"].rstrip("/"))
    path = quote(f"/{_bucket()}/{key}" if key else f"/{_bucket()}", safe="/-._~")
    words = "&".join(
        f"{quote(name, safe='-._~')}={quote(value, safe='-._~')}" for name, value in sorted((query or {}).items())
    )
    headers = _signed(method, url.netloc, path, words)
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            url.netloc, timeout=_LIMIT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(url.netloc, timeout=_LIMIT_S)
    try:
        connection.request(method, f"{path}?{words}" if words else path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        connection.close()
    if answer.status // 100 != 2 and answer.status != _GONE:
        raise OSError(f"the server says: status {answer.status}, {_text(text, 'Code')}: {_text(text, 'Message')}")
    return answer.status, text


def _signed(method: str, host: str, path: str, query: str) -> dict[str, str]:
    """Return the headers of a request without a body, as AWS signature version 4 has them."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = {"host": host, "x-amz-content-sha256": hashlib.sha256(b"").hexdigest(), "x-amz-date": moment}
    if token := os.environ.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = token
    return headers | {"authorization": authorization(method, path, query, headers, moment)}


def authorization(method: str, path: str, query: str, headers: dict[str, str], moment: str) -> str:
    """Return the header Authorization of a request without a body; ``headers`` in small letters."""
    region = os.environ.get("AWS_REGION") or "us-east-1"
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{headers['x-amz-content-sha256']}"
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    key = b"AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"].encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    proof = base64.b16encode(hmac.digest(key, text.encode(), "sha256")).decode().lower()
    credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
    return f"AWS4-HMAC-SHA256 Credential={credential},SignedHeaders={names},Signature={proof}"
