"""What a release is still good for, measured against the originals.

``structure`` needs no record to be matched: it compares columns and clouds of points as wholes. ``separability`` asks
what a model learns from the release. ``loss`` and ``classic`` hold the figures of the literature, ``validity`` those of
a partition, ``ranking`` compares methods over many tables.
"""
