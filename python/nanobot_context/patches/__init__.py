"""What is replaced on nanobot's classes. Only the installer imports from here."""
