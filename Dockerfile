# syntax=docker/dockerfile:1

FROM docker.io/library/python:3.11-slim AS build
# An index other than the public one, for machines that need it: --build-arg PIP_INDEX_URL=...
# Only this stage sees it, so no layer or history of the final image holds it.
ARG PIP_INDEX_URL
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY proxy proxy
RUN python -m venv /opt/leader-hints \
    && python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && /opt/leader-hints/bin/python -m pip install --no-cache-dir -c constraints.txt /wheels/*.whl

FROM docker.io/library/python:3.11-slim
COPY --from=build /opt/leader-hints /opt/leader-hints
ENV PATH=/opt/leader-hints/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
# No user of the base image; a number, so that Kubernetes can see that it is not root.
USER 65532:65532
ENTRYPOINT ["leader-hints"]
CMD ["run"]
