"""Pages that leave for another machine or come from one, agreed by every rank in rounds."""
