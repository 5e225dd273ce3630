"""Texts for people in another language than English, translated where they leave strakes.

Nothing before that place knows of languages: a text is made in English, and its template is found again here.
"""

from strakes.language.current import LANGUAGES, choose, current, translate, wanted

__all__ = ["LANGUAGES", "choose", "current", "translate", "wanted"]
