"""`python -m sharpen` is `sharpen`."""

from sharpen.cli import main

if __name__ == "__main__":
    main()
