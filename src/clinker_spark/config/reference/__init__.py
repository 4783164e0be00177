"""What can be written in pipeline files, for editors and for people: made from the models and their docstrings."""
