"""What a person starts; each file reads like a table of contents."""
