"""What makes the requests of frameworks fit: each module wants its own framework."""
