"""What can be set side by side: runs of sharpen, and what others logged, read into the same few nouns.

`nouns` has them: an `Arm` is what is compared, a `Run` one of its repetitions. Every other file reads one kind of source;
`sources` decides which. Nothing here judges; that is for `sharpen.bench.comparison`.
"""
