"""A run as one page of HTML that opens without a network, and its pictures as files.

`marks` are the few shapes a picture is made of; `axes`, `curves`, `forest`, `radar`, `heat` and `bars` turn numbers into
them; `svg` and `png` write them down. `gather` reads a run, `plots` and `job_plots` choose what is drawn, and
`sections`, `job_sections`, `html` and `document` make the page of it.
"""
