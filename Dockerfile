# The daemon, static, on an image without a shell.
#
#   make image VERSION=v1.2.3
#   docker run --network host -v contextd:/var/lib/contextd contextd
#
# It listens on loopback, which containers of one pod share. To listen elsewhere, say how
# callers prove who they are (docs/security.md), or that they need not:
#
#   docker run -p 127.0.0.1:7171:7171 -v contextd:/var/lib/contextd contextd serve --listen :7171 \
#     --insecure-listen-without-authentication
#
# Variables do the same (CONTEXTD_LISTEN and so on), so CMD has no flags, which would override them.
#
# `make image-steps` runs these steps without a container engine. So paths in RUN
# are relative to WORKDIR, and instructions stay within what tools/imagesteps
# knows; it refuses what it does not know.

# The same sources give the same files: Go is the one of go.mod, and paths and times are not in
# them. Tags of base images may move; whoever publishes should pin them by digest.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src

# Modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY . .
ARG VERSION=dev
ARG REVISION
ARG REVISION_DATE
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH make sbom VERSION=$VERSION COMMIT=$REVISION COMMIT_DATE=$REVISION_DATE
# The final image has no shell to make the data directory with.
RUN mkdir -p bin/data

# Certificates for exporters over TLS, and a user that is not root.
FROM gcr.io/distroless/static:nonroot
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="contextd" \
      org.opencontainers.image.description="Assembles the contexts of agents from event logs" \
      org.opencontainers.image.source="https://github.com/contextd/contextd" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /src/bin/contextd /usr/local/bin/contextd
# What is linked in, with the texts of the licences.
COPY --from=build /src/bin/contextd.cdx.json /src/LICENSE /usr/share/doc/contextd/
COPY --from=build --chown=65532:65532 /src/bin/data /var/lib/contextd
USER 65532:65532
VOLUME /var/lib/contextd
EXPOSE 7171
ENV CONTEXTD_DATA_DIR=/var/lib/contextd
ENTRYPOINT ["/usr/local/bin/contextd"]
CMD ["serve"]
