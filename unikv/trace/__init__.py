"""What an allocator was asked and what it answered, so that another build can be asked it too."""
