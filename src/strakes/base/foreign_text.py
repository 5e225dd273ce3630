"""Escape text from outside, such as names of files and servers, and remove passwords from it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

# First characters of cells that a spreadsheet evaluates as formulas. The last four are full-width characters.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# A password may contain blanks. Text after a port number and a blank is not a password.
_ADDRESS = re.compile(
    r"(?<![a-z0-9+.-])([a-z0-9+.-]+://)(?:[^\s/?#@]*@|[^\s/?#@:]{0,200}:(?!\d{1,5}\s)[^\s/?#@][^\n/?#@]{0,200}@)?"
    r"([^\s/?#@'\"]*)(\S*)",
    re.IGNORECASE,
)
# USER:PASSWORD@ without a URL scheme, or in a path made from a URL (s3:/). The maximum lengths bound the matching time.
_LOGIN = re.compile(
    r"""(?:(//|:/)(?:$USER)?:[^\s'"]{1,200}|(?<![^\s'"=#`<\u2018-\u201f])$USER:(?:(?!:/)[^\s/'"]){1,200})@""".replace(
        "$USER", r"""[^\s/?#@:'"\[`<\u2018-\u201f]{1,200}"""
    )
)
# Words in names of secret parameters. A name that ends in "file", "path" or similar is not secret.
_SECRET_WORDS = "pass(?!ive)|pwd|secret|token|cred(?!it)|community|jwt|key|bearer|signature|2fa"
_SECRET_KEY = r"""(?:[\w.-]{0,200}(?:password|passwd|passphrase|token|secret|credential
    |(?:api|private|access|account|auth)[_-]?key)
    [\w.-]{0,200}(?<!script)(?<!file)(?<!path)(?<!dir)|pass|pwd)""".replace("\n    ", "")
_SECRET_NAME = re.compile(rf"{_SECRET_WORDS}|(?:^|[_-])(?:auth|pat|otp|pw)$", re.IGNORECASE)
_PATH_NAME = re.compile(r"(?:script|file|path|dir)$", re.IGNORECASE)
# A shell word: quoted and plain pieces. A quotation mark before a space or punctuation is not part of the word, because
# it ends a surrounding quoted text. shlex.quote() writes an apostrophe in quotes as '"'"'.
_WORD = r"""(?:\$?'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s\\])
    (?:"'"'[^']*'|\$?'(?![\s,:;)\]}])[^']*'|"(?![\s,:;)\]}])(?:[^"\\]|\\.)*"|\\.|[^\s'"\\]|['"](?=\w))*"""
_SECRET_VARIABLE = r"[\w.-]{0,200}(?:$SECRET|(?:[_-](?:pat|auth|otp)|pw)(?==))[\w.-]{0,200}=".replace(
    "$SECRET", _SECRET_WORDS
)
_SECRET_HEADER = (
    r"(?<![\w-])(?:(?:proxy-)?authorization|(?:set-)?cookie|x-(?:amz-security-token|[\w-]{0,99}auth[\w-]{0,99})):\s?"
)
_SECRET_ARGUMENT = re.compile(
    rf"({_SECRET_VARIABLE}|{_SECRET_HEADER}"
    rf"|[^\s:/@='\"]{{1,200}}:(?=\S[^/]*\s[^/]*[^\s/]@)|-p(?!\d{{1,5}}$|rint0$|[=/.\s-])(?-i:(?=.*[^a-z]))).+",
    re.IGNORECASE | re.DOTALL,
)
_LISTED = re.compile(rf"(,{_SECRET_VARIABLE})[^,]+", re.IGNORECASE)  # In an argument such as user=a,password=b c,ro.
# Blanks, or one piece of a word: in single quotes, in double quotes, escaped, or plain.
_PIECE = re.compile(r"""([ \t\r\n]+)|'([^']*)'|"((?:[^"\\]|\\.)*+)"|\\(.)|([^ \t\r\n'"\\]+)""", re.DOTALL)
# A quoted shell word, which may hold a command for another shell. In a shortened text, the last quote may be missing.
_QUOTED = re.compile(
    r"""(?<![^\s=:,;&|(\[{])(?=['"])(?:'[^']*+(?:'|\Z)|"(?:[^"\\]|\\.)*+(?:"|\Z)|\\.|[\w./=@%+-])++""", re.DOTALL
)
# The value of a secret option or variable, such as API_KEY. After -p, up to five digits are a port, and lower-case
# letters without a blank are options. Lengths are limited, so that the time is linear in the length.
_SECRET = re.compile(
    r"""(?<![\w.-])(?P<quote>["'])?
    (?P<name>$VARIABLE
    |\bsig=|$KEY:\s?)
    (?!VALUE\b|\s?\.{3}(?(quote)(?P=quote)|(?!\w)))
    (?(quote)(?:\\"|(?!(?P=quote)).)*(?:'"'"'[^']*)*|$WORD)
    |(?P<option>(?<!\S)(?:["']?[-$D]{1,2}(?:[\w.$D-]{0,200}[._$D-]|bmc|s3(?:session)?)?
    (?:(?:api|access|s3|secret|private|auth)key|pw|(?:user)?pass|password|passwd|passphrase|token|secret|cred(?:ential)?s?|jwt|auth
    |bearer|otp|2fa|(?:key|pwd)(?=["']?\s+(?:=\s+)?+(?!-|["']?[/~.]|\d{1,5}(?!\S))))["']?\s+(?:=\s+)?+
    |(?<!mkdir[ ])-p(?:\s+|=|(?-i:(?=["'][^"']{0,40}[^\Wa-z]|[a-z]{0,40}[^\Wa-z]))(?!rint0))(?!-|\d{1,5}(?!\S))
    |(?:-[uU]\s*|--(?:proxy-)?user[= ])(?=['"]?[^\s:+%]+:(?![/\s]))
    |-g?env\s+\w{0,200}(?:$SECRET)\w{0,200}\s+)|\bsshpass\s+-p\s*|\bset(?:env|\s-\w{1,9})\s+\w{0,200}(?:$SECRET)\w{0,200}\s+
    |(?<![\w-])(?:-U\s*|(?:--)?user(?:name)?[=\s]\s*)(?=['"]?[^\s%,:'"]{1,200}%[^\s,])
    |\\?["']$KEY\\?["']\s?:\s?
    |\b[\w.-]{0,99}(?:password|passwd|passphrase|secret)(?:_(?:access_)?key|\d)?\s{1,3}=\s{1,3}
    |\bkey\s=\s(?=[\w+/]{30})|\bshared-secret\s+(?=["']|\S{1,200};)|\bname=["']$KEY["']\s+value=
    |$HEADER\s*|\bbearer\s+(?=[\w.~+/-]{16})|\b(?=eyJ[\w-]{8,400}\.))
    (?:(?:Bearer|Basic|Token|Digest|Negotiate|ApiKey)\s+)?(?!\.{3}(?!\w))$WORD
    """.replace("$D", "\u2010-\u2015")
    .replace("$WORD", _WORD)
    .replace("$VARIABLE", _SECRET_VARIABLE)
    .replace("$KEY", _SECRET_KEY)
    .replace("$HEADER", _SECRET_HEADER)
    .replace("$SECRET", _SECRET_WORDS),
    re.IGNORECASE | re.VERBOSE,
)
# Programs, and their options of one letter that are followed by a secret.
_LETTERS = {
    r"(?:mysql|mariadb)[\w.-]*|fence_\w+|pcs|sshpass": "p",
    r"ipmitool|ipmi-\w+": "Pky",
    r"ldap\w+": "w",
    "redis-cli": "a",
    r"snmp\w+|fence_\w+_snmp": "cAX",
}
_PROGRAMS = [
    (
        re.compile(rf"(?<![\w.-])((?:{programs})(?:\s+(?![;&|]){_WORD}){{1,50}})", re.VERBOSE),
        re.compile(rf"((?<!\S)-[{letters}]\s*)(?!\d{{1,5}}(?!\S)|\.{{3}}){_WORD}", re.VERBOSE),
    )
    for programs, letters in _LETTERS.items()
]
# NAME=VALUE and "NAME": VALUE in the source of a mount, such as rclone's :sftp,pass=VALUE: and jdbc's ;password=VALUE.
_SOURCE_VALUE = re.compile(
    r"""((?:^|[,;&{?\s"'])([a-z0-9][\w.-]{0,80})(?:["']\s*:|["']?\s*=)\s*)((?:"[^"]*"|'[^']*'|[^\s,;&"'])+)""",
    re.IGNORECASE,
)
_repeated: set[str] = set()  # Secrets that remember_secrets() was given.
_SOURCE_LOGIN = re.compile(r"""((?:^|[\s"'=#])[^\s/?#@:%'"=]{1,200}%)[^\s/'"@]{1,200}(?=@)""")  # USER%PASSWORD@ (CIFS)


def for_terminal(text: object) -> str:
    r"""Return the text as one line with all invisible characters escaped.

    >>> print(for_terminal("a\x1b[31mb\nc\u202e"))
    a\x1b[31mb\nc\u202e
    """
    return escaped(str(text), kept="")


def escaped(text: str, kept: str = "\n\r\t") -> str:
    r"""Return the text with invisible characters escaped, except those in ``kept``.

    >>> escaped("a\x1b[31m\u202e\udcff\n")
    'a\\x1b[31m\\u202e\\udcff\n'
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in kept else character.encode("unicode_escape").decode()
        for character in text
    )


def for_shell(line: str) -> str:
    """Quote a command line, so that a shell runs only one command, without substitution or redirection.

    >>> for_shell("ior -o /x; rm -rf / $(id)")
    "ior -o '/x;' rm -rf / '$(id)'"
    """
    try:
        words = shell_words(line)
    except ValueError:
        words = line.split()
    return for_terminal(shlex.join(map(_argument, words)))


def shell_words(line: str) -> list[str]:
    """Split a line as shlex.split() does, but in linear time. Raises ValueError for an unclosed quote.

    >>> shell_words("ior -o '/a b'/c d")
    ['ior', '-o', '/a b/c', 'd']
    """
    words, word, at = list[str](), list[str](), 0
    while piece := _PIECE.match(line, at):
        at = piece.end()
        if not piece[1]:
            word.append(piece[2] or re.sub(r'\\(["\\])', r"\1", piece[3] or "") or piece[4] or piece[5] or "")
        if word and (piece[1] or at == len(line)):
            words.append("".join(word))
            word = []
    if at < len(line):
        raise ValueError("a quotation has no end")
    return words


def shell_line(words: Sequence[str]) -> str:
    r"""Return the words quoted for bash, with invisible characters and invalid bytes escaped.

    >>> print(shell_line(["rm", "a b", "new\nline", "bad\udcff'"]))
    rm 'a b' $'new\x0aline' $'bad\xff\''
    """
    return " ".join(shlex.quote(word) if word.isprintable() else _quoted_bytes(os.fsencode(word)) for word in words)


def _quoted_bytes(word: bytes) -> str:
    shown = (chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in word)
    return "$'" + "".join(f"\\{each}" if each in ("'", "\\") else each for each in shown) + "'"


def without_secrets(text: str) -> str:
    """Return the text with passwords, tokens and keys replaced by dots, and URLs cut after the host.

    >>> without_secrets("--store=https://me:secret@alerts:9093/token?key=1 redis://:secret@db /scratch s3://lab/w/p/")
    '--store=https://alerts:9093/... redis://db /scratch s3://lab/w/p/'
    """
    for secret in (*_own_secrets(), *sorted(_repeated, key=len, reverse=True)):
        text = (
            text.replace(secret, "...")
            if len(secret) > 7
            else re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "...", text)
        )
    text = _without_logins(_QUOTED.sub(_nested, text))
    for program, option in _PROGRAMS:
        parts = enumerate(program.split(text))
        text = "".join(option.sub(r"\1...", part) if number % 2 else part for number, part in parts)
    return _SECRET.sub(r"\g<quote>\g<name>\g<option>...", text)


def remember_secrets(words: Sequence[str], *values: str) -> None:
    """Hide secrets in all later texts, because a tool may repeat them: those in a command's words, and ``values``."""
    found_values = [*values]
    for text in (shlex.join(words), *words):
        if argument := _SECRET_ARGUMENT.fullmatch(text):
            found_values.append(text.removeprefix(argument[1]))
        for program, option in _PROGRAMS:
            for given in option.finditer(" ".join(program.findall(text))):
                found_values += shell_words(given[0].removeprefix(given[1]))
        for found in _SECRET.finditer(text):
            name = "".join(found[group] or "" for group in ("quote", "name", "option"))
            value = re.sub(r"^(?:Bearer|Basic)\s+", "", found[0].removeprefix(name))
            with suppress(ValueError):
                found_values.append(value if found["quote"] else " ".join(shell_words(value)))
    _repeated.update(value for value in found_values if len(value) > 2)


@cache
def _own_secrets() -> tuple[str, ...]:
    """Return the secrets in the environment, such as AWS_SESSION_TOKEN, which servers may repeat."""
    given = ((name, value) for name, value in os.environ.items() if len(value) > 7 and not value.startswith("/"))
    return tuple(value for name, value in given if is_secret(name, value))


def _nested(quoted: re.Match[str]) -> str:
    """Return a quoted word without secrets. The word may itself be a command line that contains quoted words."""
    for end in ("", "'", '"') if re.search(r"\s|^.-p", quoted[0]) else ():
        with suppress(ValueError):
            word = shell_words(quoted[0] + end)[0]
            if (hidden := _argument(word)) != word:
                return "'" + hidden.replace("'", "'\"'\"'") + "'"
            break
    return quoted[0]


def is_secret(name: str, value: str) -> bool:
    """Return whether a parameter holds a secret. Paths of keys and numbers called token are not secret.

    >>> is_secret("passwd", "17"), is_secret("ssh_key", "/etc/key"), is_secret("token", "3000")
    (True, False, False)
    """
    match = _SECRET_NAME.search(name)
    if not match or _PATH_NAME.search(name):
        return False
    word = match[0].lower()
    return not (value.startswith("/") if word == "key" else word == "token" and value.isdecimal())


def source_without_secrets(source: str) -> str:
    """Return the source of a mount without user, password and query.

    >>> source_without_secrets("//me:secret@srv/share?token=1"), source_without_secrets("me@1.keyfs=/")
    ('//...@srv/share?...', 'me@1.keyfs=/')
    """
    hidden = _SOURCE_LOGIN.sub(r"\1...", _without_logins(source))
    hidden = _SOURCE_VALUE.sub(lambda found: f"{found[1]}..." if is_secret(found[2], found[3]) else found[0], hidden)
    return hidden if re.match("/(?!/)", source) or "?" not in hidden else hidden.partition("?")[0] + "?..."


def _without_logins(text: str) -> str:
    return _LOGIN.sub(r"\1...@", _ADDRESS.sub(_host_alone, text))


def _host_alone(address: re.Match[str]) -> str:
    scheme, host, rest = address.groups()
    # Keep the name of an S3 object: it is not secret, and the command that removes the object needs it.
    path = rest if scheme == "s3://" and "?" not in rest else rest and "/..."
    # If an @ follows the host, the password contains @ or a slash. The host is unknown, so hide the whole URL.
    return scheme + ("..." if "@" in rest else host + path)


def shown_command(words: Sequence[str]) -> str:
    """Return a command quoted for a shell, without secrets."""
    return without_secrets(shlex.join(map(_argument, words)))


def command_line() -> tuple[str, ...]:
    """Return the command line of this process without secrets."""
    words = [*map(_argument, sys.argv[1:])]
    with suppress(ValueError):
        words = shell_words(without_secrets(shlex.join(words)))
    return ("strakes", *words)


def _argument(word: str) -> str:
    """Return an argument without secrets. Secrets may contain spaces, so each extends to the argument's end."""
    secret = _SECRET_ARGUMENT.fullmatch(word)
    return f"{secret[1]}..." if secret else without_secrets(_LISTED.sub(r"\1...", word))


def for_csv(value: object) -> object:
    """Return the value for a CSV cell. Texts that spreadsheets would evaluate as a formula are quoted.

    >>> for_csv("=1+1"), for_csv(-1.5)
    ("'=1+1", -1.5)
    """
    if not isinstance(value, str):
        return value
    # Check the first visible character, because some spreadsheets skip white space and invisible characters.
    seen = "".join(character for character in value if character.isprintable()).lstrip()
    text = escaped(value, kept="\n\t")
    return f"'{text}" if seen.startswith(_FORMULA) or value[:1] in ("\t", "\r", "\n") else text
