"""What sharpen's own tests and those of plugins share: contract suites, simulators whose truth is known, fake outsides."""
