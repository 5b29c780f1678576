# The coordinator: it never sees a record, and writes one run folder. Also the image of every node of a Ray cluster.
# Build from the top of the project:  docker build -f deploy/images/coordinator.Dockerfile -t federated-anon:0.1.0 .
# Pin the base by digest for production:  --build-arg BASE=python:3.11.14-slim-bookworm@sha256:...
ARG BASE=python:3.11.14-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY federated_anon federated_anon
COPY nodes nodes
COPY coordinator coordinator
RUN python -m venv /opt/federated-anon && /opt/federated-anon/bin/pip install --no-cache-dir '.[sql]'
RUN /opt/federated-anon/bin/python -m federated_anon.warmup

FROM ${BASE}
RUN useradd --uid 10001 --create-home coordinator
COPY --from=build /opt/federated-anon /opt/federated-anon
ENV PATH=/opt/federated-anon/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /study
ENTRYPOINT ["federated-anon"]
CMD ["--help"]
