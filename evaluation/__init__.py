"""What compression keeps, measured on recorded conversations: `python -m evaluation.run --help`."""
