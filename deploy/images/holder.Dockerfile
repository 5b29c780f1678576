# A data holder: its records are mounted read-only, its ledger is the one folder it writes.
# Build from the top of the project:  docker build -f deploy/images/holder.Dockerfile -t federated-anon-holder:0.1.0 .
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
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin holder
COPY --from=build /opt/federated-anon /opt/federated-anon
ENV PATH=/opt/federated-anon/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /holder
EXPOSE 7430
STOPSIGNAL SIGTERM
ENTRYPOINT ["federated-anon"]
CMD ["holder", "serve", "/holder/settings.toml"]
