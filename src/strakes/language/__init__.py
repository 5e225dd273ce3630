"""Texts of the summary, the report, the guide page and the comparison page in the language in use.

A text is looked up where it is made: ``gettext("{count} more in the report", count=3)``. Values are put in after the
translation. A text without translation stays English. Translations are in ``zh.po``.
"""

from strakes.language.current import ENGLISH, LANGUAGES, choose, current, english, gettext, ngettext, wanted

__all__ = ["ENGLISH", "LANGUAGES", "choose", "current", "english", "gettext", "ngettext", "wanted"]
