"""A run as one page of HTML that opens without a network, and pictures, those of every command, as files.

`marks` are the few shapes a picture is made of; `axes`, `curves`, `dots`, `forest`, `radar`, `heat` and `bars` turn numbers
into them, `panels` puts several on one paper, and `svg`, `painted` and `files` write them down. `gather` reads a run,
`means` and `normal` prepare what is drawn, `plots` and `job_plots` choose it, and `sections`, `job_sections`, `html` and
`document` make the page of it.
"""
