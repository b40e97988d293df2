"""What a release consists of, built from one commit: ``python -m release``, or ``make release``.

Nouns:

- Source: the files of the commit, without whatever else is in the working tree.
- Package: the wheel and the sdist.
- Chart: the Helm chart as an archive.
- Sbom: the list of packages that the wheel runs with.
- Image: the container image as an archive; only where buildah is installed.
- Checksums: SHA256SUMS, of all of them.

The same commit gives the same bytes: all times are the commit's (SOURCE_DATE_EPOCH). The image is
the exception, since it is built on a base that changes.
"""
