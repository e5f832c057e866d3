"""What a cache of finished work needs beside the allocator: its tier in host memory."""
