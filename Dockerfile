# syntax=docker/dockerfile:1

# Any image with Python 3.11 or newer as `python`; Debian's or its like, for wheels of manylinux.
ARG BASE=docker.io/library/python:3.11-slim

# hadolint ignore=DL3006
FROM ${BASE} AS build
# A package index other than the public one: --build-arg PIP_INDEX_URL=... Only this stage sees it,
# so no layer and no history of the final image holds it.
ARG PIP_INDEX_URL
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY proxy proxy
# pip stays out of what is copied: nothing is to be installed into a running proxy. So does the
# command leader-hints-report, which needs Spark and Java.
RUN python -m venv /tools \
    && python -m venv --without-pip /opt/leader-hints \
    && /tools/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && /tools/bin/pip --python /opt/leader-hints/bin/python install --no-cache-dir \
        -c constraints.txt /wheels/*.whl \
    && rm /opt/leader-hints/bin/leader-hints-report
COPY deploy/docker/healthcheck.py /opt/leader-hints/healthcheck.py

# hadolint ignore=DL3006
FROM ${BASE}
COPY --from=build /opt/leader-hints /opt/leader-hints
# The health check finds the admin server by this variable, so change it here and not in a file.
ENV PATH=/opt/leader-hints/bin:$PATH \
    LEADER_HINTS_ADMIN=127.0.0.1:9100 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# No user of the base image; a number, so that Kubernetes can see that it is not root.
USER 65532:65532
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s \
    CMD ["/opt/leader-hints/bin/python", "-I", "/opt/leader-hints/healthcheck.py"]
ENTRYPOINT ["leader-hints"]
CMD ["run"]
