"""Threads and tasks that must not end (`worker`, `tasks`), and a pause for each item that failed (`set_aside`)."""
