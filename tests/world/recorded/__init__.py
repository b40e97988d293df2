"""What brokers answered around moves, restarts and recreated topics.

``python -m tests.world.recorded`` records the real ones again. ``recording``: the file's format;
``questions``: what brokers are asked; ``asker``: asks one broker, without I/O; ``real``: has all
brokers asked while a script of events runs; ``acceptance``: whether the model's brokers could have
answered so.
"""
