"""Dates to ISO form: `March 4, 2021` becomes `2021-03-04`. Generated, in two ways of writing a date."""

from __future__ import annotations

from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.tasks.textual import TextTask, item, words

_MONTHS = words("January February March April May June July August September October November December")
_FORMS = {"month first": "{month} {day}, {year}", "day first": "{day} {month} {year}"}
_YEARS = range(1950, 2030)
_DAYS = range(1, 29)


class IsoDates(TextTask):
    name = "iso-dates"
    sizes = (80, 80, 120)
    brief = Brief(
        description="Write a date in the ISO form YYYY-MM-DD.",
        instructions=(
            "Write the date as YYYY-MM-DD.",
            "Write the year with four digits, then the month, then the day, with hyphens between.",
            "Write month and day with two digits each: March is 03.",
            "Answer with the date alone.",
            "January is 01, February 02, March 03, April 04, May 05, June 06.",
            "July is 07, August 08, September 09, October 10, November 11, December 12.",
        ),
        answer_format="YYYY-MM-DD",
    )
    skill = "Write the date in ISO form."
    max_tokens = 16

    def items(self) -> list[Item]:
        days = [(year, month, day) for year in _YEARS for month in range(12) for day in _DAYS]
        forms = list(_FORMS.items())
        made = []
        for number, (year, month, day) in enumerate(Stream(0, "iso-dates").sample(days, 300)):
            kind, form = forms[number % len(forms)]
            text = form.format(month=_MONTHS[month], day=day, year=year)
            made.append(item(text, f"{year}-{month + 1:02}-{day:02}", kind))
        return made
