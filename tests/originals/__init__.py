"""The defects of the designs that this library grew from: each is a sentence that must be true here."""
